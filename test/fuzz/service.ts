/** What is fuzzed against a running service: any bytes get an answer below 500, and no process ends. */
import { existsSync } from 'node:fs'
import { FormBrowser } from '../support/form-browser.ts'
import { cpuMs, processTree } from '../support/processes.ts'
import { startStack, type Account, type OwnStack } from '../support/stack.ts'
import type { Finding, FuzzReport } from './fuzz.ts'
import { createDraw, mutate } from './mutate.ts'
import { readCorpus } from './corpus.ts'

interface Surroundings {
  readonly stack: OwnStack
  readonly account: Account
  readonly siteId: string
  readonly browser: FormBrowser
  /** A network that has used up no limit. */
  readonly from: string
  readonly random: (below: number) => number
}

interface ServiceTarget {
  readonly name: string
  readonly seeds: readonly string[]
  readonly words: readonly string[]
  send(input: Buffer, surroundings: Surroundings): Promise<{ status: number }>
}

const MAX_BYTES = 20_000
const AT_ONCE = 4
const FORM = 'application/x-www-form-urlencoded'

const post = (
  { stack, account, from }: Surroundings,
  path: string,
  body: Buffer,
  type: string,
  method = 'POST',
): Promise<{ status: number }> =>
  stack.fetch(path, { method, body, token: account.token, from, headers: { 'content-type': type } })

const JSON_ENDPOINTS: readonly ((siteId: string) => [method: string, path: string])[] = [
  () => ['POST', '/api/v1/sites'],
  (id) => ['PATCH', `/api/v1/sites/${id}`],
  (id) => ['POST', `/api/v1/sites/${id}/uploads`],
  (id) => ['POST', `/api/v1/sites/${id}/domains`],
  () => ['POST', '/api/v1/drops-md'],
  () => ['POST', '/oauth/register'],
]

export const serviceTargets: readonly ServiceTarget[] = [
  {
    name: 'json-bodies',
    seeds: [
      '{"slug":"abc","name":"d"}',
      '{"password":null,"spa_fallback":true,"analytics":{"plausible":{"domain":"a.example"}}}',
      '{"files":[{"path":"index.html","sha256":"00","size":1}],"message":"m"}',
      '{"name":"www.example.com"}',
      '{"markdown":"# a","title":"b"}',
      '{"redirect_uris":["https://a.example/b"],"client_name":"c"}',
    ],
    words: ['null', '[]', '{}', '""', '-1', '1e999', '\\u0000', '\\ud800', '"__proto__":', ',', ':', '[', '{'],
    send(input, surroundings) {
      const [method, path] = JSON_ENDPOINTS[surroundings.random(JSON_ENDPOINTS.length)]!(surroundings.siteId)
      return post(surroundings, path, input, 'application/json', method)
    },
  },
  {
    name: 'mcp',
    seeds: [
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"service_list","arguments":{}}}',
      '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}',
      '{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"service_publish","arguments":{"content":"# a","slug":"fuzz-a"}}}',
      '[{"jsonrpc":"2.0","method":"ping"}]',
    ],
    words: [
      '"id":null',
      '"method":',
      '"params":',
      '[]',
      '{}',
      'tools/list',
      'service_delete',
      '\\u0000',
      '"arguments":',
    ],
    send: (input, { stack, account, from }) =>
      stack.fetch('/mcp', {
        method: 'POST',
        body: input,
        token: account.token,
        from,
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      }),
  },
  {
    name: 'oauth-forms',
    seeds: [
      'grant_type=authorization_code&code=a&redirect_uri=https%3A%2F%2Fa&client_id=b&code_verifier=c',
      'grant_type=refresh_token&refresh_token=a&client_id=b',
      'token=a&token_type_hint=refresh_token',
      'client_id=a&scope=mcp',
    ],
    words: ['&', '=', '%00', '%', '+', 'client_id=', 'grant_type=', 'scope=', '\u0000', '[]'],
    send(input, surroundings) {
      const paths = ['/oauth/token', '/oauth/revoke', '/oauth/device', '/oauth/authorize']
      const path = paths[surroundings.random(paths.length)]!
      if (path !== '/oauth/authorize') return post(surroundings, path, input, FORM)
      return surroundings.browser.open(
        `${path}?${encodeURI(input.toString('latin1').slice(0, 4000)).replaceAll('#', '%23')}`,
      )
    },
  },
  {
    name: 'dashboard-forms',
    seeds: ['email=a%40b.example&password=c', 'text=%23+a&title=b', 'token=a', 'slug=abc&reason=d'],
    words: ['&', '=', '%00', '%', 'csrf=', '\u0000', '%F0%9F', '__proto__=a'],
    send(input, surroundings) {
      const paths = ['/preview', '/login', '/signup', '/forgot', '/reset', '/claim', '/report', '/']
      return post(surroundings, paths[surroundings.random(paths.length)]!, input, FORM)
    },
  },
  {
    name: 'uploads',
    seeds: [
      '--b\r\nContent-Disposition: form-data; name="file"; filename="a.html"\r\n\r\n<h1>x</h1>\r\n--b--\r\n',
      '--b\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nx\r\n--b\r\nContent-Disposition: form-data; name="paths"\r\n\r\nindex.html\r\n--b--\r\n',
    ],
    words: ['--b', '\r\n', 'filename="', 'name="paths"', 'name="file"', '.zip', '.md', '\u0000', '../', 'PK\x03\x04'],
    send(input, surroundings) {
      const { siteId } = surroundings
      const paths = ['/api/v1/drops', `/api/v1/sites/${siteId}/upload`, `/api/v1/sites/${siteId}/upload-bundle`]
      return post(surroundings, paths[surroundings.random(paths.length)]!, input, 'multipart/form-data; boundary=b')
    },
  },
]

export async function fuzzService(
  target: ServiceTarget,
  { seconds, seed }: { seconds: number; seed: number },
): Promise<FuzzReport> {
  const random = createDraw(seed)
  // All come from one address, and each on a connection of its own.
  const limits = { ANONYMOUS_PER_HOUR: '1000000', EDGE_HANDSHAKES_PER_IP: '1000000' }
  const stack = await startStack({ env: limits })
  const pauses = watchPauses()
  const findings = new Map<string, Finding>()
  const corpus = [...target.seeds.map((text) => Buffer.from(text)), ...readCorpus(target.name)]
  const words = target.words.map((word) => Buffer.from(word))
  let runs = 0
  let spentSeconds = 0
  try {
    const account = await stack.createAccount('business')
    const site = await stack.fetch('/api/v1/sites', { token: account.token, json: {} })
    const siteId = site.json<{ id: string }>().id
    const { control, edge } = stack.pids()
    const planes = [control!, edge!]
    const processes = planes.flatMap(processTree)
    const secondsOfPlanes = (): number => planes.reduce((sum, pid) => sum + cpuMs(pid), 0) / 1000
    const spentBefore = secondsOfPlanes()
    const found = (kind: Finding['kind'], message: string, input: Buffer): void =>
      void (findings.has(message) || findings.set(message, { target: target.name, kind, message, input }))

    async function problemOf(input: Buffer): Promise<string | undefined> {
      const from = `198.18.${random(256)}.${random(256)}`
      const browser = new FormBrowser(stack, from)
      const pausesBefore = pauses.count
      runs++
      try {
        const { status } = await target.send(input, { stack, account, siteId, browser, from, random })
        return status >= 500 ? `answered ${status}` : undefined
      } catch (error) {
        return pauses.count === pausesBefore ? String(error) : undefined
      }
    }

    async function attack(): Promise<void> {
      while (spentSeconds < seconds && findings.size < 10) {
        const input = mutate(corpus[random(corpus.length)]!, random, { corpus, words }, MAX_BYTES)
        const problem = await problemOf(input)
        if (problem !== undefined) found('crash', problem, input)
        if (!processes.every(isRunning)) return found('crash', 'a process ended', input)
        spentSeconds = secondsOfPlanes() - spentBefore
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, attack))
  } finally {
    pauses.stop()
    await stack.stop()
  }
  return { runs, cpuSeconds: spentSeconds, discovered: [], findings: [...findings.values()] }
}

function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}`)
}

const TICK_MS = 1000
const PAUSE_MS = 10_000

/** Counts how often this process stood still: what was on its way then proves nothing about the service. */
function watchPauses(): { readonly count: number; stop(): void } {
  let count = 0
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    if (now - last > PAUSE_MS) count++
    last = now
  }, TICK_MS)
  return {
    get count() {
      return count
    },
    stop: () => clearInterval(timer),
  }
}
