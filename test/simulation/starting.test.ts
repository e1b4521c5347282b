/** When a starting edge begins to serve: with all that Redis has, or with its replica where Redis gives it nothing. */
import { expect, test } from 'vitest'
import { historyOfRevision, type History } from '../../shared/contracts/history.ts'
import { keys } from '../../shared/redis/keys.ts'
import { encodeStreamMessage } from '../../shared/redis/stream.ts'
import { HOSTS, loneEdge, recordOf } from './lone-edge.ts'

const first: History = { ordinal: 1, id: 'first' }
const second: History = { ordinal: 2, id: 'second' }
const NAMES = Array.from({ length: 30 }, (_, index) => `host${index}`)

test('it does not serve what it had before while it reads what it missed, however long that takes', async () => {
  const { world, edge, command, publishAll } = loneEdge()
  publishAll(first)
  edge.readingMs = 0
  edge.start()
  const tell = (name: string): void => {
    const value = recordOf(name, first)
    command('hset', keys.routes, name, value)
    command('xadd', keys.log, '*', ...encodeStreamMessage({ kind: 'route', name, value }))
  }
  await world.run(1000)
  tell('before')
  await world.run(world.now + 1000)
  void edge.stop()
  await world.run(world.now + 100)
  for (const name of NAMES) tell(name)
  // Each look takes as long as it may.
  edge.readingMs = 60_000
  edge.start()
  for (let second = 0; second < 30 && !edge.listening; second++) await world.run(world.now + 1000)
  expect(edge.listening).toBe(true)
  expect(NAMES.filter((name) => edge.visit(name, 0) === undefined)).toEqual([])
})

test('a blob store that does not answer holds up no start for more than seconds', async () => {
  const { world, edge, command, publishAll } = loneEdge()
  publishAll(first)
  edge.readingMs = 0
  edge.start()
  const tell = (name: string): void => {
    const value = recordOf(name, first)
    command('xadd', keys.log, '*', ...encodeStreamMessage({ kind: 'route', name, value }))
  }
  await world.run(1000)
  tell('before')
  await world.run(world.now + 1000)
  void edge.stop()
  await world.run(world.now + 100)
  // Many looks' worth of news.
  for (const name of NAMES) tell(name)
  edge.readingMs = 600_000
  edge.start()
  await world.run(world.now + 5000)
  expect(edge.listening).toBe(true)
  expect(NAMES.filter((name) => edge.visit(name, 0) === undefined)).toEqual([])
})

test('nor a part of a snapshot that was replaced while it was read', async () => {
  const { world, edge, publishAll } = loneEdge()
  const historyAt = (host: string): number => historyOfRevision(edge.replicaRoute(host)?.revision ?? 0)
  publishAll(first)
  edge.start()
  while (!HOSTS.some((host) => historyAt(host) === first.ordinal)) await world.run(world.now + 1)
  expect(HOSTS.map(historyAt)).toContain(0)
  publishAll(second)
  while (!edge.listening) await world.run(world.now + 1)
  expect(HOSTS.map(historyAt)).toEqual([2, 2, 2, 2])
})

test('it serves its replica at once where Redis is away, and soon where Redis has no snapshot', async () => {
  const { world, redis, edge, publishAll } = loneEdge()
  publishAll(first)
  edge.start()
  await world.run(1000)
  void edge.stop()
  await world.run(world.now + 100)
  redis.up = false
  edge.start()
  await world.run(world.now + 200)
  expect(edge.listening).toBe(true)
  void edge.stop()
  await world.run(world.now + 100)
  redis.up = true
  redis.flush()
  edge.start()
  await world.run(world.now + 2900)
  expect(edge.listening).toBe(false)
  await world.run(world.now + 200)
  expect([edge.listening, edge.visit('a', 0)?.kind]).toEqual([true, 'alias'])
})
