/** Several edges and controls: rolling restarts, new edges and lost ones cost no visitor and no publish anything. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startFleet, type Fleet } from '../support/fleet.ts'
import type { Account, Published } from '../support/stack.ts'
import { startTraffic, type Traffic } from '../support/traffic.ts'
import { figures, publishUntil, seedDrops, watchDrops } from '../support/faults.ts'

let fleet: Fleet
let account: Account
let drops: Published[]
let traffic: Traffic

beforeAll(async () => {
  fleet = await startFleet({ edges: 2, controls: 2 })
  account = await fleet.createAccount('business')
  drops = await seedDrops(fleet, account, 5)
  traffic = startTraffic({ ...watchDrops(fleet, drops), perSecond: 100 })
})

afterAll(async () => {
  await traffic.stop()
  await fleet.stop()
})

test('edges are replaced one by one under load: no failed request, no lost publish', { timeout: 180_000 }, async () => {
  traffic.take()
  const publishing = publishUntil(fleet, account)
  for (const edge of [...fleet.edges]) {
    await fleet.addEdge()
    await fleet.removeEdge(edge)
  }
  const published = await publishing.stop()
  const report = traffic.take()
  figures('rolling restart of edges', report, published)
  expect(report.failures.slice(0, 5)).toEqual([])
  expect(published).toMatchObject({ failures: [], stale: 0, lost: [] })
  expect(fleet.edges).toHaveLength(2)
})

test('controls are restarted one by one under load: every publish is answered 201', { timeout: 180_000 }, async () => {
  traffic.take()
  const publishing = publishUntil(fleet, account)
  for (const index of fleet.controls.keys()) await fleet.restartControl(index)
  const published = await publishing.stop()
  const report = traffic.take()
  figures('rolling restart of controls', report, published)
  expect(report.failures.slice(0, 5)).toEqual([])
  expect(published).toMatchObject({ failures: [], stale: 0, lost: [] })
})

test(
  'a killed edge counts no longer after a few seconds, and the others serve what is published',
  { timeout: 120_000 },
  async () => {
    const doomed = await fleet.addEdge()
    fleet.edges.splice(fleet.edges.indexOf(doomed), 1)
    fleet.balancer.setTargets(fleet.edges.map(({ port }) => port))
    doomed.kill('SIGKILL')
    const [site] = drops
    const answers = []
    for (let attempt = 0; attempt < 20; attempt++) {
      const body = new FormData()
      body.append('file', new File([`<p>ok ${site!.slug}</p><p>attempt ${attempt}</p>`], 'index.html'))
      const answer = await fleet.fetch(`/api/v1/sites/${site!.id}/upload`, { token: account.token, body })
      answers.push(answer.header('dropway-propagation'))
      expect(answer.status).toBe(201)
      expect((await fleet.visit(site!.slug)).text()).toContain(`attempt ${attempt}`)
      if (answers.at(-1) === undefined) break
    }
    expect(answers.at(-1)).toBeUndefined()
  },
)

test('a new edge with an empty disk serves everything as soon as it listens', { timeout: 120_000 }, async () => {
  const edge = await fleet.addEdge()
  fleet.balancer.setTargets([edge.port])
  for (const { slug } of drops) expect((await fleet.visit(slug)).status).toBe(200)
  fleet.balancer.setTargets(fleet.edges.map(({ port }) => port))
  await fleet.removeEdge(edge)
})
