/** What visitors of a custom domain meet in each state of its drop: a real edge, with a certificate for the domain. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { keys } from '../../shared/redis/keys.ts'
import { siteStates } from '../../shared/contracts/route-record.ts'
import { certificateAt, isIssued } from '../support/custom-domains.ts'
import { startEdgeFixture, type EdgeFixture } from '../support/edge-fixture.ts'

const DOMAIN = 'shop.customer.test'
let fixture: EdgeFixture

beforeAll(async () => {
  fixture = await startEdgeFixture()
  const value = JSON.stringify({ wanted: true })
  await fixture.redis.hset(keys.domains, DOMAIN, value)
  await fixture.log({ kind: 'domain', name: DOMAIN, value })
  await vi.waitFor(async () => expect(await isIssued(fixture, DOMAIN)).toBe(true), { timeout: 120_000 })
  await fixture.setRoute({ kind: 'alias', host: DOMAIN, to: 'drop.localhost' })
})
afterAll(() => fixture?.stop())

const STATUS = {
  live: 200,
  reserved: 404,
  gone: 410,
  removed: 410,
  expired: 410,
  unverified: 503,
  paused: 503,
} as const

test.each(siteStates)(
  '%s: the same answer as at the address of the drop, over the certificate of the domain',
  async (state) => {
    await fixture.publish('drop.localhost', { 'index.html': '<p>hello' }, { state })
    const [custom, own] = [await fixture.h2(DOMAIN, '/'), await fixture.h2('drop.localhost', '/')]
    expect([custom.status, own.status]).toEqual([STATUS[state], STATUS[state]])
    const words = (text: string, host: string): string => text.replaceAll(host, '')
    expect(words(custom.text, DOMAIN)).toBe(words(own.text, 'drop.localhost'))
    expect(custom.headers['retry-after']).toBe(own.headers['retry-after'])
    expect((await certificateAt(fixture.edge.httpsPort, DOMAIN)).names).toBe(`DNS:${DOMAIN}`)
  },
)

test('a drop that expires does so at its custom domain, to the second', async () => {
  await fixture.publish('drop.localhost', { 'index.html': '<p>hello' }, { expires_at: Date.now() + 1500 })
  expect((await fixture.h2(DOMAIN, '/')).status).toBe(200)
  await expect.poll(async () => (await fixture.h2(DOMAIN, '/')).status).toBe(410)
})
