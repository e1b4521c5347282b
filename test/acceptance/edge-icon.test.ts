/** Browsers ask every drop for /favicon.ico. A drop that has none gets a small icon instead of a page. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startEdgeFixture, type EdgeFixture } from '../support/edge-fixture.ts'

let fixture: EdgeFixture
beforeAll(async () => {
  fixture = await startEdgeFixture()
  await fixture.publish('plain.localhost', { 'index.html': 'home' })
  await fixture.publish('missing.localhost', { 'index.html': 'home', '404.html': 'nothing here' })
  await fixture.publish('app.localhost', { 'index.html': 'app' }, { spa_fallback: true })
  await fixture.publish('own.localhost', { 'index.html': 'home', 'favicon.ico': 'own icon' })
})
afterAll(() => fixture?.stop())

/** As browsers ask for it. */
const headers = { 'sec-fetch-dest': 'image' }

test.each(['plain.localhost', 'missing.localhost', 'app.localhost'])(
  '%s gets one, over both protocols',
  async (host) => {
    for (const ask of [fixture.h1, fixture.h2]) {
      const answer = await ask(host, '/favicon.ico', { headers })
      expect(answer.status).toBe(200)
      expect(answer.headers['content-type']).toBe('image/png')
      expect(answer.headers['cache-control']).toBe('public, max-age=86400')
      expect(answer.body.subarray(1, 4).toString()).toBe('PNG')
      const head = await ask(host, '/favicon.ico', { headers, method: 'HEAD' })
      expect([head.status, head.body.length]).toEqual([200, 0])
      expect(head.headers['content-length']).toBe(String(answer.body.length))
    }
  },
)

test('what a drop brings itself wins', async () => {
  expect((await fixture.h2('own.localhost', '/favicon.ico', { headers })).text).toBe('own icon')
})

test('everything else that is missing is missing as before', async () => {
  for (const path of ['/favicon.png', '/a/favicon.ico', '/favicon.ico/', '/favicon.ico?x'])
    expect((await fixture.h2('plain.localhost', path)).status, path).toBe(404)
  expect((await fixture.h2('missing.localhost', '/nowhere')).text).toContain('nothing here')
})
