/**
 * A control that stands still for a minute (SIGSTOP) in the middle of a deploy, and that nobody replaces: the client waits
 * and goes on. What had come to control is not sent again; what the edge and the kernels on the way still held is, since the
 * edge gives up on a control that does not answer. Both are counted on the wire: between client and edge, and between edge
 * and control.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openCli, type Cli, type CliResult } from '../support/cli.ts'
import { startCuttingProxy, type CuttingProxy } from '../support/cutting-proxy.ts'
import { startFleet, type Fleet } from '../support/fleet.ts'
import { freeze } from '../support/processes.ts'
import { unwatchEventLoops } from '../support/event-loops.ts'
import { freePorts } from '../support/stack.ts'

const STOPPED_MS = Number(process.env['FAULT_STOP_SECONDS'] ?? 60) * 1000
const SMALL_FILES = 1000
const SMALL_BYTES = 12_000
const LARGE_FILES = 3
const LARGE_BYTES = 10_000_000
const CONTENT_BYTES = SMALL_FILES * SMALL_BYTES + LARGE_FILES * LARGE_BYTES

let cli: Cli
let fleet: Fleet
/** Between the client and the edge, and between the edge and control. */
let proxy: CuttingProxy
let inner: CuttingProxy
let token: string
let env: Record<string, string>

beforeAll(async () => {
  const [port] = await freePorts(1)
  inner = await startCuttingProxy(port!, { isFaithful: true })
  const options = {
    edges: 1,
    controls: 1,
    env: { CONTROL_URLS: `http://127.0.0.1:${inner.port}` },
    controlEnv: async () => ({ CONTROL_PORT: String(port) }),
  }
  ;[cli, fleet] = await Promise.all([openCli(), startFleet(options)])
  // Its event loop stands still on purpose.
  await unwatchEventLoops(fleet.controls[0]!.metricsPort)
  ;({ token } = await fleet.createAccount('business'))
  proxy = await startCuttingProxy(fleet.edges[0]!.port)
  const ca = path.join(cli.folder, 'ca.pem')
  await writeFile(ca, fleet.ca)
  env = { DROPWAY_URL: `https://localhost:${proxy.port}`, DROPWAY_CA_FILE: ca, DROPWAY_TOKEN: token }
})
afterAll(async () => {
  await proxy?.close()
  await inner?.close()
  await cli?.remove()
  await fleet?.stop()
})

async function layFolder(name: string): Promise<string> {
  const folder = path.join(cli.folder, name)
  await mkdir(folder)
  await writeFile(path.join(folder, 'index.html'), `<h1>${name}</h1>`)
  for (let index = 0; index < SMALL_FILES; index++)
    await writeFile(path.join(folder, `small-${index}.bin`), randomBytes(SMALL_BYTES))
  for (let index = 0; index < LARGE_FILES; index++)
    await writeFile(path.join(folder, `large-${index}.bin`), randomBytes(LARGE_BYTES))
  return folder
}

interface Carried {
  /** Bytes that left the client, and bytes that came to control. */
  readonly sent: number
  readonly received: number
}

const carried = (): Carried => ({ sent: proxy.sent, received: inner.sent })
const since = (before: Carried): Carried => ({
  sent: proxy.sent - before.sent,
  received: inner.sent - before.received,
})

async function deploy(share: number | undefined): Promise<{ atEnd: Carried; atResume: Carried; result: CliResult }> {
  const slug = `stopped-${randomBytes(4).toString('hex')}`
  const folder = await layFolder(slug)
  const before = carried()
  const deploying = cli.run(['deploy', folder, '--slug', slug], { env })
  let atResume = { sent: 0, received: 0 }
  if (share !== undefined) {
    while (since(before).sent < 1000 + share * CONTENT_BYTES) await sleep(1)
    const resume = freeze(fleet.controls[0]!.pid)
    await sleep(STOPPED_MS)
    atResume = since(before)
    resume()
  }
  const result = await deploying
  expect(result.code, result.stderr).toBe(0)
  const atEnd = since(before)
  expect((await fleet.visit(slug, `/large-${LARGE_FILES - 1}.bin`)).body).toHaveLength(LARGE_BYTES)
  return { atEnd, atResume, result }
}

/** Shares of the content that the wire has carried when control stops. */
const MOMENTS = [0, 0.1, 0.3, 0.5, 0.7, 0.9, 1]

/** Questions what has arrived, lists that are announced anew, and the last pieces of four connections that break: some 300 kB of each. */
const SLACK_BYTES = 2_000_000

let plain: Carried

test('a deploy that nothing disturbs sends each file once', { timeout: 600_000 }, async () => {
  plain = (await deploy(undefined)).atEnd
  expect(plain.sent).toBeLessThan(CONTENT_BYTES + SLACK_BYTES)
})

test.each(MOMENTS)('control stands still once %f of the content was sent', { timeout: 600_000 }, async (share) => {
  const { atEnd, atResume, result } = await deploy(share)
  const onTheLine = Math.max(0, atResume.sent - atResume.received)
  const again = atEnd.sent - plain.sent
  console.log(`${share}: ${mb(again)} sent again, ${mb(onTheLine)} had not come to control\n${result.stderr}`)
  expect(atEnd.received - plain.received, 'nothing came to control twice').toBeLessThan(SLACK_BYTES)
  expect(again, 'at most what was on the line was sent again').toBeLessThan(onTheLine + SLACK_BYTES)
})

const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`
