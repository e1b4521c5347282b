/** Every serving rule, over real sockets, on both protocols. */
import { randomBytes } from 'node:crypto'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startEdgeFixture, type EdgeFixture, type RequestOptions } from '../support/edge-fixture.ts'
import { watchDay } from '../support/midnight.ts'

let fixture: EdgeFixture
const page = (text: string): string =>
  `<!doctype html><html><head><title>${text}</title></head><body><p>${text}</p></body></html>`
const words = 'compressible words '.repeat(200)
const large = randomBytes(3_000_000)
const clip = Buffer.from(Array.from({ length: 1000 }, (_, index) => index % 251))

beforeAll(async () => {
  fixture = await startEdgeFixture()
  await fixture.publish('site.localhost', {
    'index.html': page('home'),
    'about.html': page('about file'),
    'about/index.html': page('about folder'),
    'blog/index.html': page('blog'),
    'page.html': page('page'),
    'words.txt': { body: words, compressed: true },
    'app.3f2a9c1b7d.js': { body: 'let a = 1', immutable: true },
    'clip.bin': { body: clip },
    'large.bin': { body: large },
    'empty.txt': '',
    ['__proto__']: 'prototype',
    'caf\u00e9.txt': 'coffee',
  })
  await fixture.publish('own404.localhost', {
    'index.html': page('home'),
    '404.html': page('custom missing'),
    'docs/404.html': page('docs missing'),
  })
  await fixture.publish('spa.localhost', { 'index.html': page('app'), 'app.js': 'run()' }, { spa_fallback: true })
})
afterAll(() => fixture?.stop())

interface Row {
  readonly target: string
  readonly host?: string
  readonly request?: RequestOptions
  readonly status: number
  readonly text?: string
  readonly headers?: Readonly<Record<string, string | undefined>>
}

const revalidate = { 'cache-control': 'max-age=0, must-revalidate' }
const rows: Row[] = [
  { target: '/', status: 200, text: 'home', headers: { 'content-type': 'text/html; charset=utf-8', ...revalidate } },
  { target: '/index.html', status: 200, text: 'home' },
  { target: '/about.html', status: 200, text: 'about file' },
  { target: '/about', status: 301, headers: { location: '/about/', ...revalidate } },
  { target: '/about?x=1', status: 301, headers: { location: '/about/?x=1' } },
  { target: '/about/', status: 200, text: 'about folder' },
  { target: '/blog', status: 301, headers: { location: '/blog/' } },
  { target: '/blog/', status: 200, text: 'blog' },
  { target: '/page', status: 200, text: 'page' },
  { target: '/page/', status: 301, headers: { location: '/page' } },
  { target: '/page.html/', status: 404 },
  { target: '/missing', status: 404, text: 'not found', headers: { 'cache-control': 'no-store' } },
  { target: '/__proto__', status: 200, text: 'prototype', headers: { 'x-content-type-options': 'nosniff' } },
  { target: '/caf%C3%A9.txt', status: 200, text: 'coffee' },
  { target: '/constructor', status: 404 },
  { target: '/empty.txt', status: 200, headers: { 'content-length': '0' } },
  { target: '/app.3f2a9c1b7d.js', status: 200, headers: { 'cache-control': 'max-age=31536000, immutable' } },
  { target: '/%', status: 400 },
  { target: '/%00', status: 400 },
  { target: '/..%2f..%2fetc/passwd', status: 400 },
  { target: '/missing', host: 'own404.localhost', status: 404, text: 'custom missing' },
  { target: '/docs/x/y', host: 'own404.localhost', status: 404, text: 'docs missing' },
  { target: '/any/route', host: 'spa.localhost', status: 200, text: 'app' },
  { target: '/x.js', host: 'spa.localhost', status: 404, request: { headers: { 'sec-fetch-dest': 'script' } } },
  { target: '/', host: 'nobody.localhost', status: 404, text: 'Nothing is published here' },
  {
    target: '/',
    request: { method: 'POST' },
    status: 405,
    headers: { allow: 'GET, HEAD, OPTIONS' },
  },
  { target: '/missing', request: { method: 'DELETE' }, status: 405 },
  { target: '/', host: 'nobody.localhost', request: { method: 'PUT' }, status: 405 },
  {
    target: '/',
    request: { method: 'OPTIONS' },
    status: 204,
    headers: { allow: 'GET, HEAD, OPTIONS' },
  },
  { target: `/${'a'.repeat(9000)}`, status: 414 },
  // Ranges and conditions.
  {
    target: '/clip.bin',
    request: { headers: { range: 'bytes=0-9' } },
    status: 206,
    headers: { 'content-range': 'bytes 0-9/1000', 'content-length': '10' },
  },
  {
    target: '/clip.bin',
    request: { headers: { range: 'bytes=-5' } },
    status: 206,
    headers: { 'content-range': 'bytes 995-999/1000' },
  },
  {
    target: '/clip.bin',
    request: { headers: { range: 'bytes=990-' } },
    status: 206,
    headers: { 'content-range': 'bytes 990-999/1000' },
  },
  {
    target: '/clip.bin',
    request: { headers: { range: 'bytes=0-5000' } },
    status: 206,
    headers: { 'content-range': 'bytes 0-999/1000' },
  },
  {
    target: '/clip.bin',
    request: { headers: { range: 'bytes=1000-' } },
    status: 416,
    headers: { 'content-range': 'bytes */1000' },
  },
  { target: '/clip.bin', request: { headers: { range: 'bytes=9-2' } }, status: 200 },
  { target: '/clip.bin', request: { headers: { range: 'lines=1-2' } }, status: 200 },
  { target: '/clip.bin', request: { headers: { range: 'bytes=0-9', 'if-range': '"other"' } }, status: 200 },
  {
    target: '/clip.bin',
    request: { method: 'HEAD', headers: { range: 'bytes=0-9' } },
    status: 200,
    headers: { 'content-length': '1000' },
  },
  { target: '/clip.bin', request: { headers: { 'if-match': '"other"' } }, status: 412 },
  { target: '/clip.bin', request: { headers: { 'if-match': '*' } }, status: 200 },
  { target: '/clip.bin', request: { headers: { 'if-none-match': '*' } }, status: 304 },
  // No Last-Modified is sent, so there is no date to compare with (RFC 9110 §13.1.4).
  {
    target: '/clip.bin',
    request: { headers: { 'if-unmodified-since': 'Thu, 01 Jan 2015 00:00:00 GMT' } },
    status: 200,
  },
  { target: '/missing', request: { headers: { 'if-none-match': '*', range: 'bytes=0-1' } }, status: 404 },
  {
    target: '/words.txt',
    request: { headers: { range: 'bytes=0-3', 'accept-encoding': 'br' } },
    status: 206,
    text: 'comp',
    headers: { 'content-encoding': undefined },
  },
  {
    target: '/large.bin',
    request: { headers: { range: 'bytes=2999990-' } },
    status: 206,
    headers: { 'content-length': '10' },
  },
]

describe.each(['h1', 'h2'] as const)('over %s', (protocol) => {
  test.each(
    rows.map((row) => ({
      name: `${row.request?.method ?? 'GET'} ${row.host ?? 'site.localhost'}${row.target.slice(0, 40)} ${JSON.stringify(row.request?.headers ?? {})}`,
      row,
    })),
  )('$name', async ({ row }) => {
    const answer = await fixture[protocol](row.host ?? 'site.localhost', row.target, row.request)
    expect(answer.status).toBe(row.status)
    if (row.text !== undefined) expect(answer.text).toContain(row.text)
    for (const [name, value] of Object.entries(row.headers ?? {})) expect(answer.headers[name], name).toBe(value)
    if (row.status !== 204) expect(answer.headers['x-content-type-options']).toBe('nosniff')
    expect(answer.headers['strict-transport-security']).toBe('max-age=31536000')
  })

  test('HEAD says what GET would, without the body', async () => {
    for (const target of ['/', '/words.txt', '/missing', '/large.bin']) {
      const get = await fixture[protocol]('site.localhost', target)
      const head = await fixture[protocol]('site.localhost', target, { method: 'HEAD' })
      expect(head.status).toBe(get.status)
      expect(head.body.length).toBe(0)
      expect({ ...head.headers, date: '' }).toEqual({ ...get.headers, date: '' })
      expect(Number(head.headers['content-length'])).toBe(get.body.length)
    }
  })

  test('an ETag comes back as 304, weak or in a list, for every variant', async () => {
    const seen = new Set<string>()
    for (const encoding of ['identity', 'br', 'gzip']) {
      const headers = { 'accept-encoding': encoding }
      const { headers: got } = await fixture[protocol]('site.localhost', '/words.txt', { headers })
      const etag = got['etag']!
      seen.add(etag)
      expect(etag).toMatch(/^"[^"]+"$/)
      for (const value of [etag, `W/${etag}`, `"x", ${etag}`]) {
        const again = await fixture[protocol]('site.localhost', '/words.txt', {
          headers: { ...headers, 'if-none-match': value },
        })
        expect(again.status).toBe(304)
        expect(again.body.length).toBe(0)
        expect(again.headers['etag']).toBe(etag)
        expect(again.headers['vary']).toBe('accept-encoding')
      }
    }
    expect(seen.size).toBe(3)
  })

  test('an ETag is found also where another header speaks of it', async () => {
    const host = `exposed-${protocol}.localhost`
    const rule = { from: '/*', set: [['access-control-expose-headers', 'etag']] as [string, string][], line: 1 }
    await fixture.publish(host, { 'a.txt': 'text' }, {}, { headers: [rule] })
    const { headers: got } = await fixture[protocol](host, '/a.txt')
    const statusWhen = async (condition: string): Promise<number> =>
      (await fixture[protocol](host, '/a.txt', { headers: { [condition]: got['etag']! } })).status
    expect([await statusWhen('if-none-match'), await statusWhen('if-match')]).toEqual([304, 200])
  })

  test('compressed variants are chosen by weight and unpack to the same bytes', async () => {
    const get = (accept: string) =>
      fixture[protocol]('site.localhost', '/words.txt', { headers: { 'accept-encoding': accept } })
    const br = await get('gzip, deflate, br')
    expect(br.headers['content-encoding']).toBe('br')
    expect(brotliDecompressSync(br.body).toString()).toBe(words)
    const gzip = await get('br;q=0.1, gzip')
    expect(gzip.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(gzip.body).toString()).toBe(words)
    const identity = await get('br;q=0, gzip;q=0')
    expect(identity.headers['content-encoding']).toBeUndefined()
    expect(identity.text).toBe(words)
  })

  test('several ranges come as parts, each with its own range', async () => {
    for (const [target, source] of [
      ['/clip.bin', clip],
      ['/large.bin', large],
    ] as const) {
      const answer = await fixture[protocol]('site.localhost', target, { headers: { range: 'bytes=0-3, 10-13' } })
      expect(answer.status).toBe(206)
      const boundary = /^multipart\/byteranges; boundary=(\w+)$/.exec(answer.headers['content-type']!)![1]!
      const parts = answer.body.toString('latin1').split(`--${boundary}`)
      expect(parts).toHaveLength(4)
      expect(parts[1]).toContain(`content-range: bytes 0-3/${source.length}`)
      expect(Buffer.from(parts[1]!.split('\r\n\r\n')[1]!.slice(0, 4), 'latin1')).toEqual(source.subarray(0, 4))
      expect(Buffer.from(parts[2]!.split('\r\n\r\n')[1]!.slice(0, 4), 'latin1')).toEqual(source.subarray(10, 14))
      expect(answer.body.length).toBe(Number(answer.headers['content-length']))
    }
  })

  test('a large file arrives whole', async () => {
    const answer = await fixture[protocol]('site.localhost', '/large.bin')
    expect(answer.body.equals(large)).toBe(true)
  })

  test('If-Range with the right tag gives the part', async () => {
    const { headers } = await fixture[protocol]('site.localhost', '/clip.bin')
    const answer = await fixture[protocol]('site.localhost', '/clip.bin', {
      headers: { range: 'bytes=0-0', 'if-range': headers['etag']! },
    })
    expect(answer.status).toBe(206)
  })

  test.each([
    ['reserved', 404, 'Nothing here yet'],
    ['gone', 410, 'gone'],
    ['removed', 410, 'removed'],
    ['expired', 410, 'expired'],
    ['unverified', 503, 'verified'],
    ['paused', 503, 'paused'],
  ] as const)('a %s drop answers %i', async (state, status, text) => {
    const host = `${state}-${protocol}.localhost`
    await fixture.publish(host, { 'index.html': page('secret') }, { state })
    const answer = await fixture[protocol](host, '/')
    expect(answer.status).toBe(status)
    expect(answer.text).toContain(text)
    expect(answer.text).not.toContain('secret')
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(answer.headers['retry-after'] !== undefined).toBe(status === 503)
  })

  test('a drop expires at its second, without anyone telling the edge', async () => {
    const host = `clock-${protocol}.localhost`
    const expiresAt = Date.now() + 1500
    await fixture.publish(host, { 'index.html': page('soon gone') }, { expires_at: expiresAt })
    const { status } = await fixture[protocol](host, '/')
    // A machine that needs longer than that for one visit has nothing to say about the time before.
    expect(Date.now() < expiresAt ? status : 200).toBe(200)
    await new Promise((resolve) => setTimeout(resolve, expiresAt - Date.now() + 20))
    expect((await fixture[protocol](host, '/')).status).toBe(410)
  })

  test('an alias serves the site, a redirect record moves, a preview shows a retained version', async () => {
    const host = `slug-${protocol}.localhost`
    const old = await fixture.store({ 'index.html': page('version one') })
    const live = await fixture.publish(host, { 'index.html': page('version two') }, { version_number: 2 })
    await fixture.setRoute({
      ...live,
      versions: [
        [2, live.manifest!],
        [1, old],
      ],
      names: [['first', 1]],
    })
    await fixture.setRoute({ kind: 'alias', host: `alias-${protocol}.localhost`, to: host })
    await fixture.setRoute({ kind: 'redirect', host: `old-${protocol}.localhost`, to: host })
    expect((await fixture[protocol](`alias-${protocol}.localhost`, '/')).text).toContain('version two')
    const moved = await fixture[protocol](`old-${protocol}.localhost`, '/a?b=c')
    expect([moved.status, moved.headers['location']]).toEqual([301, `https://${host}/a?b=c`])
    const preview = await fixture[protocol](`first--${host}`, '/')
    expect(preview.text).toContain('version one')
    expect(preview.headers['x-robots-tag']).toBe('noindex')
    expect(preview.headers['cache-control']).toBe('no-store')
    expect(preview.headers['dropway-version']).toBe('1')
    expect((await fixture[protocol](`9--${host}`, '/')).status).toBe(404)
    await fixture.setRoute({ kind: 'none', host })
    expect((await fixture[protocol](host, '/')).status).toBe(404)
  })

  test('pages of a free drop carry the badge, and length, ETag and 304 stay right', async () => {
    const host = `badge-${protocol}.localhost`
    await fixture.publish(
      host,
      { 'index.html': { body: page('mine').repeat(20), compressed: true }, 'a.txt': 'plain' },
      { badge: true },
    )
    const plain = await fixture[protocol](host, '/')
    expect(plain.text.toLowerCase()).toContain('dropway')
    expect(plain.body.length).toBe(Number(plain.headers['content-length']))
    const packed = await fixture[protocol](host, '/', { headers: { 'accept-encoding': 'br' } })
    expect(packed.headers['content-encoding']).toBe('br')
    expect(brotliDecompressSync(packed.body).equals(plain.body)).toBe(true)
    const again = await fixture[protocol](host, '/', { headers: { 'if-none-match': plain.headers['etag']! } })
    expect(again.status).toBe(304)
    expect((await fixture[protocol](host, '/a.txt')).text).toBe('plain')
  })

  test('a file that _headers shows as HTML is a page: badge at its end, ranges and ETags right, views counted', async () => {
    const ofDay = watchDay()
    const host = `shown-${protocol}.localhost`
    const file = { body: page('shown').repeat(20), compressed: true }
    const html = { from: '/about', set: [['content-type', 'text/html; charset=utf-8']] as [string, string][], line: 1 }
    await fixture.publish(host, { 'index.html': file, about: file, other: file }, { badge: true }, { headers: [html] })
    const get = (target: string, headers: Record<string, string> = {}) =>
      fixture[protocol](host, target, { headers: { 'user-agent': 'Mozilla/5.0', ...headers } })
    expect((await get('/other')).text).toBe(file.body)
    const home = await get('/')
    const shown = await get('/about')
    expect(shown.text.startsWith(file.body)).toBe(true)
    expect(shown.text.slice(file.body.length)).toContain('dropway-badge')
    expect(shown.headers['etag']).not.toBe(home.headers['etag'])
    expect((await get('/about', { range: `bytes=${file.body.length}-` })).text).toBe(shown.text.slice(file.body.length))
    const packed = await get('/about', { 'accept-encoding': 'br' })
    expect(brotliDecompressSync(packed.body).equals(shown.body)).toBe(true)
    expect((await get('/about', { 'if-none-match': shown.headers['etag']! })).status).toBe(304)
    // Each page once for this visitor; the file that is not shown as HTML is none.
    await expect.poll(async () => ofDay(2).includes(await fixture.views(`st_${host}`))).toBe(true)
  })

  test('a missing blob costs one path: 500 with an id that the log shows once', async () => {
    const host = `broken-${protocol}.localhost`
    const manifest = Buffer.from(
      JSON.stringify({
        v: 1,
        files: [
          ['lost.txt', { hash: '0'.repeat(64), size: 10, type: 'text/plain; charset=utf-8' }],
          ['big.bin', { hash: '1'.repeat(64), size: 5_000_000, type: 'application/octet-stream' }],
        ],
        redirects: [],
        headers: [],
        unserved: [],
      }),
    )
    const stored = await fixture.putBlob(manifest)
    await fixture.publish(host, {}, { manifest: stored, versions: [[1, stored]] })
    const answers = [
      await fixture[protocol](host, '/lost.txt'),
      await fixture[protocol](host, '/lost.txt'),
      await fixture[protocol](host, '/big.bin'),
      await fixture[protocol](host, '/big.bin', { headers: { range: 'bytes=0-9' } }),
      await fixture[protocol](host, '/big.bin', { headers: { range: 'bytes=0-9, 20-29' } }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([500, 500, 500, 500, 500])
    expect(answers[0]!.text).toMatch(/err_\w+/)
    expect((await fixture[protocol](host, '/none')).status).toBe(404)
    expect((await fixture[protocol]('site.localhost', '/')).status).toBe(200)
  })

  test('a blob that is not as large as its manifest says is not served', async () => {
    const host = `lying-${protocol}.localhost`
    const small = await fixture.putBlob(Buffer.alloc(5000, 'a'))
    const large = await fixture.putBlob(Buffer.alloc(3_000_000, 'a'))
    const type = 'application/octet-stream'
    const stored = await fixture.putBlob(
      Buffer.from(
        JSON.stringify({
          v: 1,
          files: [
            ['honest.bin', { hash: small, size: 5000, type }],
            ['short.bin', { hash: small, size: 1, type }],
            ['long.bin', { hash: small, size: 6000, type }],
            ['stream.bin', { hash: large, size: 2_000_000, type }],
          ],
          redirects: [],
          headers: [],
          unserved: [],
        }),
      ),
    )
    await fixture.publish(host, {}, { manifest: stored, versions: [[1, stored]] })
    // What is in memory for one manifest must not be sent for another.
    expect((await fixture[protocol](host, '/honest.bin')).body).toHaveLength(5000)
    for (const name of ['short', 'long']) {
      expect((await fixture[protocol](host, `/${name}.bin`)).status).toBe(500)
      expect((await fixture[protocol](host, `/${name}.bin`, { headers: { range: 'bytes=0-0' } })).status).toBe(500)
    }
    // Begun before anyone can know: broken off instead.
    const broken = await fixture[protocol](host, '/stream.bin').catch(() => undefined)
    expect(broken?.body.length ?? 0).toBeLessThan(2_000_000)
  })
})
