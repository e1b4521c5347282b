/** The client against thousands of files, large ones, bad lines, a service that restarts, and being killed. */
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openCli, type Cli, type CliResult, type RunOptions } from '../support/cli.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { startStack, type Account, type OwnStack } from '../support/stack.ts'

/** Bars are for a calm machine with two cores. */
const SLACK = Number(process.env['FAULT_SLACK'] ?? 1)
const FILES = 3001
const KILLS = Number(process.env['FAULT_KILLS'] ?? 20)
const MAX_OPEN_FILES = 64

let cli: Cli
let stack: OwnStack
let owner: Account
let env: Record<string, string>
let slug: string
let folder: string

beforeAll(async () => {
  ;[cli, stack] = await Promise.all([openCli(), startStack()])
  owner = await stack.createAccount('business')
  const ca = path.join(cli.folder, 'ca.pem')
  await writeFile(ca, stack.ca)
  env = { DROPWAY_URL: stack.baseUrl, DROPWAY_CA_FILE: ca, DROPWAY_TOKEN: owner.token }
})
afterAll(async () => {
  await cli.remove()
  await stack.stop()
})
beforeEach(async () => {
  slug = `f-${randomBytes(5).toString('hex')}`
  folder = path.join(cli.folder, slug)
  await mkdir(folder)
  await writeFile(path.join(folder, 'index.html'), `<h1>${slug}</h1>`)
})

/** `deploy` of the folder; the most files that it had open at once. */
async function deploy(options: RunOptions = {}): Promise<CliResult & { openFiles: number; seconds: number }> {
  const begun = performance.now()
  let openFiles = 0
  let watch: NodeJS.Timeout | undefined
  const result = await cli.run(['deploy', folder, '--slug', slug], {
    ...options,
    env: { ...env, ...options.env },
    onStart(pid) {
      watch = setInterval(() => (openFiles = Math.max(openFiles, countOpen(pid))), 10)
    },
  })
  clearInterval(watch)
  return { ...result, openFiles, seconds: (performance.now() - begun) / 1000 }
}

function countOpen(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return 0
  }
}

async function writeManyFiles(): Promise<void> {
  for (let index = 1; index < FILES; index++) {
    const name = path.join(folder, `d${index % 30}`, `f${index}.html`)
    await mkdir(path.dirname(name), { recursive: true })
    await writeFile(name, `<p>${index} ${randomBytes(800).toString('hex')}</p>`)
  }
}

test('3,001 small files: sent, gone on with after a kill, and found unchanged', async () => {
  await writeManyFiles()
  const proxy = await startCuttingProxy(stack.httpsPort)
  const through = { DROPWAY_URL: `https://localhost:${proxy.port}` }
  const cold = await deploy({ env: through })
  expect(cold.code, cold.stderr).toBe(0)
  const unchanged = await deploy({ env: through })
  expect(unchanged.stderr).toContain('Nothing has changed')

  // Three quarters of another 3,001 have arrived when it is killed.
  await writeManyFiles()
  const kill = new AbortController()
  const arrived = proxy.stallAfter(4_000_000)
  const killed = deploy({ env: through, signal: kill.signal })
  await Promise.race([arrived, killed])
  kill.abort()
  expect((await killed).code).toBe(-1)
  proxy.flow()
  const before = proxy.sent
  const resumed = await deploy({ env: through })
  await proxy.close()
  expect(resumed.code, resumed.stderr).toBe(0)
  expect(proxy.sent - before, 'only the rest was sent').toBeLessThan(4_000_000)
  expect((await stack.visit(slug, '/d7/f3007')).status).toBe(404)
  expect((await stack.visit(slug, '/d7/f7')).text()).toBe(await readFile(path.join(folder, 'd7', 'f7.html'), 'utf8'))

  console.log(
    `${FILES} files: cold ${cold.seconds.toFixed(1)} s, resumed ${resumed.seconds.toFixed(1)} s, unchanged ${unchanged.seconds.toFixed(1)} s; at most ${cold.openFiles} open files`,
  )
  for (const run of [cold, resumed, unchanged]) expect(run.openFiles).toBeLessThanOrEqual(MAX_OPEN_FILES)
  expect(cold.seconds).toBeLessThan(30 * SLACK)
  expect(resumed.seconds).toBeLessThan(5 * SLACK)
  expect(unchanged.seconds).toBeLessThan(2 * SLACK)
})

test('a file of 200 MB, over lines that break five times', async () => {
  const content = randomBytes(200_000_000)
  await writeFile(path.join(folder, 'large.bin'), content)
  const proxy = await startCuttingProxy(stack.httpsPort)
  proxy.cutAfter(30_000_000, 5)
  const result = await deploy({ env: { DROPWAY_URL: `https://localhost:${proxy.port}` } })
  await proxy.close()
  expect(result.code, result.stderr).toBe(0)
  expect(result.stderr).toContain('Trying again for two minutes')
  expect(proxy.sent, 'what had arrived was not sent again').toBeLessThan(content.length * 1.3)
  expect(result.openFiles).toBeLessThanOrEqual(MAX_OPEN_FILES)
  const served = await stack.visit(slug, '/large.bin')
  expect(hashOf(served.body)).toBe(hashOf(content))
})

const hashOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

test('a first connection that loses 60 % of its packets', async () => {
  await writeManyFiles()
  const proxy = await startCuttingProxy(stack.httpsPort)
  proxy.loseOnNext(0.6)
  const result = await deploy({ env: { DROPWAY_URL: `https://localhost:${proxy.port}` } })
  await proxy.close()
  expect(result.code, result.stderr).toBe(0)
  expect((await stack.visit(slug, '/d7/f7')).status).toBe(200)
})

test('the service restarts in the middle of a deploy', async () => {
  await writeManyFiles()
  await writeFile(path.join(folder, 'large.bin'), randomBytes(20_000_000))
  const proxy = await startCuttingProxy(stack.httpsPort)
  const running = deploy({ env: { DROPWAY_URL: `https://localhost:${proxy.port}` } })
  while (proxy.sent < 5_000_000) await sleep(5)
  await stack.restart()
  const result = await running
  await proxy.close()
  expect(result.code, result.stderr).toBe(0)
  expect(result.stderr).toContain('The connection is back')
  expect(result.lines.at(-1)).toContain(slug)
  expect((await stack.visit(slug, '/large.bin')).body).toHaveLength(20_000_000)
})

test(`killed at ${KILLS} random moments: what is live is always whole, and the next deploy goes on`, async () => {
  await deploy()
  const pages = new Map([[await readPage(), 'first']])
  const whole = (await deploy()).seconds
  for (let round = 1; round <= KILLS; round++) {
    await writeFile(path.join(folder, 'index.html'), `<h1>round ${round}</h1>`)
    for (let index = 0; index < 50; index++)
      await writeFile(path.join(folder, `f${index}.txt`), `round ${round} ${randomBytes(2000).toString('hex')}`)
    pages.set(await readPage(), `round ${round}`)
    const kill = new AbortController()
    const moment = randomInt(Math.ceil(whole * 1500))
    const timer = setTimeout(() => kill.abort(), moment)
    const { code } = await deploy({ signal: kill.signal })
    clearTimeout(timer)
    const live = (await stack.visit(slug)).text()
    expect([...pages.keys()], `killed after ${moment} ms`).toContain(live)
    // An answer of 0 means that it is live.
    if (code === 0) expect(live).toBe(await readPage())
    // The page and the files of a version belong together.
    const round_ = /round (\d+)/.exec(live)?.[1]
    if (round_ !== undefined) expect((await stack.visit(slug, '/f49.txt')).text()).toContain(`round ${round_} `)
  }
  const last = await deploy()
  expect(last.code, last.stderr).toBe(0)
  expect((await stack.visit(slug)).text()).toBe(await readPage())
  const sites = (await stack.fetch('/api/v1/sites', { token: owner.token })).json<{ slug: string }[]>()
  expect(sites.filter((site) => site.slug === slug)).toHaveLength(1)
})

const readPage = (): Promise<string> => readFile(path.join(folder, 'index.html'), 'utf8')
