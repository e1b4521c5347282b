/** An edge that has read a part of a history, which Redis and Postgres then both lose. */
import { expect, test } from 'vitest'
import { encodeEpoch, historyOfRevision, revisionFloor, type History } from '../../shared/history.ts'
import { keys } from '../../shared/keys.ts'
import { encodeRouteRecord, type RouteRecord } from '../../shared/route-record.ts'
import { encodeStreamMessage } from '../../shared/stream.ts'
import { SimulatedEdge } from './edge.ts'
import { SimulatedRedis, type Command } from './redis.ts'
import { World } from './world.ts'

const HOSTS = ['a', 'b', 'c', 'd']
const first: History = { ordinal: 1, id: 'first' }
const lost: History = { ordinal: 3, id: 'lost' }
const successor: History = { ordinal: 2, id: 'successor' }
const last: History = { ordinal: 4, id: 'last' }

function startEdge() {
  const world = new World(7, false)
  const redis = new SimulatedRedis(world, 100)
  const edge = new SimulatedEdge(world, redis, 'edge', 1)
  const command = (...words: Command): void => redis.execute({ open: true, watched: new Map() }, words, () => {})
  return {
    world,
    redis,
    edge,
    command,
    publishAll(history: History) {
      for (const host of HOSTS) command('hset', keys.routes, host, recordOf(host, history))
      command('set', keys.epoch, encodeEpoch(history, 'snapshot'))
      command('set', keys.redisLife, `life${redis.life}`)
    },
    historyAt: (host: string) => historyOfRevision(edge.replicaRoute(host)?.revision ?? 0),
    said: () => JSON.parse(redis.peek(keys.edgeState(edge.id))!) as { history: string; position: string },
  }
}

function recordOf(host: string, history: History): string {
  const revision = revisionFloor(history.ordinal) + 1
  return encodeRouteRecord({ v: 1, kind: 'alias', host, to: 'elsewhere', revision } as RouteRecord)
}

test('it says what it holds of it, and takes nothing older for its successor', async () => {
  const { world, redis, edge, publishAll, historyAt, said } = startEdge()
  publishAll(first)
  edge.start()
  await world.run(1000)
  expect(HOSTS.map(historyAt)).toEqual([1, 1, 1, 1])

  publishAll(lost)
  const hasBegun = (): boolean => HOSTS.some((host) => historyAt(host) === lost.ordinal)
  while (!hasBegun()) await world.run(world.now + 1)
  expect(HOSTS.map(historyAt)).toContain(first.ordinal)
  redis.flush()
  publishAll(successor)
  await world.run(world.now + 3000)
  expect(said()).toMatchObject({ history: '3.lost', position: '0-0' })
  expect(HOSTS.map(historyAt)).not.toContain(successor.ordinal)

  publishAll(last)
  await world.run(world.now + 3000)
  expect(HOSTS.map(historyAt)).toEqual([4, 4, 4, 4])
  expect(said()).toMatchObject({ history: '4.last' })
})

test('it applies no entry of a history whose snapshot it has not begun', async () => {
  const { world, edge, command, publishAll, historyAt } = startEdge()
  publishAll(first)
  edge.start()
  await world.run(1000)
  command('xadd', keys.log, '*', ...encodeStreamMessage({ kind: 'route', name: 'a', value: recordOf('a', lost) }))
  await world.run(world.now + 1000)
  expect(historyAt('a')).toBe(first.ordinal)
  publishAll(lost)
  await world.run(world.now + 3000)
  expect(HOSTS.map(historyAt)).toEqual([3, 3, 3, 3])
})
