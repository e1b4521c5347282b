/** The disk of Postgres is full: a start says so in one sentence, a running service answers 503 and heals by itself. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { startOwnPostgres } from '../support/own-postgres.ts'
import { until } from '../support/processes.ts'
import { freePorts, run, startStack } from '../support/stack.ts'

const disks: string[] = []
afterEach(() => {
  for (const disk of disks.splice(0)) {
    execFileSync('umount', ['-l', disk])
    rmSync(disk, { recursive: true })
  }
})

/** A disk of our own needs root; without it there is nothing to fill safely. */
function mountDisk(megabytes: number): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-small-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'tmpfs', folder])
  disks.push(folder)
  return folder
}

function fill(disk: string): string {
  const { bavail, bsize } = statfsSync(disk)
  const filler = path.join(disk, 'filler')
  writeFileSync(filler, Buffer.alloc(bavail * bsize))
  return filler
}

test('a first start on a disk that is too small', { timeout: 120_000 }, async () => {
  const disk = mountDisk(20)
  const [https, http, control] = await freePorts(3)
  const { code, stdout, stderr } = await run(['control/operations/supervisor/main.ts'], {
    PATH: process.env['PATH']!,
    DATA_DIR: path.join(disk, 'data'),
    EDGE_HTTPS_PORT: String(https),
    EDGE_HTTP_PORT: String(http),
    CONTROL_PORT: String(control),
  })
  expect(stderr).toMatch(
    /^Postgres could not create its data directory: the disk of DATA_DIR \(.*\) is full\. Free .*\n$/,
  )
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
})

test('a disk that fills up while it runs', { timeout: 300_000 }, async () => {
  const disk = mountDisk(150)
  const postgres = await startOwnPostgres(disk)
  const stack = await startStack({ env: { DATABASE_URL: postgres.url } })
  try {
    const account = await stack.createAccount('business')
    const site = await stack.publish(account, '<p>standing</p>')
    const filler = fill(disk)
    const create = () => stack.fetch('/api/v1/sites', { token: account.token, json: {} })

    // What still fits into pages that are there works.
    const statuses = new Set<number>()
    await until(async () => {
      const answer = await create()
      statuses.add(answer.status)
      if (answer.status === 503) expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
      return answer.status === 503
    }, 'a change that needs space')
    expect([...statuses].filter((status) => status !== 201 && status !== 503)).toEqual([])
    const health = (await stack.fetch('/healthz')).json<{ status: string; detail: string }>()
    expect(health).toEqual({ status: 'degraded', detail: 'the disk of Postgres is full: nothing can be changed' })
    const { stdout } = await stack.admin('doctor')
    expect(stdout).toMatch(/FAIL writing .*no space left on its disk/)
    expect((await stack.visit(site.slug)).text()).toContain('standing')

    rmSync(filler)
    await until(async () => (await create()).status === 201, 'changes to work again')
  } finally {
    await stack.stop()
    await postgres.stop()
  }
})
