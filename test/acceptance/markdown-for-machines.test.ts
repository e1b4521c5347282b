/** What machines get of a drop: Markdown for those who ask for it, a list of pages, and what their owner allows. */
import { brotliDecompressSync } from 'node:zlib'
import { countTokens } from 'gpt-tokenizer'
import { beforeAll, describe, expect, test } from 'vitest'
import { sharedStack, type Account, type Published, type Stack } from '../support/stack.ts'

const FILES = {
  'index.html':
    '<!doctype html><title>Our docs</title><meta name="description" content="All about it"><nav><a href="/">Home</a></nav><main><h1>Welcome</h1><p>See the <a href="guide/">guide</a>.</p></main>',
  'guide/index.html': `<!doctype html><title>Guide</title><main><h1>Guide</h1>${'<p>Every sentence of the guide is here.</p>'.repeat(60)}</main>`,
  'about.html': '<!doctype html><title>About</title><h1>About us</h1>',
  'about.md': '# About, as we wrote it\n',
  '404.html': '<!doctype html><title>Not here</title><h1>Nothing here</h1>',
}
const MARKDOWN = { accept: 'text/markdown' }

let stack: Stack
let account: Account
let site: Published

beforeAll(async () => {
  stack = await sharedStack()
  account = await stack.createAccount('plus')
  site = await stack.publish(account, FILES)
})

const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  stack.visit(site.slug, path, { headers, method })
const patch = (json: Record<string, unknown>, of = site) =>
  stack.fetch(`/api/v1/sites/${of.id}`, { method: 'PATCH', token: account.token, json })

describe('a page for those who ask for Markdown', () => {
  test('is its main content, with absolute links, its own tag, and what it costs a model', async () => {
    const answer = await get('/', MARKDOWN)
    expect(answer.text()).toBe(`# Welcome\n\nSee the [guide](${site.url}/guide/).\n`)
    expect(answer.header('content-type')).toBe('text/markdown; charset=utf-8')
    expect(answer.header('vary')).toContain('accept')
    const tokens = Number(answer.header('x-markdown-tokens'))
    expect(tokens / countTokens(answer.text())).toBeGreaterThan(0.5)
    expect(tokens / countTokens(answer.text())).toBeLessThan(1.5)
    const page = await get('/')
    expect([page.header('content-type'), page.text().includes('<nav>')]).toEqual(['text/html; charset=utf-8', true])
    expect(page.header('vary')?.split(', ')).toContain('accept')
    expect(page.header('etag')).not.toBe(answer.header('etag'))
  })

  test.each([
    ['*/*', 'text/html'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'text/html'],
    ['text/markdown;q=0.5, */*', 'text/html'],
    ['text/html, text/markdown;q=0.9', 'text/html'],
    ['text/markdown, text/html', 'text/markdown'],
    ['text/markdown;q=0.9, text/html;q=0.9, */*;q=0.1', 'text/markdown'],
    ['text/markdown, text/html;q=0.9, */*;q=0.8', 'text/markdown'],
  ])('Accept: %s → %s', async (accept, type) => {
    expect((await get('/guide/', { accept })).header('content-type')).toContain(type)
  })

  test('conditions, HEAD, ranges and encodings hold for it as for the page', async () => {
    const whole = await get('/guide/', MARKDOWN)
    const etag = whole.header('etag')!
    expect((await get('/guide/', { ...MARKDOWN, 'if-none-match': etag })).status).toBe(304)
    expect((await get('/guide/', { 'if-none-match': etag })).status).toBe(200)
    const head = await get('/guide/', MARKDOWN, 'HEAD')
    expect([head.status, head.header('content-length'), head.body.length]).toEqual([200, String(whole.body.length), 0])
    const part = await get('/guide/', { ...MARKDOWN, range: 'bytes=2-6' })
    expect([part.status, part.text(), part.header('content-range')]).toEqual([
      206,
      'Guide',
      `bytes 2-6/${whole.body.length}`,
    ])
    const packed = await get('/guide/', { ...MARKDOWN, 'accept-encoding': 'br' })
    expect([packed.header('content-encoding'), packed.header('etag') === etag]).toEqual(['br', false])
    expect(brotliDecompressSync(packed.body).equals(whole.body)).toBe(true)
  })

  test("is the publisher's own Markdown where there is some: the file beside the page, or what it was made of", async () => {
    expect((await get('/about', MARKDOWN)).text()).toBe('# About, as we wrote it\n')
    const text = '---\ntitle: Notes\n---\n\n# Notes\n\n- *one*\n'
    const written = await stack.publish(account, { 'index.md': text })
    expect((await stack.visit(written.slug, '/', { headers: MARKDOWN })).text()).toBe(text)
    expect((await stack.visit(written.slug, '/')).text()).toContain('<em>one</em>')
  })

  test('what is no page, and what is not there, is as ever', async () => {
    expect((await get('/about.md')).header('vary') ?? '').not.toMatch(/\baccept\b(?!-)/)
    const missing = await get('/nothing', MARKDOWN)
    expect([missing.status, missing.header('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
  })

  test('a password applies', async () => {
    const closed = await stack.publish(account, { 'index.html': '<h1>Secret plans</h1>' })
    expect((await patch({ password: 'open sesame' }, closed)).status).toBe(200)
    for (const path of ['/', '/llms.txt']) {
      const answer = await stack.visit(closed.slug, path, { headers: MARKDOWN })
      expect([answer.status, answer.text().includes('Secret')]).toEqual([401, false])
    }
  })

  test('a machine that its viewers let in gets it too, and no cache keeps it', async () => {
    const closed = await stack.publish(account, { 'index.html': '<h1>For viewers</h1>' })
    expect((await patch({ access_mode: 'viewers' }, closed)).status).toBe(200)
    expect((await stack.visit(closed.slug, '/', { headers: MARKDOWN })).status).toBe(401)
    const headers = { ...MARKDOWN, authorization: `Bearer ${account.token}` }
    const answer = await stack.visit(closed.slug, '/', { headers })
    expect([answer.status, answer.text(), answer.header('cache-control')]).toEqual([
      200,
      '# For viewers\n',
      'private, no-store',
    ])
  })

  test('a page that is made to be hard to read is sent as it is', async () => {
    const deep = await stack.publish(account, { 'index.html': `${'<div><b>'.repeat(40_000)}Deep down` })
    const answer = await stack.visit(deep.slug, '/', { headers: MARKDOWN })
    expect([answer.status, answer.header('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect((await get('/', MARKDOWN)).text()).toContain('# Welcome')
  })
})

describe('/llms.txt', () => {
  test('lists the pages of a drop that has none, with their titles', async () => {
    const answer = await get('/llms.txt')
    expect([answer.status, answer.header('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
    expect(answer.text()).toBe(
      [
        '# Our docs',
        '',
        '> All about it',
        '',
        'Every page answers `Accept: text/markdown` with Markdown.',
        '',
        '## Pages',
        '',
        `- [Our docs](${site.url}/)`,
        `- [About](${site.url}/about)`,
        `- [Guide](${site.url}/guide/)`,
        '',
      ].join('\n'),
    )
    const etag = answer.header('etag')!
    expect((await get('/llms.txt', { 'if-none-match': etag })).status).toBe(304)
  })

  test("is the drop's own where it has one; a single-page app has one all the same", async () => {
    const own = await stack.publish(account, { 'index.html': '<h1>x</h1>', 'llms.txt': '# Mine' })
    expect((await stack.visit(own.slug, '/llms.txt')).text()).toBe('# Mine')
    const app = await stack.publish(account, { 'index.html': '<title>App</title><div id=app></div>' })
    await patch({ spa_fallback: true }, app)
    expect((await stack.visit(app.slug, '/llms.txt')).text()).toContain('# App')
  })

  test('is off where its owner wishes', async () => {
    const quiet = await stack.publish(account, { 'index.html': '<h1>x</h1>' })
    expect((await stack.visit(quiet.slug, '/llms.txt')).status).toBe(200)
    expect((await patch({ llms_txt: false }, quiet)).json()).toMatchObject({ llms_txt: false })
    expect((await stack.visit(quiet.slug, '/llms.txt')).status).toBe(404)
    expect((await patch({ llms_txt: true }, quiet)).json()).toMatchObject({ llms_txt: true })
    expect((await stack.visit(quiet.slug, '/llms.txt')).status).toBe(200)
  })
})

describe('what machines may do with it', () => {
  test.each([
    ['no-training', 'ai-train=no'],
    ['none', 'ai-train=no, ai-input=no'],
  ])('%s → Content-Signal: %s', async (ai, signal) => {
    const drop = await stack.publish(account, { 'index.html': '<h1>x</h1>' })
    expect((await stack.visit(drop.slug, '/robots.txt')).status).toBe(404)
    expect((await patch({ ai }, drop)).json()).toMatchObject({ ai })
    const robots = await stack.visit(drop.slug, '/robots.txt')
    expect([robots.status, robots.text()]).toEqual([200, `User-agent: *\nContent-Signal: ${signal}\nAllow: /\n`])
    expect((await stack.visit(drop.slug, '/', { headers: MARKDOWN })).header('content-signal')).toBe(signal)
  })

  test("the drop's own robots.txt stays as it is", async () => {
    const drop = await stack.publish(account, { 'index.html': '<h1>x</h1>', 'robots.txt': 'User-agent: *' })
    await patch({ ai: 'none' }, drop)
    expect((await stack.visit(drop.slug, '/robots.txt')).text()).toBe('User-agent: *')
  })

  test.each([{ ai: 'maybe' }, { ai: null }, { llms_txt: 'yes' }])('refused: %j', async (json) => {
    expect((await patch(json)).status).toBe(400)
  })
})
