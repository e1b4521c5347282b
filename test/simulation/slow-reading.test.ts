/** Slow is not unable: an edge that takes long to read a version says so, and nothing is taken back for it. */
import { expect, test } from 'vitest'
import { createAcknowledgements } from '../../control/ground/routing/acknowledgements.ts'
import { createExaminations } from '../../edge/store/follow/examinations.ts'
import type { Entry } from '../../edge/store/replica/replica.ts'
import { encodeEpoch, encodeHistory } from '../../shared/contracts/history.ts'
import { edgeIdOf, encodeEdgeState, STILL_READING } from '../../shared/contracts/live-edges.ts'
import { keys } from '../../shared/redis/keys.ts'
import { encodeStreamMessage } from '../../shared/redis/stream.ts'
import { loneEdge, recordOf } from './lone-edge.ts'
import { World } from './world.ts'

const history = { ordinal: 1, id: 'first' }

test('an edge says what it is reading, goes on with other news, and serves it once it is read', async () => {
  const { world, redis, edge, command, publishAll } = loneEdge()
  edge.readingMs = 0
  publishAll(history)
  edge.start()
  await world.run(1000)
  const tell = (host: string): void => {
    const value = recordOf(host, history)
    command('hset', keys.routes, host, value)
    command('xadd', keys.log, '*', ...encodeStreamMessage({ kind: 'route', name: host, value }))
  }
  const refused = (): unknown => JSON.parse(redis.peek(keys.edgeState(edge.id)) ?? '{}').refused
  edge.readingMs = 4500
  tell('slow')
  await world.run(world.now + 1500)
  expect(refused()).toEqual([['route slow', STILL_READING]])
  edge.readingMs = 0
  tell('quick')
  await world.run(world.now + 2000)
  expect([edge.replicaRoute('slow')?.kind, edge.replicaRoute('quick')?.kind]).toEqual([undefined, 'alias'])
  // Read anew with every look, it would never be done.
  edge.readingMs = 60_000
  await world.run(world.now + 4000)
  expect([edge.replicaRoute('slow')?.kind, refused()]).toEqual(['alias', []])
})

test('an edge that catches up takes what it has not read yet: others have acknowledged it', async () => {
  const { world, redis, edge, command, publishAll } = loneEdge()
  const tell = (host: string): void => {
    const value = recordOf(host, history)
    command('hset', keys.routes, host, value)
    command('xadd', keys.log, '*', ...encodeStreamMessage({ kind: 'route', name: host, value }))
  }
  edge.readingMs = 0
  publishAll(history)
  edge.start()
  await world.run(1000)
  // From here on it follows the log without a gap, and needs no snapshot when it comes back.
  tell('before')
  await world.run(world.now + 1500)
  void edge.stop()
  await world.run(world.now + 100)
  tell('slow')
  edge.readingMs = 60_000
  edge.start()
  await world.run(world.now + 3000)
  expect([edge.isFollowing(), edge.replicaRoute('slow')?.kind]).toEqual([true, 'alias'])
  expect(JSON.parse(redis.peek(keys.edgeState(edge.id)) ?? '{}').refused).toEqual([])
})

test('control waits for an edge that is reading, and takes nothing back', async () => {
  const world = new World(1, false)
  const epoch = encodeEpoch(history, 'snapshot')
  const outcomeOf = async (reason: string): Promise<unknown> => {
    const refused: [string, string][] = [['route a', reason]]
    const state = encodeEdgeState({ v: 1, position: '9-0', epoch, history: encodeHistory(history), refused })
    const stored = new Map([
      [keys.epoch, epoch],
      [keys.writer, encodeHistory(history)],
      [keys.edge(edgeIdOf('a')), '9-0'],
      [keys.edgeState(edgeIdOf('a')), state],
    ])
    const redis = {
      smembers: async () => [edgeIdOf('a')],
      mget: async (names: readonly string[]) => names.map((name) => stored.get(name) ?? null),
      eval: async () => 'master_replid:life',
    }
    const { reached } = createAcknowledgements(redis, world.timersOf({ name: 'control', alive: true }))
    const outcome = reached({ position: '8-0', epoch, life: 'life', hosts: new Set(['a']) }, world.now + 1000)
    await world.run(world.now + 2000)
    return outcome
  }
  expect(await outcomeOf('its landing page is not in the blob store')).toMatchObject({ kind: 'refused' })
  expect(await outcomeOf(STILL_READING)).toEqual({ kind: 'late' })
})

test('what is not read within minutes counts as a problem, and is read anew', async () => {
  const world = new World(1, false)
  let begun = 0
  const examinations = createExaminations(
    async () => {
      begun += 1
      return new Promise<undefined>(() => {})
    },
    world.timersOf({ name: 'edge', alive: true }),
  )
  const entry: Entry = {
    kind: 'route',
    name: 'a',
    record: { v: 1, kind: 'alias', host: 'a', to: 'elsewhere', revision: 1 },
  }
  const look = async (): Promise<unknown> => {
    const problems = examinations.problemsOf([entry])
    await world.run(world.now + 2000)
    return (await problems)[0]
  }
  expect([await look(), await look(), begun]).toEqual([STILL_READING, STILL_READING, 1])
  await world.run(world.now + 300_000)
  expect([await look(), begun]).toEqual(['it could not be read within 5 minutes', 1])
  expect([await look(), begun]).toEqual([STILL_READING, 2])
})
