/** An edge that has read a part of a history, which Redis and Postgres then both lose. */
import { expect, test } from 'vitest'
import { historyOfRevision, type History } from '../../shared/contracts/history.ts'
import { keys } from '../../shared/redis/keys.ts'
import { encodeStreamMessage } from '../../shared/redis/stream.ts'
import { HOSTS, loneEdge, recordOf } from './lone-edge.ts'

const first: History = { ordinal: 1, id: 'first' }
const lost: History = { ordinal: 3, id: 'lost' }
const successor: History = { ordinal: 2, id: 'successor' }
const last: History = { ordinal: 4, id: 'last' }

function startEdge() {
  const lone = loneEdge()
  const { edge, redis } = lone
  return {
    ...lone,
    historyAt: (host: string) => historyOfRevision(edge.replicaRoute(host)?.revision ?? 0),
    historySeenAt: (host: string) => historyOfRevision(edge.visit(host, 0)?.revision ?? 0),
    said: () => JSON.parse(redis.peek(keys.edgeState(edge.id))!) as { history: string; position: string },
  }
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

// Seed 8477 in its day: a password that was acknowledged stayed unseen.
test('visitors meet the part of it that was read', async () => {
  const { world, redis, edge, publishAll, historyAt, historySeenAt } = startEdge()
  publishAll(first)
  edge.start()
  await world.run(1000)
  expect(HOSTS.map(historySeenAt)).toEqual([1, 1, 1, 1])
  publishAll(lost)
  while (!HOSTS.some((host) => historyAt(host) === lost.ordinal)) await world.run(world.now + 1)
  redis.up = false
  edge.cut()
  await world.run(world.now + 3000)
  expect(HOSTS.map(historyAt)).toContain(first.ordinal)
  expect(HOSTS.map(historySeenAt)).toEqual(HOSTS.map(historyAt))
})
