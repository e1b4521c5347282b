/** The routing table at the edge: what happens to it when Redis stops, forgets, or comes back as another one. */
import { createHash } from 'node:crypto'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { startEdgeFixture, type EdgeFixture } from '../support/edge-fixture.ts'

let fixture: EdgeFixture
afterEach(() => fixture?.stop())

const statusOf = async (host: string): Promise<number> => (await fixture.h2(host, '/')).status

async function eventually(check: () => Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt++) {
    if (await check()) return
    await sleep(100)
  }
  throw new Error('it never happened')
}

test('a publish is visible on every worker when it is acknowledged', async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '3' } })
  for (let version = 1; version <= 40; version++) {
    await fixture.publish('fast.localhost', { 'index.html': `version ${version}` }, { version_number: version })
    const answers = await Promise.all(Array.from({ length: 6 }, () => fixture.h1('fast.localhost', '/')))
    expect(answers.map(({ text }) => text)).toEqual(Array.from({ length: 6 }, () => `version ${version}`))
  }
})

test('an older revision replaces nothing; an unreadable entry in the log holds nothing up and is told beside the position, until it can be read', async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1' } })
  const route = await fixture.publish('a.localhost', { 'index.html': 'new' })
  const old = await fixture.store({ 'index.html': 'old' })
  await fixture.setRoute({ ...route, manifest: old }, route.revision - 1)
  expect((await fixture.h1('a.localhost', '/')).text).toBe('new')

  await fixture.log({ kind: 'route', name: 'x.localhost', value: '{"v":7}' })
  await fixture.log({ kind: 'route', name: 'a.localhost', value: JSON.stringify({ ...route, v: 7 }) })
  await fixture.publish('b.localhost', { 'index.html': 'not held up' })
  expect(await statusOf('b.localhost')).toBe(200)
  expect((await fixture.h1('a.localhost', '/')).text).toBe('new')
  const refused = async () => (await fixture.edgeStates()).flatMap((state) => state.refused)
  expect((await refused()).toSorted()).toEqual(['a.localhost', 'x.localhost'])
  for (const host of ['a.localhost', 'x.localhost']) await fixture.publish(host, { 'index.html': 'read again' })
  expect(await refused()).toEqual([])

  await fixture.addEntry('v', '9', 'kind', 'mystery')
  await fixture.publish('c.localhost', { 'index.html': 'not held up either' })
  expect(await statusOf('c.localhost')).toBe(200)
})

test('starts and serves from its file while Redis is away, and catches up when it is back', async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1' } })
  await fixture.publish('a.localhost', { 'index.html': 'kept' })
  expect(await fixture.edge.stop()).toBe(0)
  fixture.edge = await fixture.startEdge({ REDIS_URL: `${fixture.dataDir}/nobody.sock` })
  expect((await fixture.h1('a.localhost', '/')).text).toBe('kept')
  // It has had a snapshot, so it knows that this is nothing.
  expect(await statusOf('never.localhost')).toBe(404)
})

test('a damaged replica is set aside and filled anew; a good one stays whatever keeps the edge from starting', async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1' } })
  for (let count = 0; count < 20; count++) await fixture.publish(`${count}.localhost`, { 'index.html': 'kept' })
  const file = path.join(fixture.dataDir, 'edge', 'replica', 'data.mdb')
  const pageBytes = 4096
  await expect(fixture.startEdge({ EDGE_HTTPS_PORT: String(fixture.edge.httpsPort) })).rejects.toThrow('cannot be used')
  expect(existsSync(`${file}.damaged`)).toBe(false)

  const damages: ((good: Buffer) => Buffer)[] = [
    (good) => good.subarray(0, good.length / 2),
    (good) => Buffer.concat([good.subarray(0, 2 * pageBytes)], good.length),
  ]
  for (const damage of damages) {
    expect(await fixture.edge.stop()).toBe(0)
    const damaged = damage(readFileSync(file))
    writeFileSync(file, damaged)
    fixture.edge = await fixture.startEdge()
    expect((await fixture.h1('19.localhost', '/')).text).toBe('kept')
    expect(readFileSync(`${file}.damaged`).equals(damaged)).toBe(true)
    expect(fixture.edge.output()).toContain('the replica was damaged')
  }

  // Nothing to fill it from: no one is told that a drop does not exist.
  await fixture.edge.stop()
  writeFileSync(file, randomBytes(50_000))
  fixture.edge = await fixture.startEdge({ REDIS_URL: `${fixture.dataDir}/nobody.sock` })
  expect(await statusOf('19.localhost')).toBe(503)
})

test('without ever having had a snapshot, an unknown host is 503 and not 404', async () => {
  fixture = await startEdgeFixture({ epoch: false, env: { EDGE_WORKERS: '1' } })
  const answer = await fixture.h1('never.localhost', '/')
  expect(answer.status).toBe(503)
  expect(answer.headers['retry-after']).toBeDefined()
  await fixture.publish('a.localhost', { 'index.html': 'early' })
  expect(await statusOf('a.localhost')).toBe(200)
  await fixture.setEpoch('complete')
  await eventually(async () => (await statusOf('never.localhost')) === 404)
})

test('neither FLUSHALL nor a snapshot without a host takes it away: control is told, and says what becomes of it', async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1' } })
  await fixture.publish('stays.localhost', { 'index.html': 'stays' })
  await fixture.publish('goes.localhost', { 'index.html': 'goes' })
  await fixture.redis.flushall()
  // It has noticed, and says so in the empty Redis.
  await eventually(async () => (await fixture.edgeIds()).length > 0)
  expect([await statusOf('stays.localhost'), await statusOf('goes.localhost')]).toEqual([200, 200])
  // Publishing goes on while control has not republished everything yet.
  await fixture.publish('stays.localhost', { 'index.html': 'stays' })
  await fixture.publish('between.localhost', { 'index.html': 'between' })
  expect([await statusOf('between.localhost'), await statusOf('goes.localhost')]).toEqual([200, 200])
  await fixture.setEpoch('second')
  await eventually(async () => (await fixture.unknownHosts()).includes('goes.localhost'))
  expect(await statusOf('goes.localhost')).toBe(200)
  await fixture.setRoute({ kind: 'none', host: 'goes.localhost' })
  expect(await statusOf('goes.localhost')).toBe(404)
  expect([await statusOf('stays.localhost'), await statusOf('between.localhost')]).toEqual([200, 200])
})

test('a snapshot of an older history is neither taken nor acknowledged; one of a newer history is, whatever its numbers', async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1' } })
  const host = 'a.localhost'
  fixture.writeHistory(5)
  for (let count = 0; count < 5; count++) await fixture.publish(host, { 'index.html': 'of history 5' })
  const route = await fixture.publish(host, { 'index.html': 'of history 5' })
  await fixture.setHistory(5)
  const servesHistory = (ordinal: number) =>
    eventually(async () => (await fixture.edgeStates())[0]?.history === ordinal)
  await servesHistory(5)

  await fixture.setHistory(4)
  fixture.writeHistory(4)
  const old = await fixture.store({ 'index.html': 'of history 4' })
  await eventually(async () => fixture.edge.output().includes('Redis holds an older history'))
  await expect(fixture.setRoute({ ...route, manifest: old })).rejects.toThrow('acknowledge')
  expect((await fixture.h1(host, '/')).text).toBe('of history 5')

  fixture.writeHistory(6)
  await fixture.putRoute({ ...route, manifest: await fixture.store({ 'index.html': 'of history 6' }) })
  await fixture.setHistory(6)
  await servesHistory(6)
  expect((await fixture.h1(host, '/')).text).toBe('of history 6')
  await fixture.publish(host, { 'index.html': 'acknowledged again' })
  expect((await fixture.h1(host, '/')).text).toBe('acknowledged again')
})

test('an edge that missed a password shows nothing older than it, until it can read the newest record', async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1' } })
  const hosts = [
    'a.localhost',
    'first--a.localhost',
    'alias.localhost',
    'new.localhost',
    'read.localhost',
    'other.localhost',
  ]
  const statuses = async () => Promise.all(hosts.map(statusOf))
  const route = await fixture.publish('a.localhost', { 'index.html': 'open to all' }, { names: [['first', 1]] })
  const read = await fixture.publish('read.localhost', { 'index.html': 'goes on' })
  await fixture.publish('other.localhost', { 'index.html': 'other' })
  await fixture.setRoute({ kind: 'alias', host: 'alias.localhost', to: 'a.localhost' })
  // This one it refuses while it follows: it has missed nothing before it.
  const putLater = async (record: object, host: string) => {
    const value = JSON.stringify({ ...record, host, v: 7, revision: 1000 })
    await fixture.putRecord(host, value)
    return value
  }
  const later = await putLater(read, 'read.localhost')
  await fixture.reached(await fixture.log({ kind: 'route', name: 'read.localhost', value: later }))
  expect(await statuses()).toEqual([200, 200, 200, 404, 200, 200])

  await fixture.edge.stop()
  const password = { hash: await fixture.hashPassword('secret'), generation: 1 }
  await fixture.setRoute({ ...route, password })
  await putLater(route, 'a.localhost')
  await putLater(route, 'new.localhost')
  await fixture.trimLog(0)
  fixture.edge = await fixture.startEdge()
  expect(await statuses()).toEqual([503, 503, 503, 503, 200, 200])
  // Neither a restart nor an older record changes that.
  await fixture.setRoute({ ...route, password: null }, 999)
  await fixture.edge.stop()
  await putLater(route, 'a.localhost')
  fixture.edge = await fixture.startEdge()
  expect(await statuses()).toEqual([503, 503, 503, 503, 200, 200])

  for (const host of ['a.localhost', 'new.localhost']) await fixture.setRoute({ ...route, host, password: null }, 1001)
  expect(await statuses()).toEqual([200, 200, 200, 200, 200, 200])
})

test('what an edge cannot serve replaces nothing, is named, and is tried again', async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1', METRICS_PORT: '0' } })
  const metrics = async () => (await fetch(`http://127.0.0.1:${fixture.edge.metricsPort}/metrics`)).text()
  const isNamed = async (kind: string, name: string) =>
    (await metrics()).includes(`dropway_edge_refused_name{kind="${kind}",name="${name}"} 1`)
  const manifest = { v: 1, files: [], redirects: [], headers: [], unserved: [] }
  const late = Buffer.from(
    JSON.stringify({ ...manifest, redirects: [{ from: '/*', to: '/late', status: 302, force: true, line: 1 }] }),
  )
  const unusable = {
    'of a later format': await fixture.putBlob(Buffer.from(JSON.stringify({ ...manifest, v: 2 }))),
    'not JSON': await fixture.putBlob(Buffer.from('{')),
    'without its landing page': await fixture.putBlob(
      Buffer.from(
        JSON.stringify({ ...manifest, files: [['index.html', { hash: '0'.repeat(64), size: 1, type: 'text/html' }]] }),
      ),
    ),
    'not there yet': createHash('sha256').update(late).digest('hex'),
  }
  const route = await fixture.publish('a.localhost', { 'index.html': 'kept' })
  for (const [what, hash] of Object.entries(unusable)) {
    await fixture.setRoute({ ...route, manifest: hash })
    expect(await isNamed('route', 'a.localhost'), what).toBe(true)
    expect((await fixture.h1('a.localhost', '/')).text, what).toBe('kept')
  }
  // What was missing has come, and no one publishes anything again.
  await fixture.putBlob(late)
  await eventually(async () => (await fixture.h1('a.localhost', '/')).headers['location'] === '/late')
  expect(await isNamed('route', 'a.localhost')).toBe(false)

  await fixture.log({ kind: 'certificate', name: 'a.example.com', value: 's1.nonsense' })
  await fixture.publish('b.localhost', { 'index.html': 'not held up' })
  expect(await isNamed('certificate', 'a.example.com')).toBe(true)
  expect(fixture.edge.output()).toContain('cannot be used')
})

test('what was published while the edge was away is there when it is ready, also when the log was trimmed past its position', async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1' } })
  await fixture.publish('a.localhost', { 'index.html': 'one' })
  await fixture.edge.stop()
  await fixture.publish('a.localhost', { 'index.html': 'two' })
  fixture.edge = await fixture.startEdge()
  expect((await fixture.h1('a.localhost', '/')).text).toBe('two')
  await fixture.edge.stop()
  await fixture.publish('a.localhost', { 'index.html': 'three' })
  await fixture.publish('b.localhost', { 'index.html': 'b' })
  await fixture.trimLog(1)
  fixture.edge = await fixture.startEdge()
  expect((await fixture.h1('a.localhost', '/')).text).toBe('three')
  expect(await statusOf('b.localhost')).toBe(200)
})

test('a frozen Redis costs no visitor anything, and the edge follows again afterwards', async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1', EDGE_HANDSHAKES_PER_IP: '100000' } })
  await fixture.publish('a.localhost', { 'index.html': 'one' })
  process.kill(fixture.redisServer.pid, 'SIGSTOP')
  try {
    for (let visit = 0; visit < 60; visit++) {
      expect(await statusOf('a.localhost')).toBe(200)
      await sleep(100)
    }
    expect(await statusOf('never.localhost')).toBe(404)
  } finally {
    process.kill(fixture.redisServer.pid, 'SIGCONT')
  }
  await eventually(async () => (await fixture.edgeIds()).length > 0)
  await eventually(() =>
    fixture.publish('a.localhost', { 'index.html': 'two' }).then(
      () => true,
      () => false,
    ),
  )
  expect((await fixture.h1('a.localhost', '/')).text).toBe('two')
})

test('two edges on one Redis both serve a publish when it is acknowledged', async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1' } })
  const second = await fixture.startEdge({ REPLICA_DIR: `${fixture.dataDir}/second` })
  const first = fixture.edge
  await eventually(async () => (await fixture.edgeIds()).length === 2)
  for (let version = 1; version <= 10; version++) {
    await fixture.publish('both.localhost', { 'index.html': `v${version}` })
    for (const edge of [first, second]) {
      fixture.edge = edge
      expect((await fixture.h1('both.localhost', '/')).text).toBe(`v${version}`)
    }
  }
  expect(await second.stop()).toBe(0)
  // An edge that has left is no longer waited for.
  await fixture.publish('both.localhost', { 'index.html': 'alone' })
})
