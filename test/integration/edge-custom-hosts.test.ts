/** What visitors of a custom domain meet in each state of its drop: a real edge, with a certificate for the domain. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { keys } from '../../shared/redis/keys.ts'
import { siteStates } from '../../shared/contracts/route-record.ts'
import { certificateAt, isIssued } from '../support/custom-domains.ts'
import { startEdgeFixture, type EdgeFixture } from '../support/edge-fixture.ts'

const DOMAIN = 'shop.customer.test'
const WILDCARD = '*.docs.customer.test'
let fixture: EdgeFixture

beforeAll(async () => {
  fixture = await startEdgeFixture()
  const value = JSON.stringify({ wanted: true })
  for (const name of [DOMAIN, WILDCARD]) {
    await fixture.redis.hset(keys.domains, name, value)
    await fixture.log({ kind: 'domain', name, value })
    await vi.waitFor(async () => expect(await isIssued(fixture, name)).toBe(true), { timeout: 120_000 })
  }
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
  const expiresAt = Date.now() + 1500
  await fixture.publish('drop.localhost', { 'index.html': '<p>hello' }, { expires_at: expiresAt })
  const { status } = await fixture.h2(DOMAIN, '/')
  // A machine that needs longer than that for one visit has nothing to say about the time before.
  expect(Date.now() < expiresAt ? status : 200).toBe(200)
  await expect.poll(async () => (await fixture.h2(DOMAIN, '/')).status).toBe(410)
})

test('a wildcard answers for the names directly below it that have no answer of their own', async () => {
  const OWN = 'own.docs.customer.test'
  const seenAt = async (host: string): Promise<string> => {
    const { status, text } = await fixture.h2(host, '/')
    return status === 200 ? text : String(status)
  }
  await fixture.publish('docs.localhost', { 'index.html': '<p>docs' })
  await fixture.publish('own.localhost', { 'index.html': '<p>own' })
  await fixture.setRoute({ kind: 'alias', host: WILDCARD, to: 'docs.localhost' })
  expect((await certificateAt(fixture.edge.httpsPort, 'a.docs.customer.test')).names).toBe(`DNS:${WILDCARD}`)
  expect([await seenAt('a.docs.customer.test'), await seenAt(OWN)]).toEqual(['<p>docs', '<p>docs'])
  await fixture.setRoute({ kind: 'alias', host: OWN, to: 'own.localhost' })
  expect([await seenAt('a.docs.customer.test'), await seenAt(OWN)]).toEqual(['<p>docs', '<p>own'])
  await fixture.setRoute({ kind: 'none', host: OWN })
  expect(await seenAt(OWN)).toBe('<p>docs')
  for (const host of ['docs.customer.test', 'a.b.docs.customer.test'])
    expect((await certificateAt(fixture.edge.httpsPort, host)).names).not.toContain('customer')
  await fixture.setRoute({ kind: 'none', host: WILDCARD })
  expect([await seenAt('a.docs.customer.test'), await seenAt(OWN)]).toEqual(['404', '404'])
})
