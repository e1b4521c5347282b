/** The load on a running edge: what is counted, what is advised, and how a run ends. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { columnsOf, pageOf } from '../../../bench/load/page.ts'
import { kindOf } from '../../../bench/load/failures.ts'
import { Latencies } from '../../../bench/load/latencies.ts'
import { createDraw } from '../../../bench/load/requests.ts'
import { summarise, type Measured, type Plan } from '../../../bench/load/summary.ts'
import { Tally, type Slice } from '../../../bench/load/tally.ts'
import { isOnThisMachine, pagesOf, targetOf } from '../../../bench/load/target.ts'
import { probe } from '../../../bench/load/probe.ts'
import { readArguments } from '../../support/arguments.ts'
import { benches, type BenchValues } from '../../../bench/benches.ts'
import { createProgress } from '../../../bench/progress.ts'
import { openLocalCa } from '../../../certs/local/local-ca.ts'
import { systemClock } from '../../../shared/running/clock.ts'

const ROOT = path.resolve(import.meta.dirname, '../../..')

function slice(part: Partial<Slice> & { readonly took?: readonly number[] }): Slice {
  const latencies = new Latencies()
  for (const ms of part.took ?? []) latencies.note(ms)
  const { took: _took, ...rest } = part
  return {
    ...{ thread: 0, index: 0, ms: 1000, latencies: latencies.take(), bytes: 0, statuses: {}, errors: {}, busy: 0.2 },
    ...rest,
  }
}

const PLAN: Plan = {
  url: 'https://my.edge/',
  host: 'my-drop.example',
  protocol: 'HTTP/1.1',
  connections: 10,
  streams: 1,
  threads: 1,
  pages: 1,
  wantedSeconds: 2,
  isOnThisMachine: false,
  cores: 4,
}

function measured(slices: readonly Slice[], part: Partial<Measured> = {}): Measured {
  const tally = new Tally()
  for (const each of slices) tally.add(each)
  return { plan: PLAN, tally, ending: 'over', machineBusy: 0.3, measuredAt: '2026-11-17T07:00:00.000Z', ...part }
}

test('percentiles are right to two percent, and the longest is exact', () => {
  const latencies = new Latencies()
  for (let ms = 1; ms <= 1000; ms++) latencies.note(ms)
  for (const share of [0.5, 0.9, 0.99, 0.999]) {
    expect(latencies.quantileMs(share)).toBeGreaterThanOrEqual(share * 1000)
    expect(latencies.quantileMs(share)).toBeLessThanOrEqual(share * 1000 * 1.03)
  }
  expect(latencies.maxMs).toBe(1000)
  expect(latencies.quantileMs(1)).toBe(1000)
  expect(new Latencies().quantileMs(0.99)).toBe(0)
})

test('what threads send counts as if one had seen it, and nothing is counted twice', () => {
  const [one, other] = [new Latencies(), new Latencies()]
  for (const ms of [1, 2, 3]) one.note(ms)
  const taken = one.take()
  expect(one.total).toBe(0)
  other.note(9)
  other.add(taken)
  expect([other.total, other.maxMs]).toEqual([4, 9])
  expect(other.buckets().reduce((sum, { count }) => sum + count, 0)).toBe(4)
  expect(columnsOf(other.buckets()).reduce((sum, { count }) => sum + count, 0)).toBe(4)
})

test('threads are put together second by second, and failures by kind', () => {
  const { tally } = measured([
    slice({ thread: 0, index: 0, took: [1, 2], statuses: { 200: 1, 404: 1 }, busy: 0.5 }),
    slice({
      thread: 1,
      index: 0,
      ms: 500,
      took: [4],
      statuses: { 304: 1 },
      errors: { 'connection reset': 3 },
      busy: 1,
    }),
    slice({ thread: 0, index: 1, took: [8], statuses: { 200: 1 }, busy: 0.1 }),
  ])
  expect(tally.answers).toBe(4)
  expect(tally.failures).toBe(4)
  expect(tally.failuresByKind()).toEqual([
    ['connection reset', 3],
    ['answered 404', 1],
  ])
  expect(
    tally.seconds().map(({ answersPerSecond, failuresPerSecond }) => [answersPerSecond, failuresPerSecond]),
  ).toEqual([
    [4, 7],
    [1, 0],
  ])
  expect(tally.generatorBusy()).toBe(1)
  expect(tally.elapsedSeconds).toBe(2)
})

describe('advice', () => {
  const good = { took: Array.from({ length: 20_000 }, () => 5), statuses: { 200: 20_000 } }
  test.each<[string, Measured, RegExp[]]>([
    ['nothing to say', measured([slice(good)]), []],
    [
      'a busy generator',
      measured([slice({ ...good, busy: 0.97 })]),
      [/generator was the bottleneck: .* 97 % .*--threads 2/],
    ],
    [
      'a busy generator on all cores',
      measured([slice({ ...good, busy: 0.97 })], { plan: { ...PLAN, threads: 4 } }),
      [/further machines/],
    ],
    [
      'one machine for both',
      measured([slice(good)], { plan: { ...PLAN, isOnThisMachine: true }, machineBusy: 0.99 }),
      [/share the 4 cores of this machine/],
    ],
    ['429', measured([slice({ ...good, statuses: { 200: 19_000, 429: 1000 } })]), [/EDGE_REQUESTS_PER_IP/]],
    ['503', measured([slice({ ...good, statuses: { 200: 19_000, 503: 1000 } })]), [/5xx/]],
    [
      'connections cut off',
      measured([slice({ ...good, errors: { 'connection reset': 5 } })]),
      [/EDGE_CONNECTIONS_PER_IP/],
    ],
    ['few answers', measured([slice({ took: [1, 2], statuses: { 200: 2 } })]), [/2 answers are few/]],
    [
      'an edge that is gone',
      measured([slice({ errors: { 'connection refused': 9 }, busy: 1 })], { ending: 'given up' }),
      [/ended early/],
    ],
    ['no answer at all', measured([slice({})]), [/before the time was over/]],
  ])('%s', (_, given, expected) => {
    const { advice } = summarise(given)
    expect(advice).toHaveLength(expected.length)
    for (const [index, pattern] of expected.entries()) expect(advice[index]).toMatch(pattern)
  })
})

test.each([
  [{ code: 'ECONNREFUSED', message: '' }, 'connection refused'],
  [
    { code: 'ECONNRESET', message: 'Client network socket disconnected before secure TLS connection' },
    'connection reset',
  ],
  [{ code: 'EMFILE', message: '' }, 'too many open files on this machine'],
  [{ code: 'DEPTH_ZERO_SELF_SIGNED_CERT', message: '' }, 'certificate not trusted'],
  [
    { code: 'ERR_HTTP2_STREAM_ERROR', message: 'Stream closed with error code NGHTTP2_REFUSED_STREAM' },
    'stream reset: NGHTTP2_REFUSED_STREAM',
  ],
  [{ code: 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME', message: '4073E2F0:error:0A00' }, 'TLS: tlsv1 unrecognized name'],
  [{ code: 'EPROTO', message: '' }, 'no TLS is spoken there'],
  [{ code: 'ENEW', message: 'unheard of' }, 'ENEW'],
])('%j is called %s', (error, kind) => {
  expect(kindOf(Object.assign(new Error(error.message), error))).toBe(kind)
})

test('a list names paths and addresses; a line that is neither is named', () => {
  const own = { host: 'my.edge:8443', path: '/' }
  expect(pagesOf('/a b?c#d\r\n\n# popular first\nhttps://other.example/x\n', own)).toEqual([
    { host: 'my.edge:8443', path: '/a%20b?c' },
    { host: 'other.example', path: '/x' },
  ])
  expect(pagesOf('/a\nindex.html\n', own)).toEqual({
    wrong: 'line 2: “index.html” is neither a path that begins with / nor an address',
  })
})

test('pages are asked for by Zipf’s law, the same for the same seed', () => {
  const pages = Array.from({ length: 100 }, (_, index) => ({ host: 'h', path: `/${index}` }))
  const drawn = (seed: number): string[] => {
    const draw = createDraw(pages, seed)
    return Array.from({ length: 20_000 }, () => draw().path)
  }
  const first = drawn(1)
  const times = (name: string): number => first.filter((path) => path === name).length
  expect(times('/0') / times('/1')).toBeGreaterThan(1.5)
  expect(times('/0') / times('/9')).toBeGreaterThan(5)
  expect(times('/99')).toBeGreaterThan(0)
  expect(drawn(1)).toEqual(first)
  expect(drawn(2)).not.toEqual(first)
})

test('the page needs nothing from elsewhere, and shows what was measured as text', () => {
  const plan = { ...PLAN, url: 'https://my.edge/?<script>"', host: '<b>' }
  const page = pageOf(
    summarise(
      measured(
        [
          slice({ took: [1, 2, 300], statuses: { 200: 2, 500: 1 }, errors: { '<i>': 1 } }),
          slice({ index: 1, took: [4], statuses: { 200: 1 } }),
        ],
        {
          plan,
        },
      ),
    ),
  )
  expect(page).not.toMatch(/<script|<b>|<i>|<link|src=|@import|url\(|NaN|Infinity|undefined/)
  expect(page.match(/<svg /g)).toHaveLength(3)
  expect(page).toContain('prefers-color-scheme: dark')
  expect(page).toContain('Failures by kind')
  // With nothing to draw, it still is a page.
  expect(pageOf(summarise(measured([])))).not.toMatch(/<svg |NaN|Infinity|undefined/)
})

test('progress is one line of a terminal, or a plain line every five seconds, without escape sequences', () => {
  for (const isTTY of [true, false]) {
    let written = ''
    let nowMs = 0
    const progress = createProgress({ isTTY, columns: 20, write: (text: string) => (written += text) }, () => nowMs)
    for (nowMs = 0; nowMs < 11_000; nowMs += 1000) progress.show(`${nowMs / 1000} s of a long run, and more`)
    progress.clear()
    expect(written).not.toContain('\u001b')
    if (isTTY) expect(written).toMatch(/^(\r.{19}){11}\r {19}\r$/)
    else expect(written.split('\n').map((line) => line.slice(0, 4))).toEqual(['0 s ', '5 s ', '10 s', ''])
  }
})

describe('a run', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-load-'))
  const servers: Server[] = []
  let plain = 0
  let secure = 0

  beforeAll(async () => {
    const answer = (request: { url?: string | undefined }, response: http.ServerResponse): void => {
      // The one ends its connection, which is no failure of the next.
      const [status, end] = request.url === '/missing' ? [404, { connection: 'close' }] : [200, {}]
      // Not at once: a load of some seconds is none for this machine then, and stands some of them still.
      setTimeout(() => response.writeHead(status, { 'content-length': '5', ...end }).end('hello'), 5)
    }
    const { cert, key } = openLocalCa(path.join(folder, 'ca'), systemClock).issue(['localhost'])
    const tlsServer = http2.createSecureServer({ cert, key }, (request, response) =>
      answer(request, response as unknown as http.ServerResponse),
    )
    servers.push(http.createServer(answer), tlsServer as unknown as Server)
    for (const server of servers) await once(server.listen(0, '127.0.0.1'), 'listening')
    ;[plain, secure] = servers.map((server) => (server.address() as AddressInfo).port) as [number, number]
  })

  afterAll(() => {
    for (const server of servers) server.close()
    rmSync(folder, { recursive: true, force: true })
  })

  async function load(...args: string[]): Promise<{ code: number; output: string; errors: string }> {
    const child = spawn(process.execPath, [path.join(ROOT, 'bench/main.ts'), 'load', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let [output, errors] = ['', '']
    child.stdout.on('data', (chunk) => (output += String(chunk)))
    child.stderr.on('data', (chunk) => (errors += String(chunk)))
    const [code] = (await once(child, 'close')) as [number]
    return { code, output, errors }
  }

  function valuesOf(args: readonly string[]): BenchValues<'load'> {
    const read = readArguments(benches.load.options, args)
    if (read.kind !== 'run') throw new Error('not understood')
    return read.values
  }

  test('over HTTP/1.1 by a list counts what failed, writes the page, and ends with 1', async () => {
    const list = path.join(folder, 'list.txt')
    const report = path.join(folder, 'out.html')
    writeFileSync(list, '/\n/missing\n')
    const { code, output, errors } = await load(
      ...[
        '--url',
        `http://127.0.0.1:${plain}/`,
        '--duration',
        '4s',
        '--connections',
        '2',
        '--zipf',
        list,
        '--report',
        report,
      ],
    )
    expect(errors).toContain('answers 200 with 5 bytes from 127.0.0.1')
    expect(output).toMatch(/p99\.9 +[\d.,]+ ms/)
    // Advice may follow, on a machine that has nothing left.
    expect(output).toMatch(/\nFailures\n {2}answered 404 +[\d,]+\n(?:\n|$)/)
    expect(readFileSync(report, 'utf8')).toContain('<svg ')
    expect(code).toBe(1)
  })

  test('over HTTP/2 takes a self-signed certificate only when told, and ends with 0 when all was well', async () => {
    const told = [
      '--url',
      `https://localhost:${secure}/`,
      '--duration',
      '4s',
      '--connections',
      '2',
      '--http2',
      '--streams',
      '3',
    ]
    const target = await targetOf(valuesOf(told))
    await expect(probe(target)).rejects.toThrow(/^The certificate at .*--insecure takes it\.$/)
    const { code, output } = await load(...told, '--insecure')
    expect(output).toMatch(/^HTTP\/2, 2 connections of 3 streams/)
    expect(output).toMatch(/failures +0\n/)
    expect(code).toBe(0)
  })

  const present = Object.values(os.networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address))
  test.each(['127.0.0.1', '::1'].filter((address) => present.includes(address)))(
    'finds an edge that listens at %s alone, whatever a resolver says of localhost',
    async (address) => {
      const server = http.createServer((_request, response) => response.end('hello'))
      await once(server.listen(0, address), 'listening')
      const { port } = server.address() as AddressInfo
      for (const name of ['localhost', 'my-drop.localhost']) {
        const target = await targetOf(valuesOf(['--url', `http://${name}:${port}/`]))
        expect([target.ip, isOnThisMachine(target)]).toEqual([address, true])
        expect(await probe(target)).toEqual({ status: 200, bytes: 5 })
      }
      server.close()
    },
  )

  test('on another machine is refused without consent, and nothing is sent or written', async () => {
    const report = path.join(folder, 'never.html')
    const { code, output, errors } = await load('--url', 'https://192.0.2.1/', '--report', report)
    expect({ code, output }).toEqual({ code: 2, output: '' })
    expect(errors).toMatch(/^This sends as many requests as 10 connections can for 10 s to 192\.0\.2\.1, .*--yes.*\n$/)
    expect(existsSync(report)).toBe(false)
  })
})
