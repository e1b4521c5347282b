/** A control that stops while an edge has another to choose: the real servers of both, over real sockets. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { json } from '../../control/ground/http/reply.ts'
import type { Route } from '../../control/ground/http/route.ts'
import { CLOSE_NOTICE_MS, READY_BELIEVED_MS } from '../../shared/contracts/control-closing.ts'
import { startEdgeFixture } from '../support/edge-fixture.ts'
import { startServer } from '../support/http-server.ts'

/** Patience: a control closes as soon as it has answered. */
const GRACE_MS = 120_000

test('a control that leaves costs no upload, also of one who has just heard that it is there', async ({
  onTestFinished,
}) => {
  const served = { leaving: 0, staying: 0 }
  const uploads = (who: keyof typeof served): Route => ({
    method: 'POST',
    path: '/api/v1/uploads',
    async handle(request) {
      await request.json()
      served[who]++
      return json(201, {})
    },
  })
  const leaving = await startServer([uploads('leaving')])
  const staying = await startServer([uploads('staying')])
  const fixture = await startEdgeFixture({
    env: { EDGE_WORKERS: '1', CONTROL_URLS: `${leaving.url},${staying.url}` },
  })
  onTestFinished(() => fixture.stop())
  const headers = { 'content-type': 'application/json' }
  const upload = async (): Promise<number> =>
    (await fixture.h2('localhost', '/api/v1/uploads', { method: 'POST', headers, body: '{}' })).status

  // The edge asks each of the two just before one begins to leave.
  await sleep(2 * READY_BELIEVED_MS)
  while (served.leaving === 0 || served.staying === 0) expect(await upload()).toBe(201)
  const stayingBefore = served.staying
  let hasLeft = false
  const left = leaving.server.close(GRACE_MS, CLOSE_NOTICE_MS).then(() => (hasLeft = true))
  const statuses: number[] = []
  while (!hasLeft || statuses.length < 30) {
    statuses.push(await upload())
    await sleep(10)
  }
  await left
  expect(statuses.filter((status) => status !== 201)).toEqual([])
  expect(served.staying).toBeGreaterThan(stayingBefore)
})

/** The edge looks after a request that has not moved for four seconds. */
test('a control that leaves finishes what it has begun', async ({ onTestFinished }) => {
  const begun = Promise.withResolvers<void>()
  const slow: Route = {
    method: 'DELETE',
    path: '/api/v1/sites/:id',
    async handle() {
      begun.resolve()
      await sleep(5000)
      return json(200, {})
    },
  }
  const leaving = await startServer([slow])
  const fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1', CONTROL_URLS: leaving.url } })
  onTestFinished(() => fixture.stop())
  const deleted = fixture.h2('localhost', '/api/v1/sites/site_1', { method: 'DELETE' })
  await begun.promise
  const left = leaving.server.close(GRACE_MS, CLOSE_NOTICE_MS)
  expect((await deleted).status).toBe(200)
  await left
})
