/** Sends the pages that the edge itself writes. Those that do not depend on the visitor are kept. */
import { LRUCache } from 'lru-cache'
import { newId } from '../shared/ids.ts'
import type { Log } from '../shared/log.ts'
import type { SiteRoute } from '../shared/route-record.ts'
import type { ClosedPage, Exchange, HeaderList } from './context.ts'
import { closedPage, errorPage, missingPage, unlockPage, type PreparedPage } from './gate/pages.ts'
import { safeNext, type UnlockOutcome } from './gate/unlock.ts'

export interface Pages {
  closed(exchange: Exchange, page: ClosedPage): void
  missing(exchange: Exchange, route: SiteRoute): void
  error(exchange: Exchange, status: number, headers?: HeaderList, id?: string): void
  unlock(exchange: Exchange, form?: Buffer, outcome?: Exclude<UnlockOutcome, { kind: 'unlocked' }>): void
  /** Control is away: JSON where programs ask, a page where people do. */
  serviceError(exchange: Exchange, status: 502 | 504, error: Error): void
}

const MAX_KEPT_PAGES = 500

export function createPages({ baseUrl, log }: { baseUrl: string; log: Log }): Pages {
  const kept = new LRUCache<string, PreparedPage>({ max: MAX_KEPT_PAGES })
  const keep = (key: string, make: () => PreparedPage): PreparedPage => {
    let page = kept.get(key)
    if (page === undefined) kept.set(key, (page = make()))
    return page
  }
  return {
    closed: (exchange, page) =>
      send(
        exchange,
        keep(`${page} ${exchange.host}`, () => closedPage(page, { baseUrl, host: exchange.host })),
      ),
    missing(exchange, route) {
      const page = keep(`missing ${exchange.host}`, () => missingPage({ baseUrl, host: exchange.host }))
      const robots = route.password === null ? [] : ['x-robots-tag', 'noindex']
      send(exchange, page, ['dropway-version', String(route.version_number), ...robots])
    },
    error: (exchange, status, headers = [], id) =>
      send(
        exchange,
        id === undefined
          ? keep(`error ${status}`, () => errorPage(status, { baseUrl }))
          : errorPage(status, { baseUrl, id }),
        headers,
      ),
    unlock(exchange, form, outcome) {
      const next = form === undefined ? exchange.target : new URLSearchParams(form.toString()).get('next')
      const retryAfterSeconds = outcome?.kind === 'limited' ? outcome.retryAfterSeconds : undefined
      send(
        exchange,
        unlockPage({ baseUrl, host: exchange.host, next: safeNext(next), problem: outcome?.kind, retryAfterSeconds }),
      )
    },
    serviceError(exchange, status, error) {
      const id = newId('err')
      log.warn({ id, err: error, status }, 'control did not answer')
      if (exchange.isAnswered) return
      if (!isProgram(exchange.target)) return send(exchange, errorPage(status, { baseUrl, id }))
      const body = Buffer.from(
        JSON.stringify({
          error: 'unavailable',
          detail: 'The service does not answer just now. Try again shortly.',
          id,
        }),
      )
      exchange.send(
        status,
        [
          'content-type',
          'application/json',
          'cache-control',
          'no-store',
          'retry-after',
          '2',
          'content-length',
          String(body.length),
        ],
        body,
      )
    },
  }
}

function isProgram(target: string): boolean {
  return target.startsWith('/api/') || /^\/(?:mcp|oauth|\.well-known)(?:[/?]|$)/.test(target)
}

function send(exchange: Exchange, page: PreparedPage, extra: HeaderList = []): void {
  const flat = page.headers.flat()
  const added = extra.filter((_, index) => !flat.includes(extra[index - (index % 2)]!))
  exchange.send(page.status, [...flat, ...added, 'content-length', String(page.body.length)], page.body)
}
