/**
 * Content that was made to be slow: no one but its sender waits. While each attack is under way, others visit a drop,
 * call the API and publish pages and Markdown; their worst wait is compared with what it was before.
 */
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiFor, bundleForm, fileForm } from '../support/api.ts'
import type { Answer } from '../support/client.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { startStack, type Account, type OwnStack, type Published } from '../support/stack.ts'

const SLACK = Number(process.env['FAULT_SLACK'] ?? 1)
/** The worst of the others may take this many times as long as the worst before, and this much more. */
const MAX_FACTOR = 5 * SLACK
const MAX_EXTRA_MS = 250 * SLACK
const CALM_MS = 4000

let stack: OwnStack
let attacker: Account
let other: Account
let drop: Published
let calm: Waits
let pids: Readonly<Record<string, number>>

type Deed = 'visit' | 'api' | 'page' | 'markdown'
type Waits = Record<Deed, number>

beforeAll(async () => {
  stack = await startStack({ workers: 1 })
  attacker = await stack.createAccount('business')
  other = await stack.createAccount('business')
  drop = await stack.publish(other, '<h1>others</h1>')
  pids = stack.pids()
  await observe(sleep(CALM_MS))
  calm = (await observe(sleep(CALM_MS))).waits
})
afterAll(() => stack?.stop())

/** What others meet until `attack` is over. */
async function observe<Result>(attack: Promise<Result>): Promise<{ result: Result; waits: Waits }> {
  const waits: Waits = { visit: 0, api: 0, page: 0, markdown: 0 }
  const api = apiFor(stack, other)
  const site = (await api.create()).json<{ id: string }>()
  let isOver = false
  async function repeat(deed: Deed, pauseMs: number, act: () => Promise<Answer>): Promise<void> {
    while (!isOver) {
      const startedAt = performance.now()
      const { status } = await act()
      waits[deed] = Math.max(waits[deed], performance.now() - startedAt)
      expect(status, deed).toBeLessThan(300)
      await sleep(pauseMs)
    }
  }
  let count = 0
  const others = Promise.all([
    repeat('visit', 20, () => stack.visit(drop.slug)),
    repeat('api', 50, () => stack.fetch('/api/v1/me', { token: other.token })),
    repeat('page', 200, () => api.upload(site.id, fileForm('index.html', `<h1>${++count}</h1>`))),
    repeat('markdown', 200, () => api.upload(site.id, fileForm('index.md', `# ${++count}`))),
  ])
  try {
    return { result: await attack, waits }
  } finally {
    isOver = true
    await others
    await api.delete(site.id)
  }
}

async function expectHarmless(attack: () => Promise<Answer | readonly Answer[]>): Promise<readonly Answer[]> {
  const { result, waits } = await observe(attack())
  const answers = [result].flat()
  for (const { status } of answers) expect(status).toBeLessThan(500)
  for (const deed of Object.keys(waits) as Deed[])
    expect(waits[deed], `${deed}, calm ${calm[deed].toFixed(0)} ms`).toBeLessThanOrEqual(
      MAX_FACTOR * calm[deed] + MAX_EXTRA_MS,
    )
  expect(stack.pids()).toEqual(pids)
  return answers
}

let visitors = 0
const newAddress = (): string => `198.51.100.${++visitors}`

function anonymously(name: string, content: string, from = newAddress()): Promise<Answer> {
  return stack.fetch('/api/v1/drops', { from, body: fileForm(name, content) })
}

async function upload(files: Readonly<Record<string, string>>): Promise<Answer> {
  const api = apiFor(stack, attacker)
  const site = (await api.create()).json<{ id: string }>()
  const answer = await stack.fetch(`/api/v1/sites/${site.id}/upload-bundle`, {
    token: attacker.token,
    body: bundleForm({ 'index.html': '<h1>x</h1>', ...files }),
    // The sender may wait.
    timeoutMs: 300_000,
  })
  await api.delete(site.id)
  return answer
}

async function preview(browser: FormBrowser, text: string): Promise<Answer> {
  const csrf = /name="csrf" value="([^"]+)"/.exec((await browser.open('/')).text())![1]!
  return browser.post('/preview', new URLSearchParams({ csrf, text }))
}

/** Markdown that takes a thread for seconds: emphasis in emphasis. */
const SLOW_MARKDOWN = '*a **a '.repeat(8000)

test('pasted text of comments is shown at once', async () => {
  const browser = new FormBrowser(stack, newAddress())
  const [answer] = await expectHarmless(() => preview(browser, `${'<!---->'.repeat(30)}x`))
  expect(answer!.status).toBe(200)
})

test('six slow previews hold up their own sender', async () => {
  const browser = new FormBrowser(stack, newAddress())
  await preview(browser, 'x')
  await expectHarmless(() => Promise.all(Array.from({ length: 6 }, () => preview(browser, SLOW_MARKDOWN))))
})

test('slow Markdown of one sender leaves a thread to the others', async () => {
  const from = newAddress()
  const send = () => stack.fetch('/api/v1/drops-md', { from, json: { markdown: SLOW_MARKDOWN } })
  await expectHarmless(() => Promise.all(Array.from({ length: 4 }, send)))
})

test.each([
  ['marks above one letter', `<a href="/a${'\u0301'.repeat(40_000)}${'\u0323'.repeat(40_000)}">`],
  ['open SVG elements and end tags of none', `<svg>${'<g>'.repeat(40_000)}${'</x>'.repeat(40_000)}`],
  ['comments that end with a bang', '<!----!>'.repeat(40_000)],
  ['comments in scripts', '<script><!--</script>'.repeat(40_000)],
  ['inputs', '<input '.repeat(250_000)],
  ['one tag of many attributes', `<a ${'b=c '.repeat(450_000)}>`],
])('a page of %s', async (_name, page) => {
  const answers = await expectHarmless(() =>
    Promise.all([anonymously('a.html', page), anonymously('b.html', page), anonymously('c.html', page)]),
  )
  for (const { status } of answers) expect([201, 400]).toContain(status)
})

test('a page of policies is refused', async () => {
  const meta = `<meta http-equiv=content-security-policy content="script-src 'self'">`
  const [answer] = await expectHarmless(() => anonymously('a.html', meta.repeat(5000)))
  expect(answer!.status).toBe(400)
})

test('a stylesheet of comments that never end', async () => {
  const [answer] = await expectHarmless(() => upload({ 'a.css': '/* '.repeat(1_000_000) }))
  expect(answer!.status).toBe(201)
})

test('links times rules', async () => {
  const links = Array.from({ length: 500 }, (_, index) => `<a href="/${'x/'.repeat(400)}${index}">`).join('')
  const rules = Array.from({ length: 2000 }, (_, index) => `/*/${'x/'.repeat(100)}y${index} /b`).join('\n')
  const [answer] = await expectHarmless(() => upload({ 'a.html': links, _redirects: rules }))
  expect(answer!.status).toBe(201)
})

test('rules of blanks', async () => {
  const rules = Array.from({ length: 500 }, (_, index) => `/a${index}${' '.repeat(1980)}b`).join('\n')
  const [answer] = await expectHarmless(() => upload({ _redirects: rules }))
  expect(answer!.status).toBe(201)
})

test('headers that no answer can carry are left out', async () => {
  const lines = Array.from({ length: 450 }, (_, index) => `  x-${index}: ${'v'.repeat(1900)}`)
  const [answer] = await expectHarmless(() => upload({ _headers: ['/*', ...lines].join('\n') }))
  expect(answer!.json<{ report: unknown }>().report).toMatchObject({ warnings: [{ code: 'invalid_rule' }] })
})

test('1,500 pages of 500 links to nowhere', { timeout: 600_000 }, async () => {
  const pages = Object.fromEntries(
    Array.from({ length: 1500 }, (_, page) => [
      `p${page}.html`,
      Array.from({ length: 500 }, (_, link) => `<a href=/m${page}-${link}>`).join(''),
    ]),
  )
  const [answer] = await expectHarmless(() => upload(pages))
  expect(answer!.status).toBe(201)
})

test('an honest site of 4,000 pages is published, with a whole report', { timeout: 600_000 }, async () => {
  const menu = Array.from({ length: 60 }, (_, link) => `<a href="/p${link}">${link}</a>`).join('')
  const pages = Object.fromEntries(
    Array.from({ length: 4000 }, (_, page) => [
      `p${page}.html`,
      `<title>${page}</title>${menu}<p>${'text '.repeat(100)}`,
    ]),
  )
  const [answer] = await expectHarmless(() => upload(pages))
  expect(answer!.json()).toMatchObject({ file_count: 4001, report: { warnings: [] } })
})

test.each([
  ['900,000 unknown arguments', () => `{${Array.from({ length: 900_000 }, (_, index) => `"k${index}":1`).join()}}`],
  ['brackets', () => '['.repeat(4_000_000)],
])('an MCP call of %s is refused at once', async (_name, make) => {
  const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"service_list","arguments":${make()}}}`
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const [answer] = await expectHarmless(() =>
    stack.fetch('/mcp', { token: attacker.token, method: 'POST', body: call, headers }),
  )
  expect(answer!.status).toBe(400)
})

test('answers to bad input echo little of it', async () => {
  const json = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`unknown-${index}`, 1]))
  const answers = await expectHarmless(() =>
    Promise.all([
      stack.fetch('/api/v1/sites', { token: attacker.token, json }),
      anonymously(`${'n'.repeat(10_000)}.exe`, 'x'),
      stack.fetch('/oauth/register', { json }),
    ]),
  )
  for (const { status, body } of answers) {
    expect(status).toBeLessThan(500)
    expect(body.length).toBeLessThan(2500)
  }
})

test('part headers over 16 kB are a bad request', async () => {
  const body = `--b\r\nContent-Disposition: form-data; name="file"; filename="a.html"\r\nx-a: ${'a'.repeat(20_000)}\r\n\r\nx\r\n--b--\r\n`
  const [answer] = await expectHarmless(() =>
    stack.fetch('/api/v1/drops', {
      from: newAddress(),
      method: 'POST',
      body,
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
    }),
  )
  expect(answer!.status).toBe(400)
})
