/** Content and bodies that were made to be slow or wrong get a plain answer. What others notice: test/faults. */
import { beforeAll, describe, expect, test } from 'vitest'
import { apiFor, bundleForm, fileForm } from '../support/api.ts'
import type { Answer } from '../support/client.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let account: Account
beforeAll(async () => {
  stack = await sharedStack()
  account = await stack.createAccount('plus')
})

const FROM = '203.0.113.77'

test('a preview of comments is shown', async () => {
  const browser = new FormBrowser(stack, FROM)
  const csrf = /name="csrf" value="([^"]+)"/.exec((await browser.open('/')).text())![1]!
  const text = `${'<!---->'.repeat(1000)}x`
  expect((await browser.post('/preview', new URLSearchParams({ csrf, text }))).status).toBe(200)
})

describe('pages', () => {
  const publish = (page: string): Promise<Answer> =>
    stack.fetch('/api/v1/drops', { from: FROM, body: fileForm('a.html', page) })

  test.each([
    ['marks above one letter', `<a href="/a${'\u0301'.repeat(40_000)}${'\u0323'.repeat(40_000)}">`],
    ['open SVG elements and end tags of none', `<svg>${'<g>'.repeat(40_000)}${'</x>'.repeat(40_000)}`],
    ['comments that end with a bang', '<!----!>'.repeat(40_000)],
    ['comments in scripts', '<script><!--</script>'.repeat(40_000)],
  ])('of %s are published', async (_name, page) => expect((await publish(page)).status).toBe(201))

  test('of more policies than a page has are refused', async () => {
    const answer = await publish(`<meta http-equiv=content-security-policy content="script-src 'self'">`.repeat(100))
    expect([answer.status, answer.json().detail]).toEqual([400, expect.stringContaining('Content-Security-Policy')])
  })
})

test('rules that are hard to read cost the publish nothing', async () => {
  const api = apiFor(stack, account)
  const { id } = (await api.create()).json<{ id: string }>()
  const answer = await api.uploadBundle(
    id,
    bundleForm({
      'index.html': Array.from({ length: 500 }, (_, index) => `<a href="/${'x/'.repeat(300)}${index}">`).join(''),
      _redirects: Array.from({ length: 500 }, (_, index) => `/a${index}${' '.repeat(1980)}b`).join('\n'),
      _headers: `/*\n${Array.from({ length: 400 }, (_, index) => `  x-${index}: ${'v'.repeat(500)}`).join('\n')}`,
      'a.css': '/* '.repeat(200_000),
    }),
  )
  expect(answer.status).toBe(201)
  const { warnings } = answer.json<{ report: { warnings: { code: string; path?: string }[] } }>().report
  expect(warnings).toContainEqual(expect.objectContaining({ code: 'invalid_rule', path: '_redirects' }))
  await api.delete(id)
})

test.each([
  ['too many values', `{${Array.from({ length: 20_000 }, (_, index) => `"k${index}":1`).join()}}`],
  ['brackets', '['.repeat(1_000_000)],
])('an MCP call of %s is a bad request', async (_name, args) => {
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"service_list","arguments":${args}}}`
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const answer = await stack.fetch('/mcp', { token: account.token, method: 'POST', body, headers })
  expect([answer.status, answer.json().error]).toEqual([400, 'invalid_json'])
})

test('an answer to bad input echoes little of it', async () => {
  const json = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`unknown-${index}`, 1]))
  const answer = await stack.fetch('/api/v1/sites', { token: account.token, json })
  expect(answer.status).toBe(400)
  expect(answer.body.length).toBeLessThan(2500)
})

test('part headers over 16 kB are a bad request', async () => {
  const head = `Content-Disposition: form-data; name="file"; filename="a.html"\r\nx-a: ${'a'.repeat(20_000)}`
  const answer = await stack.fetch('/api/v1/drops', {
    from: FROM,
    method: 'POST',
    body: `--b\r\n${head}\r\n\r\nx\r\n--b--\r\n`,
    headers: { 'content-type': 'multipart/form-data; boundary=b' },
  })
  expect(answer.status).toBe(400)
})
