/** Control is killed at random moments of uploads, promotes and deletes: an address always shows one whole version. */
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startFleet, type Fleet } from '../support/fleet.ts'
import type { Account, Published } from '../support/stack.ts'

const KILLS = Number(process.env['FAULT_KILLS'] ?? 8)
const FILES = 20
let fleet: Fleet
let account: Account
let site: Published

beforeAll(async () => {
  fleet = await startFleet({ edges: 1, controls: 1 })
  account = await fleet.createAccount('business')
  site = await fleet.publish(account, filesOf(0))
})

afterAll(async () => {
  await fleet?.stop()
})

/** Every file of a version carries the same mark: a mixture would show. */
function filesOf(mark: number): Record<string, string> {
  const names = Array.from({ length: FILES }, (_, index) => (index === 0 ? 'index.html' : `part-${index}.txt`))
  return Object.fromEntries(names.map((name) => [name, `mark ${mark} ${name} ${'z'.repeat(2000)}`]))
}

/** Uploads, promotes and creates-then-deletes, again and again, whatever the answers are. */
function startWork(): { stop(): Promise<void> } {
  let stopped = false
  let mark = 1
  const token = account.token
  const quietly = (work: Promise<unknown>): Promise<unknown> => work.catch(() => undefined)

  async function upload(): Promise<void> {
    await quietly(fleet.publish(account, filesOf(mark++), site))
  }
  async function promote(): Promise<void> {
    const answer = await fleet.fetch(`/api/v1/sites/${site.id}/versions`, { token }).catch(() => undefined)
    if (answer?.status !== 200) return sleep(50)
    const versions = answer.json<{ version_id: string }[]>()
    const { version_id } = versions[randomInt(Math.min(3, versions.length))]!
    await quietly(fleet.fetch(`/api/v1/sites/${site.id}/versions/${version_id}/promote`, { method: 'POST', token }))
  }
  async function createAndDelete(): Promise<void> {
    const answer = await fleet.fetch('/api/v1/sites', { token, json: {} }).catch(() => undefined)
    if (answer?.status !== 201) return sleep(50)
    const other = answer.json<Published>()
    await quietly(fleet.publish(account, '<p>short-lived</p>', other))
    await quietly(fleet.fetch(`/api/v1/sites/${other.id}`, { method: 'DELETE', token }))
  }
  const forever = async (work: () => Promise<void>): Promise<void> => {
    while (!stopped) await work()
  }
  const loops = [upload, upload, promote, createAndDelete].map(forever)
  return {
    async stop() {
      stopped = true
      await Promise.all(loops)
    },
  }
}

/** Reads every file over one moment; a version that changes in between is read again. */
async function marksShown(): Promise<Set<string>> {
  const answers = await Promise.all(
    Object.keys(filesOf(0)).map((name) => fleet.visit(site.slug, name === 'index.html' ? '/' : `/${name}`)),
  )
  const versions = new Set(answers.map((answer) => answer.header('dropway-version')))
  if (versions.size > 1) return marksShown()
  for (const answer of answers) expect(answer.status).toBe(200)
  return new Set(answers.map((answer) => /mark \d+/.exec(answer.text())![0]))
}

test(`${KILLS} kills`, { timeout: 60_000 + KILLS * 20_000 }, async () => {
  const token = account.token
  const working = startWork()
  for (let kill = 0; kill < KILLS; kill++) {
    await sleep(randomInt(100, 1500))
    fleet.controls[0]!.kill('SIGKILL')
    await fleet.controls[0]!.exited
    // Away: what was live is live, whole.
    expect((await marksShown()).size).toBe(1)
    await fleet.startControl(0)
    expect((await marksShown()).size).toBe(1)
  }
  await working.stop()

  const versions = (await fleet.fetch(`/api/v1/sites/${site.id}/versions`, { token })).json<
    { version_number: number; live: boolean; version_id: string }[]
  >()
  const live = versions.filter((version) => version.live)
  expect(live).toHaveLength(1)
  await expect
    .poll(async () => (await fleet.visit(site.slug)).header('dropway-version'), { timeout: 5000 })
    .toBe(String(live[0]!.version_number))
  // Whatever is listed is whole: each can be made live and shows one mark.
  for (const { version_id } of versions.slice(0, 5)) {
    const promoted = await fleet.fetch(`/api/v1/sites/${site.id}/versions/${version_id}/promote`, {
      method: 'POST',
      token,
    })
    expect(promoted.status).toBe(200)
    expect((await marksShown()).size).toBe(1)
  }
  process.stdout.write(`${KILLS} kills of control: ${versions.length} versions kept, all whole\n`)
})
