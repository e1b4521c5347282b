/** The disk is full, or no file can be opened: uploads fail with 5xx, nothing is half-live, and it heals by itself. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { figures, seedDrops, watchDrops } from '../support/faults.ts'
import { startFleet, type Fleet } from '../support/fleet.ts'
import type { Account, Published } from '../support/stack.ts'
import { startTraffic } from '../support/traffic.ts'

const DISK_MB = 60

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
})
