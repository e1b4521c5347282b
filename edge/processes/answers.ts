/**
 * Answers that are no file: redirects, and the pages that the edge itself writes. The fixed ones are kept. Those that
 * anyone may get, in or not, name no version: even how often a private drop changes is its own affair.
 */
import { LRUCache } from 'lru-cache'
import { before } from '../../shared/values/before.ts'
import { errors, RETRY_SECONDS, type ApiError } from '../../shared/contracts/errors.ts'
import { isProgramPath } from '../../shared/http/program-paths.ts'
import { STRICT_TRANSPORT_SECURITY } from '../../shared/http/header-policy.ts'
import { newId } from '../../shared/contracts/ids.ts'
import type { Log } from '../../shared/running/log.ts'
import type { Challenge } from '../../shared/secrets/proof-of-work.ts'
import { reportAddressOf } from '../../shared/http/report-address.ts'
import { HOUSE_LOOK, type Look } from '../../shared/pages/look.ts'
import { addressOf } from '../../shared/settings/settings.ts'
import type { ClosedPage, Drop, Exchange, HeaderList } from '../context.ts'
import { closedPage, errorPage, missingPage, unlockPage, type PageHouse, type PreparedPage } from '../gate/pages.ts'
import { nextAfterUnlocking, type UnlockOutcome } from '../gate/unlock.ts'
import { askedPage, codePage, enterPage, lockedPage, type ViewerPageOptions } from '../gate/viewer-pages.ts'
import type { DoorAnswers } from '../gate/viewing.ts'
import { ICON_HEADERS, ICON_PNG } from './icon.ts'
import { DROP_METHODS, redirectHeaders } from '../rewrite/headers.ts'
import type { ProxyFailure } from '../send/proxy.ts'

export interface Answers extends DoorAnswers {
  closed(exchange: Exchange, page: ClosedPage): void
  /** Nothing at this path of a drop. */
  missing(exchange: Exchange, drop: Drop): void
  /** JSON where programs ask, a page where people do. */
  error(exchange: Exchange, status: number, about?: { drop?: Drop; id?: string | undefined }): void
  /** The unlock page; with a form and its outcome: again, after an attempt. */
  locked(exchange: Exchange, lock: Lock): void
  unlocked(exchange: Exchange, outcome: { setCookie: string; location: string }): void
  /** To the service's host, where the visitor says who they are. */
  signIn(exchange: Exchange, location: string): void
  redirect(exchange: Exchange, drop: Drop, status: number, location: string): void
  /** The whole host has another name now. */
  moved(exchange: Exchange, host: string): void
  /** To the page where a visitor reports the drop: paid ones carry no badge that leads there. */
  report(exchange: Exchange): void
  /** For a drop without an icon of its own. */
  icon(exchange: Exchange, drop: Drop): void
  methods(exchange: Exchange, drop: Drop): void
  /** Control is away, or the request did not get there. */
  unavailable(exchange: Exchange, failure: ProxyFailure): void
}

interface Lock {
  readonly work: Challenge | undefined
  readonly form?: URLSearchParams
  readonly outcome?: Exclude<UnlockOutcome, { kind: 'unlocked' }>
}

const MAX_KEPT_PAGES = 500
const ALLOW: HeaderList = ['allow', DROP_METHODS]
const EMPTY: HeaderList = ['content-length', '0']
/** On every answer of the edge itself. */
const SAFE: HeaderList = ['x-content-type-options', 'nosniff', 'strict-transport-security', STRICT_TRANSPORT_SECURITY]

export interface AnswerSettings {
  readonly baseUrl: string
  /** Name and colours of the service; unset: the house's own. */
  readonly look?: Look
  readonly publicPort: number | undefined
  /** The operator's sign-in provider, as its button says. */
  readonly providerName?: string | undefined
  readonly log: Log
}

export function createAnswers({ baseUrl, look = HOUSE_LOOK, publicPort, providerName, log }: AnswerSettings): Answers {
  const house = { baseUrl, look }
  const service = new URL(baseUrl).hostname.replace(/^\[|\]$/g, '')
  const kept = new LRUCache<string, PreparedPage>({ max: MAX_KEPT_PAGES })
  const ofRedirects = new WeakMap<Drop, HeaderList>()
  const keep = (key: string, make: () => PreparedPage): PreparedPage => {
    let page = kept.get(key)
    if (page === undefined) kept.set(key, (page = make()))
    return page
  }
  return {
    closed: (exchange, page) =>
      send(
        exchange,
        keep(`${page} ${exchange.host}`, () => closedPage(page, { ...house, host: exchange.host })),
      ),
    missing: (exchange, drop) =>
      send(
        exchange,
        keep(`missing ${drop.isProtected} ${exchange.host}`, () =>
          missingPage({ ...house, host: exchange.host, isProtected: drop.isProtected }),
        ),
        ['dropway-version', String(drop.versionNumber), ...corsOf(drop)],
      ),
    error(exchange, status, { drop, id } = {}) {
      if (exchange.host === service && isProgram(exchange.target)) return sendJson(exchange, apiError(status, id))
      const isProtected = drop?.isProtected ?? false
      const page = keep(`error ${status} ${isProtected} ${id ?? ''}`, () =>
        errorPage(status, { ...house, id, isProtected }),
      )
      send(exchange, page, [...(status === 405 ? ALLOW : []), ...(drop ? corsOf(drop) : [])])
    },
    locked(exchange, { form, outcome, work }) {
      const next = form === undefined ? exchange.target : form.get('next')
      const retryAfterSeconds = outcome?.kind === 'limited' ? outcome.retryAfterSeconds : undefined
      const about = { ...house, host: exchange.host, next: nextAfterUnlocking(next), work }
      send(exchange, unlockPage({ ...about, problem: outcome?.kind, retryAfterSeconds }))
    },
    unlocked(exchange, { location, setCookie }) {
      const own = ['location', location, 'set-cookie', setCookie, 'cache-control', 'private, no-store']
      exchange.send(303, [...own, ...SAFE, ...EMPTY], undefined)
    },
    signIn(exchange, location) {
      exchange.send(302, ['location', location, 'cache-control', 'no-store', ...SAFE, ...EMPTY], undefined)
    },
    redirect(exchange, drop, status, location) {
      let headers = ofRedirects.get(drop)
      if (headers === undefined) ofRedirects.set(drop, (headers = [...redirectHeaders(drop).flat(), ...EMPTY]))
      exchange.send(status, ['location', location, ...headers], undefined)
    },
    moved(exchange, host) {
      const location = addressOf({ publicPort }, host) + exchange.target
      exchange.send(
        301,
        ['location', location, 'cache-control', 'max-age=0, must-revalidate', ...SAFE, ...EMPTY],
        undefined,
      )
    },
    report(exchange) {
      const location = reportAddressOf(baseUrl, exchange.host)
      exchange.send(302, ['location', location, 'cache-control', 'no-store', ...SAFE, ...EMPTY], undefined)
    },
    icon: (exchange, drop) =>
      exchange.send(200, drop.isProtected ? [...PRIVATE_ICON_HEADERS, ...corsOf(drop)] : ICON_HEADERS, ICON_PNG),
    methods: (exchange, drop) =>
      exchange.send(204, [...ALLOW, ...SAFE, ...(drop.route.viewers ? PREFLIGHT : [])], undefined),
    ...viewerAnswers(house, providerName),
    unavailable(exchange, { status, error }) {
      const id = error === undefined ? undefined : newId('err')
      if (error !== undefined) log.warn({ id, err: error, status }, 'control did not answer')
      if (exchange.isAnswered) return
      this.error(exchange, status, { id })
    },
  }
}

type ViewerAnswers = Pick<Answers, 'notIn' | 'codeAsked' | 'door' | 'goTo' | 'programRefused'>

/** Answers to those who are not in yet. */
function viewerAnswers(house: PageHouse, providerName: string | undefined): ViewerAnswers {
  const about = ({ host }: Exchange, { route }: Drop, next: string | null): ViewerPageOptions => ({
    ...house,
    host,
    next: nextAfterUnlocking(next),
    asks: route.viewers?.asks ?? false,
    provider: providerName === undefined ? undefined : { name: providerName, siteId: route.site_id },
  })
  return {
    notIn: (exchange, drop, { next, refusal }) => send(exchange, lockedPage(about(exchange, drop, next), refusal)),
    codeAsked(exchange, drop, { next, email, answer }) {
      const options = about(exchange, drop, next)
      if (answer.kind === 'asked') return send(exchange, askedPage(options, email))
      send(exchange, codePage(options, email, answer.kind === 'refused' ? answer : undefined))
    },
    door: (exchange, drop, door) => send(exchange, enterPage(about(exchange, drop, door.next), door)),
    goTo(exchange, _drop, path) {
      const own = ['location', path, 'cache-control', 'private, no-store', 'referrer-policy', 'no-referrer']
      exchange.send(303, [...own, ...SAFE, ...EMPTY], undefined)
    },
    programRefused(exchange, _drop, refusal) {
      const error =
        refusal?.reason === 'limited'
          ? errors.rateLimited(refusal.retry_after ?? RETRY_SECONDS)
          : errors.unauthorized('This token does not open the drop, or no longer does.')
      sendJson(exchange, error, ANY_ORIGIN)
    },
  }
}

/** Any page may read what a token opened: without the token there is nothing to read. Cookies never count there. */
const ANY_ORIGIN: HeaderList = ['access-control-allow-origin', '*']
const PREFLIGHT: HeaderList = [
  ...ANY_ORIGIN,
  'access-control-allow-methods',
  DROP_METHODS,
  'access-control-allow-headers',
  'authorization, dropway-guest, range, if-none-match, if-modified-since',
  'access-control-max-age',
  '600',
  'cache-control',
  'private, no-store',
  'referrer-policy',
  'same-origin',
]
const PRIVATE_ICON_HEADERS: HeaderList = [
  'content-type',
  'image/png',
  'content-length',
  String(ICON_PNG.length),
  'cache-control',
  'private, no-store',
  'x-robots-tag',
  'noindex',
  'referrer-policy',
  'same-origin',
  ...SAFE,
]

function corsOf({ isForProgram }: Drop): HeaderList {
  return isForProgram ? ANY_ORIGIN : []
}

function isProgram(target: string): boolean {
  return isProgramPath(before(target, '?'))
}

/** As control would say it. */
function apiError(status: number, id = newId('err')): ApiError {
  switch (status) {
    case 408:
      return errors.requestTooSlow()
    case 414:
      return errors.addressTooLong()
    case 421:
      return errors.misdirected()
    case 429:
      return errors.rateLimited(RETRY_SECONDS)
    case 500:
      return errors.internal(id)
    default:
      if (status < 500) return errors.invalidRequest('The request is malformed.')
      return errors.noAnswer(status, id)
  }
}

function sendJson(exchange: Exchange, error: ApiError, extra: HeaderList = []): void {
  const body = Buffer.from(JSON.stringify(error.toBody()))
  const headers = ['content-type', 'application/json', 'cache-control', 'no-store', ...SAFE]
  const own = Object.entries(error.headers).flat()
  exchange.send(error.status, [...headers, ...own, ...extra, 'content-length', String(body.length)], body)
}

/** Pages are kept: their headers are put in line once. */
const linesOfPages = new WeakMap<PreparedPage, HeaderList>()

function linesOf(page: PreparedPage): HeaderList {
  let lines = linesOfPages.get(page)
  if (lines === undefined)
    linesOfPages.set(page, (lines = [...page.headers.flat(), 'content-length', String(page.body.length)]))
  return lines
}

function send(exchange: Exchange, page: PreparedPage, extra: HeaderList = []): void {
  const lines = linesOf(page)
  exchange.send(page.status, extra.length === 0 ? lines : [...lines, ...extra], page.body)
}
