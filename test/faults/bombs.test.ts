/** Archives that unpack to far more than they say, sent without pause: refused, and no one else waits for them. */
import { randomBytes } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import zlib from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { residentMb } from '../support/processes.ts'
import { apiFor, fileForm } from '../support/api.ts'
import type { Answer } from '../support/client.ts'
import { hostileArchives } from '../support/hostile-archives.ts'
import { describeCircumstances, watchMachine } from '../support/machine.ts'
import { rawZip } from '../support/raw-zip.ts'
import { startStack, type Account, type OwnStack } from '../support/stack.ts'

const SECONDS = Number(process.env['FAULT_SECONDS'] ?? 15)
const P99_BAR_MS = 200 * Number(process.env['FAULT_SLACK'] ?? 1)
/** Memory of all bombs under way together, above what the same work without them takes. */
const MEMORY_BAR_MB = 4 * 64
const ATTACKERS = 4
const OTHERS = 2
/** Calls per second of each of the others. */
const CALLS_PER_SECOND = 10
/** Larger than any file of the others, smaller than what any bomb unpacks. */
const SMALL_BYTES = 500_000

let stack: OwnStack
let attackers: Account
let others: Account

beforeAll(async () => {
  stack = await startStack()
  attackers = await stack.createAccount('business')
  others = await stack.createAccount('business')
})
afterAll(() => stack?.stop())

/** Honest about everything but its last file: all of it is unpacked before it is refused. No two have a file in common. */
function lateBomb(): Buffer {
  const files = Array.from({ length: 8 }, (_, index) => {
    const content = Buffer.concat([randomBytes(16), Buffer.alloc(5_000_000)])
    const body = { packed: zlib.deflateRawSync(content), crc32: zlib.crc32(content), size: content.length }
    return { name: `zeros-${index}`, ...body }
  })
  return rawZip([{ name: 'index.html', data: 'x' }, ...files, { ...files[0]!, name: 'evil', crc32: 1 }])
}

const bombs = (): Buffer[] => [
  ...hostileArchives()
    .filter(({ kind }) => kind.startsWith('bomb'))
    .map(({ bytes }) => bytes),
  lateBomb(),
]

interface Refusals {
  readonly statuses: Map<number, number>
  readonly slowestMs: number
}

/** Each attacker sends its bombs one after the other, without pause. */
function startBombing(archivesOf: () => readonly Buffer[]): { stop(): Promise<Refusals> } {
  const statuses = new Map<number, number>()
  let stopped = false
  let slowestMs = 0
  async function attack(own: readonly Buffer[]): Promise<void> {
    const api = apiFor(stack, attackers)
    const site = (await api.create()).json<{ id: string }>()
    for (let turn = 0; !stopped; turn++) {
      const started = performance.now()
      const archive = own[turn % own.length]!
      const { status } = await api.uploadBundle(site.id, fileForm('site.zip', archive))
      slowestMs = Math.max(slowestMs, performance.now() - started)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  const loops = Promise.all(Array.from({ length: ATTACKERS }, () => attack(archivesOf())))
  return {
    async stop() {
      stopped = true
      await loops
      return { statuses, slowestMs }
    },
  }
}

interface Call {
  readonly isPublish: boolean
  readonly ms: number
  readonly failure?: string
}

/** At a fixed rate, whether or not the call before has been answered: a slow answer does not hide the next one. */
async function callAtRate(seconds: number): Promise<Call[]> {
  const api = apiFor(stack, others)
  const site = (await api.create()).json<{ id: string }>()
  const publish = (): Promise<Answer> =>
    api.upload(site.id, fileForm('index.html', `<title>small</title><p>${Math.random()}</p>`))
  const me = (): Promise<Answer> => stack.fetch('/api/v1/me', { token: others.token })
  const kinds = [api.list, me, () => api.get(site.id), api.list, publish]

  async function call(kind: () => Promise<Answer>): Promise<Call> {
    const isPublish = kind === publish
    const started = performance.now()
    const answer = await kind().catch((error: unknown) => ({ status: 0, text: () => String(error) }))
    const ms = performance.now() - started
    if (answer.status === (isPublish ? 201 : 200)) return { isPublish, ms }
    return { isPublish, ms, failure: `${answer.status} ${answer.text().slice(0, 100)}` }
  }

  const running: Promise<Call>[] = []
  for (let turn = 0; turn < seconds * CALLS_PER_SECOND; turn++) {
    running.push(call(kinds[turn % kinds.length]!))
    await sleep(1000 / CALLS_PER_SECOND)
  }
  return Promise.all(running)
}

function percentile(calls: readonly Call[], part: number): number {
  const sorted = calls.map(({ ms }) => ms).toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!
}

async function callAll(name: string, seconds: number): Promise<{ p99: number; failures: string[] }> {
  const calls = (await Promise.all(Array.from({ length: OTHERS }, () => callAtRate(seconds)))).flat()
  const failures = calls.flatMap(({ failure }) => failure ?? [])
  const words = (some: readonly Call[]): string =>
    `p50 ${percentile(some, 0.5).toFixed(0)} ms, p99 ${percentile(some, 0.99).toFixed(0)} ms`
  const [publishes, reads] = [calls.filter((call) => call.isPublish), calls.filter((call) => !call.isPublish)]
  process.stdout.write(
    `${name}: ${calls.length} calls of others, ${failures.length} failed; ${words(calls)} ` +
      `(reading: ${words(reads)}; publishing: ${words(publishes)})\n`,
  )
  return { p99: percentile(calls, 0.99), failures }
}

/** Files of the service that only a bomb can have left: large blobs, drafts, archives that were being unpacked. */
async function leftovers(): Promise<string[]> {
  const found: string[] = []
  for (const folder of ['blobs', 'scratch', 'uploads']) {
    const root = path.join(stack.dataDir, folder)
    const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => [])
    for (const entry of entries.filter((each) => each.isFile())) {
      const file = path.relative(stack.dataDir, path.join(entry.parentPath, entry.name))
      const isBlob = folder === 'blobs' && !file.startsWith(path.join('blobs', 'tmp'))
      if (!isBlob || (await stat(path.join(stack.dataDir, file))).size > SMALL_BYTES) found.push(file)
    }
  }
  return found
}

test('bombs are refused, and no one else waits for them', async () => {
  const control = stack.pids()['control']!
  await callAll('warming up', 3)
  const before = await callAll('before', SECONDS)
  const memoryBefore = residentMb(control)
  const circumstances = watchMachine()
  const bombing = startBombing(bombs)
  let peakMb = 0
  const watching = setInterval(() => (peakMb = Math.max(peakMb, residentMb(control))), 50)
  const during = await callAll(`with ${ATTACKERS} callers who send bombs`, SECONDS)
  clearInterval(watching)
  const met = await circumstances()
  const { statuses, slowestMs } = await bombing.stop()
  const refused = [...statuses.values()].reduce((sum, count) => sum + count, 0)
  process.stdout.write(
    `${refused} bombs: ${[...statuses].map(([status, count]) => `${count} × ${status}`).join(', ')}; ` +
      `slowest ${slowestMs.toFixed(0)} ms, memory +${Math.max(0, peakMb - memoryBefore).toFixed(0)} MB; ${describeCircumstances(met)}\n`,
  )

  expect([...statuses.keys()]).toEqual([400])
  expect(refused).toBeGreaterThan(ATTACKERS * bombs().length)
  expect(before.failures).toEqual([])
  expect(during.failures).toEqual([])
  expect(await leftovers()).toEqual([])
  expect(peakMb - memoryBefore).toBeLessThan(MEMORY_BAR_MB)
  expect(during.p99).toBeLessThan(P99_BAR_MS)
})
