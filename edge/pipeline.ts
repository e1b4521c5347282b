/**
 * The life of a request at the edge, in order. accept has made an Exchange of it; each step decides one thing and this
 * file says what follows. README.md draws it with every exit.
 *
 *   accept → classify → gate → locate → rewrite → send
 */
import type { Clock } from '../shared/clock.ts'
import { newId } from '../shared/ids.ts'
import type { Log } from '../shared/log.ts'
import type { SiteRoute } from '../shared/route-record.ts'
import { addressOf, type SharedSettings } from '../shared/settings.ts'
import type { Classify } from './classify/classify.ts'
import type { Exchange, SiteIndex } from './context.ts'
import { checkState } from './gate/state.ts'
import { UNLOCK_PATH, type Unlock } from './gate/unlock.ts'
import { locate } from './locate/locate.ts'
import type { Pages } from './pages.ts'
import type { Representations } from './representations.ts'
import { redirectHeaders } from './rewrite/headers.ts'
import { sendFile, type Sent } from './send/file.ts'
import type { Proxy } from './send/proxy.ts'
import { isView, type Views } from './send/views.ts'
import type { Sites } from './store/sites.ts'

export interface PipelineDependencies {
  readonly settings: Pick<SharedSettings, 'publicPort'>
  readonly classify: Classify
  readonly unlock: Unlock
  readonly sites: Sites
  readonly representations: Representations
  readonly pages: Pages
  readonly proxy: Proxy
  readonly views: Views
  readonly clock: Clock
  readonly log: Log
}

/** The unlock form holds a password and a path. */
const MAX_FORM_BYTES = 8192
const ALLOW = ['allow', 'GET, HEAD, OPTIONS']

export function createPipeline(dependencies: PipelineDependencies): (exchange: Exchange) => void {
  const { classify, unlock, sites, representations, pages, proxy, views, clock, log } = dependencies
  const reported = new Set<string>()

  function walk(exchange: Exchange): void | Promise<void> {
    const target = classify(exchange)
    switch (target.kind) {
      case 'site':
        return visitSite(exchange, target.route, target.isPreview)
      case 'service':
        return proxy.forward(exchange, ({ status, error }) => pages.serviceError(exchange, status, error))
      case 'moved':
        return exchange.send(
          301,
          [
            'location',
            addressOf(dependencies.settings, target.to) + exchange.target,
            'cache-control',
            'max-age=0, must-revalidate',
            'content-length',
            '0',
          ],
          undefined,
        )
      case 'unknown':
        return isReadable(exchange) ? pages.closed(exchange, 'unknown') : pages.error(exchange, 405, ALLOW)
      case 'unready':
        return pages.error(exchange, 503)
      case 'refused':
        return pages.error(exchange, target.status)
      default:
        return target satisfies never
    }
  }

  function visitSite(exchange: Exchange, route: SiteRoute, isPreview: boolean): void | Promise<void> {
    if (exchange.method === 'POST' && isUnlockPath(exchange.target)) return unlockSite(exchange, route)
    if (exchange.method === 'OPTIONS') return exchange.send(204, ALLOW, undefined)
    if (!isReadable(exchange)) return pages.error(exchange, 405, ALLOW)

    const verdict = checkState(route, clock.now())
    if (verdict.kind === 'closed') return pages.closed(exchange, verdict.page)
    if (verdict.kind === 'locked' || !unlock.isUnlocked(route, exchange.header('cookie'))) return pages.unlock(exchange)

    const index = sites.get(route.manifest!)
    if (index === undefined)
      return sites.load(route.manifest!).then((loaded) => visitContent(exchange, route, isPreview, loaded))
    return visitContent(exchange, route, isPreview, index)
  }

  function visitContent(
    exchange: Exchange,
    route: SiteRoute,
    isPreview: boolean,
    index: SiteIndex,
  ): void | Promise<void> {
    const intent = locate(index, {
      target: exchange.target,
      spaFallback: route.spa_fallback,
      fetchDest: exchange.header('sec-fetch-dest'),
    })
    switch (intent.kind) {
      case 'asset': {
        const file = representations.of(route, isPreview, intent, exchange)
        if (file instanceof Promise)
          return file.then((made) =>
            finish(exchange, route, made.isPage, sendFile(exchange, intent.status, made, clock.now())),
          )
        return finish(
          exchange,
          route,
          file.isPage && intent.status === 200,
          sendFile(exchange, intent.status, file, clock.now()),
        )
      }
      case 'redirect': {
        const drop = { versionNumber: route.version_number, isProtected: route.password !== null, isPreview }
        return exchange.send(
          intent.status,
          [...redirectHeaders(intent.location, drop).flat(), 'content-length', '0'],
          undefined,
        )
      }
      case 'missing':
        return pages.missing(exchange, route)
      case 'malformed':
        return pages.error(exchange, 400)
      default:
        return intent satisfies never
    }
  }

  function finish(
    exchange: Exchange,
    route: SiteRoute,
    isPage: boolean,
    sent: Sent | Promise<Sent>,
  ): void | Promise<void> {
    if (sent instanceof Promise) return sent.then((outcome) => finish(exchange, route, isPage, outcome))
    if (isPage && sent !== 'other' && isView(exchange)) views.count(route.site_id, clock.now())
  }

  async function unlockSite(exchange: Exchange, route: SiteRoute): Promise<void> {
    const verdict = checkState(route, clock.now())
    if (verdict.kind === 'closed') return pages.closed(exchange, verdict.page)
    const form = await exchange.readForm(MAX_FORM_BYTES)
    if (form === undefined) return pages.error(exchange, 413)
    const outcome = await unlock.attempt(route, exchange, form)
    if (outcome.kind === 'unlocked') {
      return exchange.send(
        303,
        [
          'location',
          outcome.location,
          'set-cookie',
          outcome.setCookie,
          'cache-control',
          'private, no-store',
          'content-length',
          '0',
        ],
        undefined,
      )
    }
    return pages.unlock(exchange, form, outcome)
  }

  /** A broken manifest or a missing blob costs this one answer; it is reported once, with an id that the page shows. */
  function fail(exchange: Exchange, error: unknown): void {
    const id = newId('err')
    const message = error instanceof Error ? error.message : String(error)
    if (!reported.has(message)) {
      if (reported.size > 1000) reported.clear()
      reported.add(message)
      log.error({ err: error, id, host: exchange.host, target: exchange.target.slice(0, 200) }, 'an answer failed')
    }
    if (!exchange.isAnswered) pages.error(exchange, 500, [], id)
  }

  return (exchange) => {
    try {
      const walking = walk(exchange)
      if (walking instanceof Promise) walking.catch((error: unknown) => fail(exchange, error))
    } catch (error) {
      fail(exchange, error)
    }
  }
}

function isReadable({ method }: Exchange): boolean {
  return method === 'GET' || method === 'HEAD'
}

function isUnlockPath(target: string): boolean {
  return target === UNLOCK_PATH || target.startsWith(`${UNLOCK_PATH}?`)
}
