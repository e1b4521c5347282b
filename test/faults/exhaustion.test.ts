/** The disk is full, or no file can be opened: uploads fail with 5xx, nothing is half-live, and it heals by itself. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { processTree } from '../support/processes.ts'
import { figures, seedDrops, watchDrops } from '../support/faults.ts'
import { startFleet, type Fleet } from '../support/fleet.ts'
import { startTestS3, type TestS3 } from '../support/s3.ts'
import type { Account, Published } from '../support/stack.ts'
import { startTraffic } from '../support/traffic.ts'

const DISK_MB = 60
/** Connections that come when an edge can open only so many files more. */
const CROWD = 300
const SPARE_FILES = 20

/** A disk of our own needs root; without it there is nothing to fill safely. */
function mountSmallDisk(): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-small-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m,mode=0777`, 'tmpfs', folder])
  return folder
}

function bundleOf(mark: string, bytes: number): FormData {
  const body = new FormData()
  for (const [name, content] of [
    ['index.html', `<p>${mark}</p>`],
    ['photo.bin', randomBytes(bytes)],
  ] as const) {
    body.append('files', new File([content as never], name))
    body.append('paths', name)
  }
  return body
}

describe('a full disk', () => {
  let disk: string
  let fleet: Fleet
  let account: Account
  let drops: Published[]

  beforeAll(async () => {
    disk = mountSmallDisk()
    fleet = await startFleet({ edges: 1, controls: 1, env: { BLOB_STORE: `file:${disk}/blobs` } })
    account = await fleet.createAccount('business')
    drops = await seedDrops(fleet, account, 3)
  })

  afterAll(async () => {
    await fleet?.stop()
    execFileSync('umount', [disk])
    rmSync(disk, { recursive: true })
  })

  test('uploads fail and leave nothing; visitors notice nothing; with space they work again', async () => {
    const traffic = startTraffic({ ...watchDrops(fleet, drops), perSecond: 50 })
    const site = await fleet.publish(account, { 'index.html': '<p>before</p>' })
    const upload = (bytes: number) =>
      fleet.fetch(`/api/v1/sites/${site.id}/upload-bundle`, { token: account.token, body: bundleOf('after', bytes) })
    const { bavail, bsize } = statfsSync(disk)
    const filler = path.join(disk, 'filler')
    writeFileSync(filler, Buffer.alloc(bavail * bsize - 2_000_000))

    const answers = []
    for (let attempt = 0; attempt < 5; attempt++) answers.push(await upload(8_000_000))
    expect(answers.map(({ status }) => status >= 500)).toEqual(Array.from({ length: 5 }, () => true))
    const versions = await fleet.fetch(`/api/v1/sites/${site.id}/versions`, { token: account.token })
    expect(versions.json<unknown[]>()).toHaveLength(1)
    expect((await fleet.visit(site.slug)).text()).toContain('before')
    // What failed has given its space back.
    const left = statfsSync(disk)
    expect(left.bavail * left.bsize).toBeGreaterThan(1_000_000)

    rmSync(filler)
    expect((await upload(8_000_000)).status).toBe(201)
    expect((await fleet.visit(site.slug)).text()).toContain('after')
    const report = await traffic.stop()
    figures(`disk full: uploads answered ${answers.map(({ status }) => status).join(', ')}`, report)
    expect(report.failures.slice(0, 5)).toEqual([])
  })
})

describe("a full disk below an edge's copies of a distant store", () => {
  let disk: string
  let folder: string
  let store: TestS3
  let fleet: Fleet
  let account: Account

  beforeAll(async () => {
    disk = mountSmallDisk()
    folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-exhaustion-'))
    store = await startTestS3(path.join(folder, 's3'))
    const storeWith = (cache: string) => store.url({ cache, cacheMb: DISK_MB - 10 })
    fleet = await startFleet({ edges: 1, controls: 1, env: { BLOB_STORE: storeWith(path.join(folder, 'control')) } })
    const [first] = fleet.edges
    // Nothing is kept in memory beyond one page, so that the disk would be asked.
    await fleet.addEdge({ BLOB_STORE: storeWith(path.join(disk, 'cache')), EDGE_CACHE_MB: '1' })
    await fleet.removeEdge(first!)
    account = await fleet.createAccount('business')
  })

  afterAll(async () => {
    await fleet?.stop()
    await store?.close()
    execFileSync('umount', [disk])
    for (const each of [disk, folder]) rmSync(each, { recursive: true })
  })

  const copies = (): number =>
    readdirSync(path.join(disk, 'cache'), { recursive: true }).filter((name) => /[0-9a-f]{64}$/.test(String(name)))
      .length

  /** The page comes whole, the photo as a stream. */
  async function expectServed({ slug }: Published, page: string, photo: Buffer): Promise<void> {
    expect((await fleet.visit(slug)).text()).toContain(page)
    const answer = await fleet.visit(slug, '/photo.bin')
    expect(answer.status).toBe(200)
    expect(answer.body.equals(photo)).toBe(true)
  }

  test('visitors are served from the store, it is logged once, and copies are made again when there is room', async () => {
    const photo = randomBytes(3_000_000)
    const before = await fleet.publish(account, { 'index.html': '<p>before</p>', 'photo.bin': photo })
    await expectServed(before, 'before', photo)
    const kept = copies()
    expect(kept).toBeGreaterThan(0)
    const traffic = startTraffic({
      ...watchDrops(fleet, await seedDrops(fleet, account, 3)),
      perSecond: 50,
    })
    const { bavail, bsize } = statfsSync(disk)
    const filler = path.join(disk, 'filler')
    // Room for a part of a photo: writing begins well and fails in the middle.
    writeFileSync(filler, Buffer.alloc(bavail * bsize - 1_000_000))
    const published: { site: Published; photo: Buffer }[] = []
    for (let count = 0; count < 5; count++) {
      const other = randomBytes(3_000_000)
      const site = await fleet.publish(account, { 'index.html': `<p>during ${count}</p>`, 'photo.bin': other })
      published.push({ site, photo: other })
    }
    for (let turn = 0; turn < 2; turn++)
      for (const [count, { site, photo: own }] of published.entries()) await expectServed(site, `during ${count}`, own)
    await expectServed(before, 'before', photo)
    const edgeOutput = fleet.edges[0]!.output()
    expect(edgeOutput.split('no copy of a blob kept').length - 1).toBe(1)
    expect(edgeOutput).toContain('ENOSPC')
    // What could not be finished has given its space back.
    const left = statfsSync(disk)
    expect(left.bavail * left.bsize).toBeGreaterThan(500_000)

    rmSync(filler)
    const full = copies()
    for (const [count, { site, photo: own }] of published.entries()) await expectServed(site, `during ${count}`, own)
    expect(copies()).toBeGreaterThanOrEqual(full + published.length)
    const report = await traffic.stop()
    figures(`disk of the edge full: ${kept} copies before, ${full} while full, ${copies()} after`, report)
    expect(report.failures.slice(0, 5)).toEqual([])
  })
})

describe('no more files', () => {
  let fleet: Fleet
  let account: Account
  let drops: Published[]

  beforeAll(async () => {
    fleet = await startFleet({ edges: 1, controls: 1 })
    account = await fleet.createAccount('business')
    drops = await seedDrops(fleet, account, 3)
  })

  afterAll(async () => {
    await fleet?.stop()
  })

  test('control out of file descriptors: visitors notice nothing, uploads fail or work, and it heals', async () => {
    const traffic = startTraffic({ ...watchDrops(fleet, drops), perSecond: 50 })
    const site = await fleet.publish(account, { 'index.html': '<p>before</p>' })
    const limit = (soft: string): void =>
      void execFileSync('prlimit', ['--pid', String(fleet.controls[0]!.pid), `--nofile=${soft}`])
    limit('30:')
    const statuses = new Set<number>()
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () =>
          fleet
            .fetch(`/api/v1/sites/${site.id}/upload-bundle`, {
              token: account.token,
              body: bundleOf('during', 100_000),
              timeoutMs: 20_000,
            })
            .then(
              ({ status }) => status,
              () => 599,
            ),
        ),
      )
      for (const status of answers) statuses.add(status)
      expect((await fleet.visit(site.slug)).text()).toMatch(/before|during/)
    }
    limit('4096:')
    expect([...statuses].filter((status) => status !== 201 && status < 500)).toEqual([])
    expect([...statuses].some((status) => status >= 500)).toBe(true)
    await expect
      .poll(
        async () =>
          (
            await fleet
              .fetch(`/api/v1/sites/${site.id}/upload-bundle`, {
                token: account.token,
                body: bundleOf('healed', 100_000),
              })
              .catch(() => undefined)
          )?.status,
        { timeout: 20_000 },
      )
      .toBe(201)
    await expect.poll(async () => (await fleet.visit(site.slug)).text(), { timeout: 5000 }).toContain('healed')
    const versions = await fleet.fetch(`/api/v1/sites/${site.id}/versions`, { token: account.token })
    expect(versions.json<{ live: boolean }[]>().filter((version) => version.live)).toHaveLength(1)
    const report = await traffic.stop()
    figures(`EMFILE in control: uploads answered ${[...statuses].join(', ')}`, report)
    expect(report.failures.slice(0, 5)).toEqual([])
  })

  test('an edge out of file descriptors: who is connected is served, no one crashes, and it heals', async () => {
    const edge = fleet.edges[0]!
    const worker = processTree(edge.pid).at(-1)!
    const files = (): number => readdirSync(`/proc/${worker}/fd`).length
    const limit = (soft: number): void => void execFileSync('prlimit', ['--pid', String(worker), `--nofile=${soft}:`])
    const roomBefore = 20_000
    // They keep their connections: an edge that can open nothing cannot take new ones.
    const traffic = startTraffic({ ...watchDrops(fleet, drops), perSecond: 50, requestsPerConnection: 1_000_000 })
    await sleep(3000)
    traffic.take()
    limit(files() + SPARE_FILES)
    const crowd = Array.from({ length: CROWD }, () => net.connect({ port: edge.port, host: '127.0.0.1' }))
    for (const each of crowd) each.on('error', () => {}).resume()
    await sleep(5000)
    const open = crowd.filter((each) => !each.destroyed).length
    const during = traffic.take()
    figures(`EMFILE in the edge: ${open} of ${CROWD} new connections taken`, during)
    // Some of those that were open may have ended meanwhile.
    expect(open).toBeLessThan(SPARE_FILES * 2)
    expect(during.failures.slice(0, 5)).toEqual([])
    expect(during.requests).toBeGreaterThan(100)

    for (const each of crowd) each.destroy()
    limit(roomBefore)
    await expect
      .poll(
        () =>
          fleet.visit(drops[0]!.slug).then(
            ({ status }) => status,
            () => 0,
          ),
        { timeout: 10_000 },
      )
      .toBe(200)
    const site = await fleet.publish(account, { 'index.html': '<p>healed</p>' })
    expect((await fleet.visit(site.slug)).text()).toContain('healed')
    const after = await traffic.stop()
    expect(after.failures.slice(0, 5)).toEqual([])
    expect(processTree(edge.pid).at(-1)).toBe(worker)
  })
})
