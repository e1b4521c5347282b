/**
 * Who may hear of newer versions of a drop. At the service's own host, /review/<slug>/events is answered here and not by
 * control: with a pass that control sealed before, or with one that it is asked for once. At a preview's own host,
 * /.dropway/events is for members and viewers, whom the gates have let in and are asked about again at each change.
 * Public addresses have none of it.
 */
import { nodeHttp } from '../../../shared/http/node-http.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { parseForm } from '../../../shared/http/form.ts'
import { siteHost } from '../../../shared/http/hosts.ts'
import { patiently } from '../../../shared/settings/patience.ts'
import type { ReviewPass } from '../../../shared/secrets/review-pass.ts'
import type { Arrival, Drop, Exchange, HeaderList, ServedSite } from '../../context.ts'
import type { Framing } from '../../gate/review.ts'
import type { Routes } from '../routes.ts'
import { LIVE_EVENTS_PATH, type LiveStreams, type Opened, type Watched } from './live-streams.ts'

export interface Watching {
  /** True when the request is one for events of the review page, and is answered or will be. */
  atService(exchange: Exchange): boolean
  /**
   * True when the request is one for events of a preview by who was let in. `again` says what they would be shown now, if
   * they came once more.
   */
  atDrop(exchange: Exchange, drop: Drop, again: (arrival: Arrival) => SeenAgain): boolean
}

/** A drop as someone would see it now. `outside`: it is there, and they would have to come in anew; undefined: it is not. */
export type SeenAgain = Drop | 'outside' | undefined

interface WatchingDependencies {
  readonly routes: Pick<Routes, 'get'>
  readonly framing: Pick<Framing, 'passOf'>
  readonly streams: Pick<LiveStreams, 'open'>
  readonly sitesDomain: string
  /** Asks control for a pass; undefined where it gives none, or does not answer. */
  askForPass(exchange: Exchange, slug: string): Promise<string | undefined>
}

const EVENTS = /^\/review\/([a-z0-9-]{1,63})\/events(?:\?(.*))?$/

/** At the service's own host, the edge answers a GET of this target and no other. */
export function isReviewEvents(target: string): boolean {
  return EVENTS.test(target)
}

export function createWatching(deps: WatchingDependencies): Watching {
  const { routes, framing, streams, sitesDomain } = deps

  function siteAt(host: string): ServedSite | undefined {
    const record = routes.get(host)
    return record?.kind === 'site' ? record : undefined
  }

  /** The stream's right ends with that of the pass, at the next change of the record at the latest. */
  function watchedBy(host: string, sealed: string, preview: string | null): Watched {
    return {
      host,
      isReview: true,
      version() {
        const route = siteAt(host)
        const pass = route && framing.passOf(route, sealed)
        return route && pass && versionOf(route, preview, pass)
      },
    }
  }

  async function openAtService(exchange: Exchange, slug: string, query: URLSearchParams): Promise<void> {
    const host = siteHost(slug, sitesDomain)
    const route = siteAt(host)
    const given = query.get('pass') ?? ''
    const sealed = route && framing.passOf(route, given) ? given : await deps.askForPass(exchange, slug)
    const opened =
      sealed === undefined ? 'unseen' : streams.open(exchange, watchedBy(host, sealed, query.get('preview')))
    if (opened !== 'open') refuse(exchange, opened)
  }

  return {
    atService(exchange) {
      const [, slug, query = ''] = EVENTS.exec(exchange.target) ?? []
      if (slug === undefined || exchange.method !== 'GET') return false
      const form = parseForm(query)
      void openAtService(exchange, slug, typeof form === 'string' ? new URLSearchParams() : form)
      return true
    },
    atDrop(exchange, drop, again) {
      if (!mayHear(drop)) return false
      if (exchange.method !== 'GET' || exchange.target !== LIVE_EVENTS_PATH) return false
      const arrival = arrivalOf(exchange)
      const version: Watched['version'] = () => {
        const shown = again(arrival)
        if (shown === undefined || shown === 'outside') return shown
        return mayHear(shown) ? shown.versionNumber : undefined
      }
      const opened = streams.open(exchange, { host: drop.route.host, isReview: false, version })
      if (opened === 'full') refuse(exchange, opened)
      return opened !== 'unseen'
    },
  }
}

/** Named previews alone have newer versions, and members and viewers alone hear of them. */
function mayHear({ previewName, viewer, isMember }: Drop): boolean {
  return previewName !== undefined && (viewer !== undefined || isMember === true)
}

/** Who they say they are, as the gates read it. */
const SHOWN = ['cookie', 'authorization', 'dropway-guest'] as const

/** What is kept of a request for as long as its stream lasts. */
function arrivalOf(exchange: Exchange): Arrival {
  const { method, target, host, ip } = exchange
  const headers = new Map<string, string | undefined>(SHOWN.map((name) => [name, exchange.header(name)]))
  return { method, target, host, ip, header: (name) => headers.get(name) }
}

/** A worker that has no room has it when tabs are closed. */
const RETRY_SECONDS = 30
const REFUSAL: HeaderList = [
  'content-type',
  'application/json',
  'cache-control',
  'no-store',
  'x-content-type-options',
  'nosniff',
]

function refuse(exchange: Exchange, why: Exclude<Opened, 'open'>): void {
  const error =
    why === 'full'
      ? errors.rateLimited(RETRY_SECONDS, 'Too many pages that follow drops are open. Close some, or try again later.')
      : errors.unauthorized('Open the review page of this drop, or send a credential that may see it.')
  const body = Buffer.from(JSON.stringify(error.toBody()))
  const own = [...Object.entries(error.headers).flat(), 'content-length', String(body.length)]
  exchange.send(error.status, [...REFUSAL, ...own], body)
}

/** Undefined where there is nothing to see, or not for them. */
function versionOf(route: ServedSite, preview: string | null, pass: ReviewPass): number | undefined {
  if (preview === null || preview === '') return route.state === 'live' ? route.version_number : undefined
  if (route.previews === 'off' || (route.previews === 'members' && !pass.isMember)) return undefined
  return route.names?.find(([name]) => name === preview)?.[1]
}

const ANSWER_MS = patiently(8000)
const MAX_ANSWER_BYTES = 2000
/** Who they say they are, as control reads it. */
const FORWARDED = ['cookie', 'authorization', 'dropway-guest', 'origin', 'sec-fetch-site'] as const

/** Asks control on behalf of who sent the request. */
export function createPassQuestion(
  controlUrls: readonly string[],
  publicHost: string,
): WatchingDependencies['askForPass'] {
  const agent = new nodeHttp.Agent({ keepAlive: true, maxSockets: 20 })
  function askOne(control: string, exchange: Exchange, slug: string): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const own = FORWARDED.flatMap((name): [string, string][] => {
        const value = exchange.header(name)
        return value === undefined ? [] : [[name, value]]
      })
      const headers = { ...Object.fromEntries(own), host: publicHost, 'x-forwarded-for': exchange.ip }
      const request = nodeHttp.get(
        `${control}/review/${slug}/pass`,
        { agent, headers, timeout: ANSWER_MS },
        (answer) => {
          let text = ''
          answer.setEncoding('utf8')
          answer.on('data', (piece: string) => {
            text += piece
            if (text.length > MAX_ANSWER_BYTES) answer.destroy()
          })
          answer.on('error', reject)
          answer.on('end', () => resolve(answer.statusCode === 200 ? passIn(text) : undefined))
        },
      )
      request.on('timeout', () => request.destroy())
      request.on('error', reject)
    })
  }
  return async (exchange, slug) => {
    for (const control of controlUrls) {
      try {
        return await askOne(control, exchange, slug)
      } catch {
        // The next one may be there.
      }
    }
    return undefined
  }
}

function passIn(text: string): string | undefined {
  try {
    const { pass } = JSON.parse(text) as { pass?: unknown }
    return typeof pass === 'string' ? pass : undefined
  } catch {
    return undefined
  }
}
