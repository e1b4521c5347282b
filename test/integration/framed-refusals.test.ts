/** What pages of the dashboard show in a frame: a refusal, wherever it comes from, is said in that frame. */
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { allRoutes } from '../../control/composition/routes.ts'
import { createDashboard } from '../../control/doors/dashboard/dashboard.ts'
import { createDatabaseWatch } from '../../control/ground/database/watch.ts'
import type { Method, Route } from '../../control/ground/http/route.ts'
import type { HttpServerOptions } from '../../control/ground/http/server/server.ts'
import { silentLog } from '../../shared/running/log.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'
import { startServer } from '../support/http-server.ts'

let control: ComposedServices
beforeAll(async () => {
  control = await composeServices({ ANONYMOUS: 'off' })
})
afterAll(() => control.close())

const FRAMED: readonly (readonly [Method, string])[] = [
  ['GET', '/preview'],
  ['POST', '/preview'],
  ['GET', '/templates/:name/sample'],
  ['POST', '/templates/:name/preview'],
]

type Outage = (routes: readonly Route[]) => Promise<{ routes?: Route[]; options: Partial<HttpServerOptions> }>

/** No Postgres is there. */
async function whilePostgresIsAway(): ReturnType<Outage> {
  const watch = createDatabaseWatch({ url: path.join(os.tmpdir(), 'no-postgres-here'), log: silentLog })
  watch.start()
  onTestFinished(() => watch.stop())
  await expect.poll(() => watch.trouble()).toBe('Postgres is away')
  return { options: { guard: watch.guard } }
}

async function whileOneNetworkSendsTooMuch(): ReturnType<Outage> {
  return { options: { shares: { places: 1, placesPerCaller: 0, waiting: 1, waitingPerCaller: 0, waitMs: 1 } } }
}

/** Every handler meets a fault of ours. */
async function whileSomethingFails(routes: readonly Route[]): ReturnType<Outage> {
  const handle = (): never => {
    throw new TypeError('a detail that nobody sees')
  }
  return { routes: routes.map((route) => ({ ...route, handle })), options: {} }
}

/** Strangers may not publish, and their forms have no token. */
async function withoutLeave(): ReturnType<Outage> {
  return { options: {} }
}

describe.each<[what: string, status: number, said: RegExp, outage: Outage]>([
  ['while Postgres is away', 503, /A part of the service is not reachable/, whilePostgresIsAway],
  ['while a network sends too much at once', 429, /Too many requests at once/, whileOneNetworkSendsTooMuch],
  ['while something fails on our side', 500, /<code>err_/, whileSomethingFails],
  ['without leave', 403, /./, withoutLeave],
])('%s', (_, status, said, outage) => {
  let url: string

  beforeEach(async () => {
    const dashboard = createDashboard(control.services)
    const all = allRoutes(control.services, dashboard)
    const { routes = all, options } = await outage(all)
    url = (await startServer(routes, { errorPage: dashboard.errorPage, ...options })).url
  })

  // A sample is for everyone, and asks no one for leave.
  const refused = FRAMED.filter(([, address]) => status !== 403 || !address.endsWith('/sample'))

  test.each(refused)('%s %s is refused by a small page that our own pages show', async (method, address) => {
    const body = method === 'POST' ? new URLSearchParams({ text: 'x' }) : null
    const answer = await fetch(url + address.replace(':name', 'cv'), { method, body })
    const text = await answer.text()
    expect([answer.status, answer.headers.get('x-frame-options')]).toEqual([status, 'SAMEORIGIN'])
    expect(answer.headers.get('content-security-policy')).toMatch(/^sandbox;.*frame-ancestors 'self'$/)
    expect(text).toMatch(said)
    expect(text).toContain('No preview')
    expect(text).not.toMatch(/<nav|<form|a detail that nobody sees/)
    if (status === 503 || status === 429) expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
  })

  test('a page of its own is in no frame', async () => {
    const answer = await fetch(`${url}/account`, { redirect: 'manual' })
    expect(answer.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  })
})

test('a template that there is not is refused in its frame', async () => {
  const dashboard = createDashboard(control.services)
  const { url } = await startServer(allRoutes(control.services, dashboard), { errorPage: dashboard.errorPage })
  const answer = await fetch(`${url}/templates/none/sample`)
  expect(answer.status).toBe(404)
  expect(answer.headers.get('content-security-policy')).toContain("frame-ancestors 'self'")
})

test('these are all that have a way of their own to be refused', () => {
  const routes = allRoutes(control.services, createDashboard(control.services))
  const framed = routes.filter(({ refuse }) => refuse !== undefined).map((route) => [route.method, route.path])
  expect(framed).toEqual(FRAMED)
})
