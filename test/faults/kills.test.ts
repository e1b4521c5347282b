/**
 * Control is killed at random moments of uploads, promotes and deletes: an address always shows one whole version, and
 * one sweep afterwards leaves exactly what the retained versions need.
 */
import { createHash, randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiFor, bundleForm, fileForm } from '../support/api.ts'
import type { Answer } from '../support/client.ts'
import { startFleet, type Fleet } from '../support/fleet.ts'
import { rawZip } from '../support/raw-zip.ts'
import type { Account, Published } from '../support/stack.ts'
import { blobsOfVersions, filesIn, unrefinedVersions } from '../support/stored-files.ts'

const KILLS = Number(process.env['FAULT_KILLS'] ?? 8)
const FILES = 20
/** Finished operations after a start, before the next kill is drawn. */
const OPERATIONS_PER_LIFE = 8
/** Longer than any operation takes, so that the kill falls anywhere within one. */
const KILL_WITHIN_MS = 800
const DAY_MS = 86_400_000

type Operation = 'bundle' | 'zip' | 'changed files' | 'promote' | 'delete'

let fleet: Fleet
let account: Account
let site: Published
let mark = 0

beforeAll(async () => {
  fleet = await startFleet({ edges: 1, controls: 1 })
  account = await fleet.createAccount('business')
  site = await fleet.publish(account, filesOf(mark++))
})

afterAll(async () => {
  await fleet?.stop()
})

/** Every file of a version carries the same mark: a mixture would show. */
function filesOf(version: number): Record<string, string> {
  const names = Array.from({ length: FILES }, (_, index) => (index === 0 ? 'index.html' : `part-${index}.txt`))
  return Object.fromEntries(names.map((name) => [name, `mark ${version} ${name} ${'z'.repeat(2000)}`]))
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Each resolves whether it went through; a control that dies meanwhile is no surprise. */
const operations: Readonly<Record<Operation, () => Promise<boolean>>> = {
  async bundle() {
    return isCreated(await api().uploadBundle(site.id, bundleForm(filesOf(mark++))))
  },
  async zip() {
    const entries = Object.entries(filesOf(mark++)).map(([name, data]) => ({ name, data }))
    return isCreated(await api().uploadBundle(site.id, fileForm('site.zip', rawZip(entries))))
  },
  async 'changed files'() {
    const contents = new Map(Object.entries(filesOf(mark++)).map(([path, text]) => [path, text]))
    const files = [...contents].map(([path, text]) => ({ path, sha256: hashOf(text), size: text.length }))
    const root = `/api/v1/sites/${site.id}/uploads`
    const started = await send(root, { json: { files } })
    if (!isCreated(started)) return false
    const { upload_id, missing } = started.json<{ upload_id: string; missing: string[] }>()
    const bodies = new Map([...contents.values()].map((text) => [hashOf(text), text]))
    await Promise.all(
      missing.map((hash) => send(`${root}/${upload_id}/blobs/${hash}`, { method: 'PUT', body: bodies.get(hash)! })),
    )
    return isCreated(await send(`${root}/${upload_id}/finish`, { method: 'POST' }))
  },
  async promote() {
    const versions = (await api().versions(site.id)).json<{ version_id: string }[]>()
    const { version_id } = versions[randomInt(Math.min(5, versions.length))]!
    return (await api().promote(site.id, version_id)).status === 200
  },
  async delete() {
    const other = (await api().create()).json<Published>()
    const published = await api().upload(other.id, fileForm('index.html', `<p>short-lived ${mark++}</p>`))
    return isCreated(published) && (await api().delete(other.id)).status === 204
  },
}

const api = () => apiFor(fleet, account)
const isCreated = (answer: Answer): boolean => answer.status === 201
const send = (path: string, options: Parameters<Fleet['fetch']>[1]): Promise<Answer> =>
  fleet.fetch(path, { token: account.token, ...options })

/** All of them at the same time, again and again. */
function startWork() {
  const done = new Map<Operation, number>()
  let stopped = false
  async function repeat(name: Operation): Promise<void> {
    while (!stopped) {
      const isDone = await operations[name]().catch(() => false)
      if (isDone) done.set(name, (done.get(name) ?? 0) + 1)
      else await sleep(50)
    }
  }
  const loops = Promise.all((Object.keys(operations) as Operation[]).map(repeat))
  return {
    done,
    count: () => [...done.values()].reduce((sum, count) => sum + count, 0),
    async stop() {
      stopped = true
      await loops
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

async function expectVersionsWhole(): Promise<number> {
  const versions = (await api().versions(site.id)).json<
    { version_number: number; live: boolean; version_id: string }[]
  >()
  const live = versions.filter((version) => version.live)
  expect(live).toHaveLength(1)
  await expect
    .poll(async () => (await fleet.visit(site.slug)).header('dropway-version'), { timeout: 10_000 })
    .toBe(String(live[0]!.version_number))
  // Whatever is listed is whole: each can be made live and shows one mark.
  for (const { version_id } of versions) {
    expect((await api().promote(site.id, version_id)).status).toBe(200)
    expect((await marksShown()).size).toBe(1)
  }
  return versions.length
}

test(`${KILLS} kills`, { timeout: 300_000 + KILLS * 60_000 }, async () => {
  const working = startWork()
  for (let kill = 0; kill < KILLS; kill++) {
    const before = working.count()
    await expect
      .poll(working.count, { timeout: 60_000, interval: 20 })
      .toBeGreaterThanOrEqual(before + OPERATIONS_PER_LIFE)
    await sleep(randomInt(KILL_WITHIN_MS))
    fleet.controls[0]!.kill('SIGKILL')
    await fleet.controls[0]!.exited
    // Away: what was live is live, whole.
    expect((await marksShown()).size).toBe(1)
    await fleet.startControl(0)
    expect((await marksShown()).size).toBe(1)
  }
  await working.stop()
  const kept = await expectVersionsWhole()

  // The last ones are compressed harder a minute after they came, one after the other.
  await expect.poll(() => unrefinedVersions(fleet.postgres.url), { timeout: 180_000 }).toBe(0)
  // One sweep, as of a time at which nothing is too young for it.
  const blobs = (await filesIn(fleet.dataDir, 'blobs')).length
  const drafts = (await filesIn(fleet.dataDir, 'blobs/tmp')).length
  const [archives, partials] = [await filesIn(fleet.dataDir, 'scratch'), await filesIn(fleet.dataDir, 'uploads')]
  const swept = await fleet.admin('sweep', '--all', '--now', new Date(Date.now() + 3 * DAY_MS).toISOString())
  expect(swept.stderr + swept.code).toBe('0')
  const { named, owned } = await blobsOfVersions(fleet.dataDir, fleet.postgres.url)
  const stored = await filesIn(fleet.dataDir, 'blobs')
  expect(stored).toEqual(owned)
  expect(named.filter((file) => !stored.includes(file))).toEqual([])
  expect(await filesIn(fleet.dataDir, 'scratch')).toEqual([])
  expect(await filesIn(fleet.dataDir, 'uploads')).toEqual([])
  expect(await expectVersionsWhole()).toBe(kept)

  process.stdout.write(
    `${KILLS} kills of control: ${[...working.done].map(([name, count]) => `${count} × ${name}`).join(', ')} went through; ` +
      `${kept} versions kept, all whole. Before the sweep ${blobs} files in the store, ${drafts} of them half-written, ` +
      `${archives.length} archives, ${partials.length} partial files; after it ${stored.length}, none, none, none\n`,
  )
})
