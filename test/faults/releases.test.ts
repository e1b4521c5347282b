/**
 * The release before beside this one, as in a rolling upgrade and on the way back: both planes of both releases on one
 * database, one Redis and each other's replicas, under traffic.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seedDrops, watchDrops } from '../support/faults.ts'
import { startFleet, type Fleet } from '../support/fleet.ts'
import type { Account } from '../support/stack.ts'
import { startTraffic } from '../support/traffic.ts'

/** The last commit of the release before. Moves on with every release. */
const RELEASE_BEFORE = '4d2bffc'
const PUBLISHES = Number(process.env['FAULT_PUBLISHES'] ?? 40)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

let before: string
let fleet: Fleet
let account: Account

/** Its sources, with the packages of this release. Fails where the history of the repository is not there. */
function checkOutReleaseBefore(): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-release-before-'))
  const archive = execFileSync('git', ['archive', RELEASE_BEFORE], { cwd: ROOT, maxBuffer: 1e9 })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'))
  return folder
}

beforeAll(async () => {
  before = checkOutReleaseBefore()
  const ofBefore = new Set(['control 1', 'edge 1', 'edge 2'])
  fleet = await startFleet({ edges: 2, controls: 2, rootOf: (name) => (ofBefore.has(name) ? before : undefined) })
  account = await fleet.createAccount('business')
}, 180_000)
afterAll(async () => {
  await fleet?.stop()
  if (before !== undefined) rmSync(before, { recursive: true, force: true })
}, 60_000)

test('both releases serve what either publishes, on each other’s replicas too', { timeout: 240_000 }, async () => {
  const drops = await seedDrops(fleet, account, 4)
  const traffic = startTraffic({ ...watchDrops(fleet, drops), perSecond: 30 })
  const site = drops[0]!
  const wrong: string[] = []
  const publishAndLook = async (round: string): Promise<void> => {
    for (let index = 0; index < PUBLISHES / 2; index++) {
      const text = `ok ${site.slug} ${round} ${index}.`
      const body = new FormData()
      body.append('file', new File([`<title>x</title><p>${text}</p>`], 'index.html'))
      const answer = await fleet.fetch(`/api/v1/sites/${site.id}/upload`, { token: account.token, body })
      if (answer.status !== 201) wrong.push(`${text} ${answer.status} ${answer.text().slice(0, 100)}`)
      else if (answer.header('dropway-propagation') === undefined)
        for (let visit = 0; visit < 4; visit++)
          if (!(await fleet.visit(site.slug)).text().includes(text)) wrong.push(`${text} is not served`)
    }
  }
  await publishAndLook('side by side')

  // On the way back: an edge of the release before on the replica that this one has written; and the reverse.
  const [ours, theirs] = fleet.edges
  await fleet.removeEdge(ours!)
  await fleet.addEdge({ REPLICA_DIR: path.join(fleet.dataDir, 'edge-0') })
  await fleet.removeEdge(theirs!)
  await fleet.addEdge({ REPLICA_DIR: path.join(fleet.dataDir, 'edge-1') })
  await publishAndLook('swapped')

  const visits = await traffic.stop()
  expect(wrong).toEqual([])
  expect(visits.failures).toEqual([])
  expect(visits.requests).toBeGreaterThan(50)
})
