/** Publishing without an account: the three endpoints, the cookie, the claim link, the limits and the bot check. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fileForm } from '../support/api.ts'
import { FormBrowser, formFields } from '../support/form-browser.ts'
import { sharedStack, startStack, type OwnStack, type Stack } from '../support/stack.ts'
import { badPages } from '../unit/trust/pages.ts'

let stack: Stack

beforeAll(async () => {
  stack = await sharedStack()
})

const drop = (content: string, name = 'page.html', from = '203.0.113.10') =>
  stack.fetch('/api/v1/drops', { body: fileForm(name, content), from })

function namelessForm(content: string): FormData {
  const form = new FormData()
  form.set('file', content)
  return form
}

describe('POST /drops', () => {
  test('the answer says what is wrong with the page, as for an account', async () => {
    const made = await drop('<a href="/missing.html">x</a>', 'a.html', '198.51.100.210')
    expect([made.status, made.json().report.warnings]).toEqual([
      201,
      [expect.objectContaining({ code: expect.stringContaining('missing') })],
    ])
  })

  test('publishes a page for seven days, with the badge', async () => {
    const answer = await drop('<!doctype html><title>Mine</title><p>hello</p>')
    expect(answer.status).toBe(201)
    const made = answer.json()
    expect(made).toMatchObject({
      id: expect.any(String),
      slug: expect.any(String),
      url: `https://${made.slug}.${stack.sitesDomain}:${stack.httpsPort}`,
      claim_url: expect.stringContaining(`${stack.baseUrl}/claim?token=`),
    })
    const days = (Date.parse(made.expires_at) - Date.now()) / 86_400_000
    expect(days).toBeGreaterThan(6.99)
    expect(days).toBeLessThanOrEqual(7)
    const visit = await stack.visit(made.slug)
    expect([visit.status, visit.text().includes('hello'), visit.text().toLowerCase().includes('dropway')]).toEqual([
      200,
      true,
      true,
    ])
  })

  test.each([
    ['a zip', () => fileForm('site.zip', 'PK'), 400, 'unsupported_file_type', 'needs an account'],
    ['an image', () => fileForm('a.png', 'x'), 400, 'unsupported_file_type', '.html'],
    ['more than 2 MB', () => fileForm('a.html', 'x'.repeat(2_000_001)), 413, 'upload_too_large', 'Make it smaller'],
    ['no file', () => new FormData(), 400, 'invalid_request', 'is missing'],
    ['a file without a name', () => namelessForm('<p>hello'), 400, 'invalid_request', 'no filename'],
  ])('%s is refused, and told what to do', async (_, form, status, error, advice) => {
    const answer = await stack.fetch('/api/v1/drops', { body: form() })
    expect([answer.status, answer.json().error]).toEqual([status, error])
    expect(answer.json().detail).toContain(advice)
    expect(answer.json().detail).not.toContain('your plan')
  })

  test('characters that Postgres cannot keep do not stop a page', async () => {
    const page = `<title>a\0b</title><a href="/%00${'x'.repeat(115)}\u{1f600}">`
    expect((await drop(page)).status).toBe(201)
    const answer = await stack.fetch('/api/v1/drops-md', { json: { markdown: '# a\0b' } })
    expect(answer.status).toBe(201)
  })

  test('exactly 2 MB is accepted', async () => {
    expect((await drop('x'.repeat(2_000_000))).status).toBe(201)
  })

  test('a page that steals credentials is refused, and its network must then prove itself', async () => {
    const page = badPages['a bank login that posts elsewhere']!
    const from = '203.0.113.99'
    for (let round = 0; round < 5; round++)
      expect((await drop(page, 'a.html', from)).json()).toMatchObject({ error: 'content_rejected' })
    const asked = await drop('<p>harmless</p>', 'a.html', from)
    expect([asked.status, asked.json().error]).toEqual([403, 'proof_required'])
    const proof = solve(asked.json().challenge, asked.json().bits)
    const proven = await stack.fetch('/api/v1/drops', {
      from,
      headers: { 'dropway-proof': proof },
      body: fileForm('a.html', '<p>harmless</p>'),
    })
    expect(proven.status).toBe(201)
    expect((await drop('<p>someone else</p>')).status).toBe(201)
  })
})

describe('callers with an Origin', () => {
  const publish = (headers: Record<string, string>) =>
    stack.fetch('/api/v1/drops-md', { json: { markdown: 'x' }, headers })

  test('our own pages publish like any tool', async () => {
    expect((await publish({ origin: stack.baseUrl, 'sec-fetch-site': 'same-origin' })).status).toBe(201)
  })
  test('a page of another site must prove itself', async () => {
    const answer = await publish({ origin: 'https://elsewhere.test', 'sec-fetch-site': 'cross-site' })
    expect([answer.status, answer.json().error]).toEqual([403, 'proof_required'])
  })
})

describe('POST /drops-md', () => {
  test('takes 2 MB of text, however long its JSON is, and not more', async () => {
    const publish = (markdown: string) => stack.fetch('/api/v1/drops-md', { json: { markdown } })
    // Six bytes of JSON for each of these.
    expect((await publish('\u0001'.repeat(300_000))).status).toBe(201)
    expect((await publish('x'.repeat(2_000_001))).status).toBe(413)
  })
  test('a refused caller is refused before the body is read', async () => {
    const answer = await stack.fetch('/api/v1/drops-md', {
      body: 'x'.repeat(5_000_000),
      headers: { 'content-type': 'application/json', 'dropway-website': 'https://spam.test' },
    })
    expect(answer.json()).toMatchObject({ error: 'content_rejected' })
  })
  test('renders Markdown with its title', async () => {
    const answer = await stack.fetch('/api/v1/drops-md', { json: { markdown: 'Just **text**', title: 'A <title>' } })
    expect(answer.status).toBe(201)
    const page = (await stack.visit(answer.json().slug)).text()
    expect(page).toContain('<strong>text</strong>')
    expect(page).toContain('A &lt;title&gt;')
  })
  test.each([[{}], [{ markdown: 1 }], [{ markdown: '' }], [{ markdown: 'x', extra: 1 }]])('%j is 400', async (json) => {
    expect((await stack.fetch('/api/v1/drops-md', { json })).json()).toMatchObject({ error: 'invalid_request' })
  })
})

describe('GET /drops', () => {
  test('shows what this browser made, and no one else', async () => {
    const browser = new FormBrowser(stack, '203.0.113.11')
    const made = (await browser.open('/api/v1/drops', { body: fileForm('a.html', '<title>Mine</title>') })).json()
    expect((await browser.open('/api/v1/drops')).json()).toEqual([
      {
        id: made.id,
        slug: made.slug,
        url: made.url,
        title: 'Mine',
        created_at: expect.any(String),
        expires_at: made.expires_at,
        views: 0,
        state: 'live',
        claimable: true,
      },
    ])
    expect((await stack.fetch('/api/v1/drops')).json()).toEqual([])
    expect(
      (await stack.fetch('/api/v1/drops', { headers: { cookie: '__Host-dropway_anonymous=forged.cookie' } })).json(),
    ).toEqual([])
  })
})

describe('DELETE /drops', () => {
  const remove = (token: string) => stack.fetch(`/api/v1/drops?token=${token}`, { method: 'DELETE' })

  test('whoever has the claim link deletes the drop, once and for good', async () => {
    const made = (await stack.fetch('/api/v1/drops', { body: fileForm('a.html', '<title>Mistake</title>') })).json()
    const token = new URL(made.claim_url).searchParams.get('token')!
    expect((await remove(`${token}x`)).status).toBe(404)
    expect((await stack.visit(made.slug)).status).toBe(200)
    expect((await remove(token)).status).toBe(204)
    expect((await stack.visit(made.slug)).status).toBe(410)
    expect((await remove(token)).status).toBe(404)
  })

  test('a drop that was claimed is deleted by its account alone', async () => {
    const made = (await stack.fetch('/api/v1/drops', { body: fileForm('a.html', '<title>Kept</title>') })).json()
    const token = new URL(made.claim_url).searchParams.get('token')!
    const account = await stack.createAccount('free', { password: 'correct horse battery' })
    const browser = new FormBrowser(stack, '203.0.113.12')
    await browser.send('/signin', { email: account.email, password: 'correct horse battery' })
    expect((await browser.send(`/claim?token=${token}`, {}, '/claim')).status).toBe(303)
    expect((await remove(token)).status).toBe(404)
    expect((await stack.visit(made.slug)).status).toBe(200)
  })

  test.each(['/api/v1/drops', '/api/v1/drops?token='])('%s names no drop', async (path) => {
    expect((await stack.fetch(path, { method: 'DELETE' })).status).toBe(path.endsWith('=') ? 404 : 400)
  })
})

describe('limits', () => {
  let limited: OwnStack
  beforeAll(async () => {
    limited = await startStack({
      database: 'shared',
      operator: true,
      env: {
        ANONYMOUS_PER_HOUR: '3',
        ANONYMOUS_NETWORK_STORAGE_MB: '1',
        UPLOADS_PER_HOUR: '2',
        MCP_ANONYMOUS_PER_HOUR: '6',
      },
    })
  })
  afterAll(() => limited.stop())

  test('one network gets 429 with Retry-After; a neighbouring /64 does not', async () => {
    const publish = (from: string) => limited.fetch('/api/v1/drops', { body: fileForm('a.html', 'x'), from })
    for (let round = 0; round < 3; round++) expect((await publish(`2001:db8:1:1::${round}`)).status).toBe(201)
    const refused = await publish('2001:db8:1:1:ffff::9')
    expect([refused.status, refused.json().error, Number(refused.header('retry-after')) > 0]).toEqual([
      429,
      'rate_limited',
      true,
    ])
    expect((await publish('2001:db8:1:2::1')).status).toBe(201)
  })

  test('assistants without an account share the bucket of their network, and are told when to come back and how to sign in', async () => {
    const from = '2001:db8:7:7::1'
    const call = () => callAnonymously(limited, { content: '# Hello' }, { from })
    expect((await limited.fetch('/api/v1/drops', { body: fileForm('a.html', 'x'), from })).status).toBe(201)
    expect([(await call()).isError, (await call()).isError]).toEqual([undefined, undefined])
    const refused = await call()
    expect(refused.isError).toBe(true)
    expect(refused.content[0]?.text).toMatch(
      /^rate_limited: .*Come back in \d+ minutes \(at 20\d\d-.*Z\)\. Or sign in at https:.*\/mcp, /,
    )
    expect((await limited.fetch('/api/v1/drops', { body: fileForm('a.html', 'x'), from })).status).toBe(429)
  })

  test('all networks together have a limit of their own, which one network cannot use up for others', async () => {
    const call = (network: number) =>
      callAnonymously(limited, { content: '# Hello' }, { from: `2001:db8:8:${network}::1` })
    const outcomes: (boolean | undefined)[] = []
    // Two of six are taken by the test before, if it ran.
    for (let network = 0; network < 7; network++) outcomes.push((await call(network)).isError)
    expect(outcomes[0]).toBe(undefined)
    expect(outcomes.at(-1)).toBe(true)
    const { token } = await limited.createAccount('plus')
    expect((await limited.fetch('/api/v1/sites', { token, json: {} })).status).toBe(201)
  })

  test('a page that is one too many comes back with its text, without scripts too, also beside a file', async () => {
    const browser = new FormBrowser(limited, '203.0.113.60')
    const paste = async (file?: string) => {
      const form = new FormData()
      for (const [name, value] of Object.entries(formFields((await browser.open('/')).text(), '/drop')))
        form.append(name, value)
      if (file !== undefined) form.append('file', new File([file], 'a.html', { type: 'text/html' }))
      form.append('text', '# The fourth of an hour')
      return browser.open('/drop', { body: form, headers: { origin: limited.baseUrl } })
    }
    for (let round = 0; round < 3; round++) expect((await paste()).status).toBe(303)
    for (const file of [undefined, '<p>A file beside it</p>']) {
      const refused = await paste(file)
      expect([refused.status, Number(refused.header('retry-after')) > 0]).toEqual([429, true])
      expect(refused.text()).toContain('# The fourth of an hour</textarea>')
    }
  })

  test('one network stores so much and no more, until it signs in or its drops expire', async () => {
    const publish = (from: string) =>
      limited.fetch('/api/v1/drops', { body: fileForm('a.html', 'x'.repeat(1_100_000)), from })
    expect((await publish('203.0.113.50')).status).toBe(201)
    const refused = await publish('203.0.113.50')
    expect([refused.status, refused.json().error, Number(refused.header('retry-after')) > 0]).toEqual([
      429,
      'rate_limited',
      true,
    ])
    expect((await publish('203.0.113.51')).status).toBe(201)
  })

  test('an organisation has a number of uploads per hour', async () => {
    const { token } = await limited.createAccount('plus')
    const { id } = (await limited.fetch('/api/v1/sites', { token, json: {} })).json<{ id: string }>()
    const upload = () => limited.fetch(`/api/v1/sites/${id}/upload`, { token, body: fileForm('a.html', 'x') })
    expect([(await upload()).status, (await upload()).status]).toEqual([201, 201])
    const refused = await upload()
    expect([refused.status, Number(refused.header('retry-after')) > 0]).toEqual([429, true])
  })

  test('an account is not governed by it', async () => {
    const { token } = await limited.createAccount('plus')
    for (let round = 0; round < 5; round++)
      expect((await limited.fetch('/api/v1/sites', { token, json: {} })).status).toBe(201)
  })
})

interface ToolAnswer {
  readonly isError?: boolean
  readonly content: readonly { readonly text: string }[]
}

async function callAnonymously(
  on: Stack,
  args: Record<string, unknown>,
  { from }: { from: string },
): Promise<ToolAnswer> {
  const params = { name: 'service_publish_page', arguments: args }
  const answer = await on.fetch('/mcp/anonymous', {
    json: { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
    headers: { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' },
    from,
  })
  return resultOf(answer.text())
}

/** The result of an answer that is JSON, or one event with it. */
function resultOf(text: string): ToolAnswer {
  const data = /^data: (.*)$/m.exec(text)?.[1] ?? text
  return (JSON.parse(data) as { result: ToolAnswer }).result
}

function solve(challenge: string, bits: number): string {
  for (let nonce = 0; ; nonce++) {
    const proof = `${challenge}:${nonce}`
    const head = createHash('sha256').update(proof).digest().readUInt32BE(0)
    if (Math.clz32(head) >= bits) return proof
  }
}
