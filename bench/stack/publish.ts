/**
 * Publishing on the whole stack: from the first byte of an upload to the 201, when every worker serves it.
 *
 * zip        1,000 files, 20 MB, beside `unzip` and `sha256sum` on the same bytes (bar: 1.2 ×)
 * redeploy   the same site with one file changed, through /uploads (bar: 50 ms of control's CPU, one file sent)
 * parallel   ten uploads of 200 MB at once: what control's memory grows by (bar: 128 MB)
 * list       GET /sites
 * small      POST /drops of a page: CPU of control, and how often it waits for Postgres and Redis (bars: 4 ms, 5 and 3 turns)
 * large      like redeploy, one file of 10,000: CPU of control and of the edge (bars: 50 ms each)
 * many, beside, huge: publish-load.ts
 */
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import https from 'node:https'
import os from 'node:os'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout } from 'node:timers/promises'
import autocannon from 'autocannon'
import { ZipFile } from 'yazl'
import { startStack, type Account, type OwnStack, type Published } from '../../test/support/stack.ts'
import { fileForm } from '../../test/support/api.ts'
import { cpuMs, residentMb } from '../../test/support/processes.ts'
import type { BenchValues } from '../benches.ts'
import { openCaller } from './caller.ts'
import type { Judged } from '../judged.ts'
import { createProgress } from '../progress.ts'
import type { Results } from '../results.ts'
import { startCountedServices, type CountedServices, type Turns } from '../../test/support/counting/round-trips.ts'
import { median } from '../../test/support/figures.ts'
import { untilCalm } from './calm.ts'
import { benchBeside, benchHuge, benchMany } from './publish-load.ts'
import { writeZip } from './zip-file.ts'

const FILES = 1000
const FILE_BYTES = 20_000
const LARGE_SITE = { files: 10_000, fileBytes: 2000 }
const LARGE_BYTES = 200_000_000
const SAMPLE_MS = 50
const SMALL_PAGES = 200
/** So many pages later V8 has compiled what a publish runs; callers side by side, because it takes a while. */
const SMALL_WARM_UPS = { pages: 1500, callers: 8 }
const WARM_UPS = 10
const IDLE_MS = 4000

/** What must hold of each part: which of its figures, and what the row is called. */
const BARS: Readonly<Record<string, readonly (Omit<Judged, 'figure'> & { readonly of: string })[]>> = {
  zip: [{ of: 'times', row: 'a zip of 1,000 files beside unzip and sha256sum', unit: '×', bar: 1.2 }],
  redeploy: [
    { of: 'controlCpuMs', row: 'one changed file of 1,000: control’s CPU', unit: 'ms', bar: 50 },
    { of: 'filesSentEach', row: 'one changed file of 1,000: files sent', unit: '', bar: 1 },
  ],
  parallel: [{ of: 'controlMbGrowth', row: 'ten uploads of 200 MB: control grows', unit: 'MB', bar: 128 }],
  small: [
    { of: 'controlCpuMs', row: 'a small page: control’s CPU', unit: 'ms', bar: 4 },
    { of: 'turnsWithPostgres', row: 'a small page: turns with Postgres', unit: '', bar: 5 },
    { of: 'turnsWithRedis', row: 'a small page: turns with Redis', unit: '', bar: 3 },
  ],
  large: [
    { of: 'controlCpuMs', row: 'one changed file of 10,000: control’s CPU', unit: 'ms', bar: 50 },
    { of: 'edgeCpuMs', row: 'one changed file of 10,000: the edge’s CPU', unit: 'ms', bar: 50 },
    { of: 'filesSentEach', row: 'one changed file of 10,000: files sent', unit: '', bar: 1 },
  ],
  many: [
    { of: 'perSecond', row: '32 callers at two edges: publishes a second', unit: '', bar: 200, isLeast: true },
    { of: 'p99Ms', row: '32 callers at two edges: p99', unit: 'ms', bar: 250 },
    { of: 'failed', row: '32 callers at two edges: publishes that failed', unit: '', bar: 0 },
    { of: 'turnsWithRedis', row: '32 callers at two edges: turns with Redis', unit: '', bar: 3 },
  ],
  beside: [
    { of: 'publishesPerMinute', row: 'one organisation’s publishes a minute', unit: '', bar: 10_000, isLeast: true },
    { of: 'times', row: 'visitors’ p99 beside them', unit: '×', bar: 1.5 },
    { of: 'publishesFailed', row: 'one organisation’s publishes that failed', unit: '', bar: 0 },
  ],
  huge: [
    { of: 'seconds', row: '100,000 files in one zip: time', unit: 's', bar: 60 },
    { of: 'controlMbGrowth', row: '100,000 files in one zip: control grows', unit: 'MB', bar: 300 },
  ],
}

/** One run: what it was told, the stack it publishes on, who publishes, and a folder for what is sent. */
interface Course extends BenchValues<'publish'> {
  readonly stack: OwnStack
  readonly account: Account
  readonly work: string
}

const PARTS: Readonly<Record<string, (course: Course) => Promise<object>>> = {
  zip: benchZip,
  redeploy: benchRedeploy,
  parallel: benchParallel,
  list: benchList,
  small: benchSmall,
  large: (course) => benchRedeploy(course, LARGE_SITE),
  many: benchMany,
  beside: benchBeside,
  huge: ({ work }) => benchHuge(work, uploadZip),
}

export async function run(told: BenchValues<'publish'>, results: Results): Promise<void> {
  const progress = createProgress()
  progress.show('starting a stack')
  const work = mkdtempSync(path.join(os.tmpdir(), 'dropway-bench-publish-'))
  const stack = await startStack({ workers: 1 })
  try {
    const course: Course = { ...told, stack, work, account: await stack.createAccount('business') }
    const figures: Record<string, object> = {}
    for (const [name, bench] of Object.entries(PARTS)) {
      if (!told.only.includes(name)) continue
      progress.show(`${name}, ${Object.keys(figures).length + 1} of ${told.only.length}`)
      const found = await bench(course)
      figures[name] = found
      progress.clear()
      process.stdout.write(`${name.padEnd(10)}${JSON.stringify(found)}\n`)
      for (const { of, ...bar } of BARS[name] ?? []) results.judge({ ...bar, figure: Number(Reflect.get(found, of)) })
    }
    results.keep(figures)
  } finally {
    await stack.stop()
    rmSync(work, { recursive: true, force: true })
  }
}

async function uploadZip(stack: OwnStack, account: Pick<Account, 'token'>, file: string): Promise<void> {
  const { httpsPort, ca } = stack
  const site = await newSite(stack, account)
  await uploadFile({ httpsPort, ca, token: account.token, site, file, name: 'site.zip' })
}

async function benchZip({ stack, account, work, rounds }: Course): Promise<object> {
  const { httpsPort, ca, pids } = stack
  const ours: number[] = []
  const theirs: number[] = []
  const cpu: number[] = []
  for (let round = 0; round < rounds; round++) {
    const file = path.join(work, `site-${round}.zip`)
    // Pages of words, new in every round: nothing is in the store already.
    writeZip(file, FILES, nameOf, (index) => pageOf(round, index))
    const target = path.join(work, `unzipped-${round}`)
    theirs.push(timed(() => unzipAndHash(file, target)))
    const site = await newSite(stack, account)
    const cpuBefore = cpuMs(pids()['control']!)
    const startedAt = performance.now()
    await uploadFile({ httpsPort, ca, token: account.token, site, file, name: 'site.zip' })
    ours.push(performance.now() - startedAt)
    cpu.push(cpuMs(pids()['control']!) - cpuBefore)
    await remove(stack, account, site)
  }
  const [uploadMs, unzipMs] = [median(ours), median(theirs)]
  return {
    uploadMs: Math.round(uploadMs),
    unzipAndSha256sumMs: Math.round(unzipMs),
    times: round2(uploadMs / unzipMs),
    controlCpuMs: Math.round(median(cpu)),
  }
}

function nameOf(index: number): string {
  return index === 0 ? 'index.html' : `pages/${index % 40}/page-${index}.html`
}

function pageOf(round: number, index: number, bytes = FILE_BYTES): Buffer {
  const words = Array.from({ length: bytes / 20 }, (_, word) => `word${(word * 7919 + index * 31 + round) % 9973}`)
  const text = `<!doctype html><title>${round} ${index}</title><p>${randomBytes(8).toString('hex')} ${words.join(' ')}`
  return Buffer.from(text.padEnd(bytes, ' and so on').slice(0, bytes))
}

function unzipAndHash(file: string, target: string): void {
  mkdirSync(target)
  execFileSync('unzip', ['-q', file, '-d', target])
  execFileSync('sh', ['-c', 'find "$0" -type f -print0 | xargs -0 sha256sum > /dev/null', target])
}

async function benchRedeploy(
  { stack, account, work, rounds }: Course,
  { files: count, fileBytes } = { files: FILES, fileBytes: FILE_BYTES },
): Promise<object> {
  const { httpsPort, ca, pids } = stack
  const { token } = account
  const api = openCaller(stack, { token })
  const file = path.join(work, 'redeploy.zip')
  const pages = Array.from({ length: count }, (_, index) => pageOf(99, index, fileBytes))
  writeZip(file, count, nameOf, (index) => pages[index]!)
  const site = await newSite(stack, account)
  await uploadFile({ httpsPort, ca, token, site, file, name: 'site.zip' })
  const deploy = async (round: number): Promise<number> => {
    pages[7] = pageOf(100 + round, 7, fileBytes)
    const files = pages.map((page, index) => ({ path: nameOf(index), sha256: sha256(page), size: page.length }))
    const pageByHash = new Map(files.map((entry, index) => [entry.sha256, pages[index]!]))
    const startedAt = performance.now()
    const root = `/api/v1/sites/${site.id}/uploads`
    const begun = await api.call<{ upload_id: string; missing: string[] }>('POST', root, JSON.stringify({ files }))
    for (const hash of begun.missing)
      await api.call('PUT', `${root}/${begun.upload_id}/blobs/${hash}`, pageByHash.get(hash)!)
    await api.call('POST', `${root}/${begun.upload_id}/finish`)
    times.push(performance.now() - startedAt)
    return begun.missing.length
  }
  const times: number[] = []
  let sent = 0
  // A control that has been running for a while has compiled what it runs.
  for (let round = 0; round < WARM_UPS; round++) await deploy(round)
  times.length = 0
  const [control, edge, postgres] = [pids()['control']!, pids()['edge']!, pids()['postgres']!]
  // What was uploaded first is compressed by then: a redeploy of one file has no part in that.
  await untilCalm(control)
  const [cpuBefore, edgeBefore, postgresBefore] = [cpuMs(control), cpuMs(edge), cpuMs(postgres)]
  for (let round = 0; round < rounds * 4; round++) sent += await deploy(WARM_UPS + round)
  const controlCpuMs = (cpuMs(control) - cpuBefore) / times.length
  const edgeCpuMs = (cpuMs(edge) - edgeBefore) / times.length
  const postgresCpuMs = (cpuMs(postgres) - postgresBefore) / times.length
  api.close()
  await remove(stack, account, site)
  return {
    medianMs: Math.round(median(times)),
    fastestMs: Math.round(Math.min(...times)),
    controlCpuMs: round2(controlCpuMs),
    edgeCpuMs: round2(edgeCpuMs),
    postgresCpuMs: round2(postgresCpuMs),
    filesSentEach: sent / times.length,
  }
}

async function benchParallel({ stack, account, work, parallel }: Course): Promise<object> {
  const { httpsPort, ca, pids } = stack
  const file = path.join(work, 'large.zip')
  await writeLargeZip(work, file)
  const sites = await Promise.all(Array.from({ length: parallel }, () => newSite(stack, account)))
  const control = pids()['control']!
  // The threads that unpack start with the first upload, and stay.
  await uploadFile({ httpsPort, ca, token: account.token, site: sites[0]!, file, name: 'large.zip' })
  const before = residentMb(control)
  let peak = before
  const sampling = setInterval(() => (peak = Math.max(peak, residentMb(control))), SAMPLE_MS)
  const startedAt = performance.now()
  await Promise.all(
    sites.map((site) => uploadFile({ httpsPort, ca, token: account.token, site, file, name: 'large.zip' })),
  )
  const seconds = (performance.now() - startedAt) / 1000
  clearInterval(sampling)
  await Promise.all(sites.map((site) => remove(stack, account, site)))
  const megabytes = (parallel * statSync(file).size) / 1e6
  return {
    uploads: parallel,
    seconds: round2(seconds),
    megabytesPerSecond: Math.round(megabytes / seconds),
    controlMbBefore: Math.round(before),
    controlMbGrowth: Math.round(peak - before),
  }
}

/** Bytes that do not compress, as photos and films are. */
async function writeLargeZip(work: string, file: string): Promise<void> {
  const part = path.join(work, 'large.bin')
  const handle = await open(part, 'w')
  for (let written = 0; written < LARGE_BYTES; written += 10_000_000) await handle.write(randomBytes(10_000_000))
  await handle.close()
  const zip = new ZipFile()
  zip.addBuffer(Buffer.from('<!doctype html><title>large</title>'), 'index.html')
  zip.addFile(part, 'film.bin', { compress: false })
  zip.end()
  await pipeline(zip.outputStream, createWriteStream(file))
}

async function benchList({ stack, account }: Course): Promise<object> {
  const { controlPort, baseUrl, ca, fetch } = stack
  for (let index = 0; index < 20; index++) await newSite(stack, account)
  const headers = { authorization: `Bearer ${account.token}`, host: new URL(baseUrl).host }
  const result = await autocannon({
    url: `http://127.0.0.1:${controlPort}/api/v1/sites`,
    headers,
    connections: 32,
    duration: 5,
  })
  const startedAt = performance.now()
  for (let index = 0; index < 50; index++) await fetch('/api/v1/sites', { token: account.token, ca } as never)
  return {
    requestsPerSecond: Math.round(result.requests.average),
    p99Ms: result.latency.p99,
    failed: result.non2xx + result.errors,
    throughEdgeEachMs: round2((performance.now() - startedAt) / 50),
  }
}

async function benchSmall(): Promise<object> {
  const services = await startCountedServices()
  // Jobs as often as by default, not as often as tests have them.
  const own = await startStack({ workers: 1, env: { ...services.env, JOB_INTERVAL: '' } })
  try {
    let pages = 0
    const publish = async (): Promise<void> => {
      const html = `<!doctype html><title>Page ${pages++}</title><p>Small.`
      const answer = await own.fetch('/api/v1/drops', { body: fileForm('index.html', html) })
      if (answer.status !== 201) throw new Error(`publish: ${answer.status} ${answer.text()}`)
    }
    const control = own.pids()['control']!
    const firstFrom = cpuMs(control)
    for (let index = 0; index < SMALL_PAGES; index++) await publish()
    const firstCpuMs = round2((cpuMs(control) - firstFrom) / SMALL_PAGES)
    await Promise.all(
      Array.from({ length: SMALL_WARM_UPS.callers }, async () => {
        while (pages < SMALL_WARM_UPS.pages) await publish()
      }),
    )
    await untilCalm(control)
    const idleFrom = cpuMs(control)
    const idle = await turnsDuring(services, () => setTimeout(IDLE_MS))
    const idleCpuMs = cpuMs(control) - idleFrom
    const before = cpuMs(control)
    const startedAt = performance.now()
    const busy = await turnsDuring(services, async () => {
      for (let index = 0; index < SMALL_PAGES; index++) await publish()
    })
    const elapsedMs = performance.now() - startedAt
    // Jobs and heartbeats go on meanwhile.
    const each = (kind: keyof Turns) => round2((busy[kind] - (idle[kind] * elapsedMs) / IDLE_MS) / SMALL_PAGES)
    return {
      controlCpuMs: round2((cpuMs(control) - before - (idleCpuMs * elapsedMs) / IDLE_MS) / SMALL_PAGES),
      firstCpuMs,
      idleCpuMsPerSecond: round2((idleCpuMs * 1000) / IDLE_MS),
      wallMs: round2(elapsedMs / SMALL_PAGES),
      turnsWithPostgres: each('postgres'),
      turnsWithRedis: each('redisOfControl'),
      edgeTurnsWithRedis: each('redisOfEdge'),
    }
  } finally {
    await own.stop()
    await services.stop()
  }
}

async function turnsDuring(services: CountedServices, work: () => Promise<unknown>): Promise<Turns> {
  const before = services.turns()
  await work()
  const after = services.turns()
  return {
    postgres: after.postgres - before.postgres,
    redisOfControl: after.redisOfControl - before.redisOfControl,
    redisOfEdge: after.redisOfEdge - before.redisOfEdge,
  }
}

async function newSite(stack: OwnStack, { token }: Pick<Account, 'token'>): Promise<Published> {
  const answer = await stack.fetch('/api/v1/sites', { token, json: {} })
  if (answer.status !== 201) throw new Error(`create: ${answer.status} ${answer.text()}`)
  return answer.json()
}

async function remove(stack: OwnStack, { token }: Account, { id }: Published): Promise<void> {
  await stack.fetch(`/api/v1/sites/${id}`, { method: 'DELETE', token })
}

/** Streams a file as multipart/form-data; nothing of it is held here. */
export async function uploadFile(options: {
  httpsPort: number
  ca: string
  token: string
  site: Published
  file: string
  name: string
}): Promise<void> {
  const { httpsPort, ca, token, site, file, name } = options
  const boundary = randomBytes(12).toString('hex')
  const head = Buffer.from(
    `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: application/zip\r\n\r\n`,
  )
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  const sent = https.request({
    host: '127.0.0.1',
    port: httpsPort,
    servername: 'localhost',
    ca,
    agent: false,
    method: 'POST',
    path: `/api/v1/sites/${site.id}/upload-bundle`,
    headers: {
      host: `localhost:${httpsPort}`,
      authorization: `Bearer ${token}`,
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(head.length + statSync(file).size + tail.length),
    },
  })
  const answered = once(sent, 'response')
  sent.write(head)
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) {
    if (!sent.write(chunk)) await once(sent, 'drain')
  }
  sent.end(tail)
  const [response] = (await answered) as [import('node:http').IncomingMessage]
  const body = Buffer.concat(await response.toArray()).toString()
  if (response.statusCode !== 201) throw new Error(`upload: ${response.statusCode} ${body}`)
}

function timed(work: () => void): number {
  const startedAt = performance.now()
  work()
  return performance.now() - startedAt
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function round2(value: number): number {
  return Math.round(value * 100) / 100
}
