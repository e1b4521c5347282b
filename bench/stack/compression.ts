/**
 * The first minute after a large publish: 100 MB of pages, scripts and styles that visitors ask for again and again while
 * they are being compressed. How many bytes leave as they were uploaded, which of the first screen do, and when the last
 * file has its compressed form. Says at the end whether the bars hold.
 */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import os from 'node:os'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { ZipFile } from 'yazl'
import { createRandom } from '../../test/support/random.ts'
import { startStack, type OwnStack } from '../../test/support/stack.ts'
import type { BenchValues } from '../benches.ts'
import { createProgress } from '../progress.ts'
import type { Results } from '../results.ts'
import { uploadFile } from './publish.ts'

/** 20 MB of pages, 40 of scripts, 40 of a few large ones. */
const SHAPE = [
  { count: 400, bytes: 50_000, name: (index: number) => (index === 0 ? 'index.html' : `pages/${index}.html`) },
  { count: 200, bytes: 200_000, name: (index: number) => `scripts/part-${index}.js` },
  { count: 20, bytes: 2_000_000, name: (index: number) => `bundles/all-${index}.js` },
] as const
const STYLE = 'first.css'
/** The landing page and what it loads. */
const FIRST_SCREEN = ['index.html', STYLE, 'bundles/all-0.js'] as const
const VISITORS = 4
/** Visitors leave the machine time for compressing, as real ones do. */
const PAUSE_MS = 1000
const MOST_SECONDS = 60

interface Seen {
  readonly bytes: number
  readonly rawBytes: number
  /** Files that were sent as uploaded. */
  readonly raw: readonly string[]
}

export async function run({ seconds }: BenchValues<'compression'>, results: Results): Promise<void> {
  const progress = createProgress()
  progress.show('starting')
  const work = await mkdtemp(path.join(os.tmpdir(), 'dropway-bench-'))
  const stack = await startStack({ workers: 1, env: { PLANS: 'unlimited', JOB_INTERVAL: '' } })
  try {
    const account = await stack.createAccount('business')
    const site = await stack.publish(account, '<!doctype html><title>Empty</title>')
    const file = path.join(work, 'site.zip')
    const names = await writeSite(file)
    progress.show('publishing 100 MB')
    const { httpsPort, ca } = stack
    await uploadFile({ httpsPort, ca, token: account.token, site, file, name: 'site.zip' })
    const publishedAt = performance.now()
    const since = (): number => (performance.now() - publishedAt) / 1000
    const host = `${site.slug}.${stack.sitesDomain}`
    const first = await visit(stack, host, FIRST_SCREEN)
    let { bytes, rawBytes } = first
    let compressedAfter: number | undefined
    while (since() < seconds) {
      const round = await visit(stack, host, names)
      bytes += round.bytes
      rawBytes += round.rawBytes
      if (round.raw.length > 0) compressedAfter = undefined
      else compressedAfter ??= since()
      progress.show(`${since().toFixed(0)} s: ${round.raw.length} of ${names.length} files sent as uploaded`)
      await sleep(PAUSE_MS)
    }
    progress.clear()
    const rawShare = rawBytes / bytes
    process.stdout.write(
      `sent as uploaded: ${(rawBytes / 1e6).toFixed(1)} of ${(bytes / 1e6).toFixed(1)} MB (${(rawShare * 100).toFixed(1)} %)\n`,
    )
    const row = 'files of the first screen sent as uploaded'
    results.judge({ row, figure: first.raw.length, unit: '', bar: 0 })
    // What is not whole by the end of the bench takes longer than that.
    const figure = compressedAfter ?? 2 * Math.max(seconds, MOST_SECONDS)
    results.judge({ row: 'everything compressed', figure, unit: 's', bar: MOST_SECONDS })
    results.keep({ seconds, bytes, rawBytes, rawShare, firstScreenRaw: first.raw, compressedAfter, bar: MOST_SECONDS })
  } finally {
    await stack.stop()
    await rm(work, { recursive: true, force: true })
  }
}

/** Words in an order of their own for each file: they compress as text does, and no two files are alike. */
async function writeSite(file: string): Promise<readonly string[]> {
  const zip = new ZipFile()
  const names: string[] = []
  const random = createRandom(7)
  const words = Array.from({ length: 4000 }, (_, index) => `${(index * 7919).toString(36)}word`)
  const textOf = (bytes: number): string => {
    let text = ''
    while (text.length < bytes) text += `${random.pick(words)} `
    return text
  }
  for (const { count, bytes, name } of SHAPE)
    for (let index = 0; index < count; index++) {
      const isPage = name(index).endsWith('.html')
      const head = `<!doctype html><title>${index}</title><link rel="stylesheet" href="/${STYLE}"><script src="/bundles/all-0.js"></script><p>`
      zip.addBuffer(Buffer.from(isPage ? head + textOf(bytes) : `const text = "${textOf(bytes)}"`), name(index))
      names.push(name(index))
    }
  zip.addBuffer(Buffer.from(`/* ${textOf(40_000)} */`), STYLE)
  zip.end()
  await pipeline(zip.outputStream, createWriteStream(file))
  return [...names, STYLE]
}

async function visit({ httpsPort, ca }: OwnStack, host: string, names: readonly string[]): Promise<Seen> {
  const raw: string[] = []
  let bytes = 0
  let rawBytes = 0
  let asked = 0
  await Promise.all(
    Array.from({ length: VISITORS }, async () => {
      const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ca, servername: host })
      while (asked < names.length) {
        const name = names[asked]!
        asked += 1
        const headers = { host: `${host}:${httpsPort}`, 'accept-encoding': 'br, gzip' }
        const target = `/${name === 'index.html' ? '' : name}`
        const request = https.get({ agent, host: '127.0.0.1', port: httpsPort, path: target, headers })
        const [answer] = (await once(request, 'response')) as [IncomingMessage]
        let length = 0
        for await (const chunk of answer) length += (chunk as Buffer).length
        if (answer.statusCode !== 200) throw new Error(`${name} was answered with ${answer.statusCode}`)
        bytes += length
        if (answer.headers['content-encoding'] !== undefined) continue
        rawBytes += length
        raw.push(name)
      }
      agent.destroy()
    }),
  )
  return { bytes, rawBytes, raw }
}
