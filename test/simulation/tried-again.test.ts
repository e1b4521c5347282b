/** What an edge refused is tried again: all of it, also what stands behind many others. */
import { expect, test } from 'vitest'
import { keys } from '../../shared/redis/keys.ts'
import { encodeStreamMessage } from '../../shared/redis/stream.ts'
import { beginSnapshotSearch, SEARCH_PAUSE_MS } from '../../edge/store/follow/search.ts'
import { MAX_REFUSALS, type Refusal } from '../../edge/store/replica/replica.ts'
import { loneEdge, recordOf } from './lone-edge.ts'
import type { SimulatedRedis } from './redis.ts'

const history = { ordinal: 1, id: 'first' }
const NAMES = Array.from({ length: 130 }, (_, index) => `host${index}`)

async function edgeThatRefuses(names: readonly string[], maxRefusals?: number) {
  const lone = loneEdge()
  const { world, redis, edge, command, publishAll } = lone
  edge.maxRefusals = maxRefusals
  edge.readingMs = 0
  edge.problemOf = () => 'its landing page is not in the blob store'
  publishAll(history)
  edge.start()
  await world.run(1000)
  for (const name of names) {
    const value = recordOf(name, history)
    command('hset', keys.routes, name, value)
    command('xadd', keys.log, '*', ...encodeStreamMessage({ kind: 'route', name, value }))
    await world.run(world.now + 50)
  }
  const said = () =>
    JSON.parse(redis.peek(keys.edgeState(edge.id)) ?? '{}') as { refused: [string, string][]; refusesMore?: boolean }
  return { ...lone, said, isServed: (name: string): boolean => edge.replicaRoute(name) !== undefined }
}

test('the oldest of many has its turn, while those behind it go on being refused', async () => {
  const { world, edge, said, isServed } = await edgeThatRefuses(NAMES)
  await world.run(world.now + 5000)
  expect(said().refused).toHaveLength(NAMES.length)
  const mended = new Set(NAMES.slice(0, 20))
  edge.problemOf = (name) => (mended.has(name) ? undefined : 'its landing page is not in the blob store')
  await world.run(world.now + 30_000)
  expect(NAMES.filter(isServed)).toEqual([...mended])
  expect(said().refused).toHaveLength(NAMES.length - mended.size)
})

test('what was forgotten because there was too much of it is found again, and the edge says so until it has all', async () => {
  const names = NAMES.slice(0, 20)
  const { world, edge, said, isServed } = await edgeThatRefuses(names, 5)
  expect(said()).toMatchObject({
    refused: names.slice(-5).map((name) => [`route ${name}`, expect.any(String)]),
    refusesMore: true,
  })
  const mended = new Set(names.slice(0, 8))
  edge.problemOf = (name) => (mended.has(name) ? undefined : 'its landing page is not in the blob store')
  await world.run(world.now + SEARCH_PAUSE_MS + 15_000)
  expect(names.filter(isServed)).toEqual([...mended])
  expect(said().refusesMore).toBe(true)
  for (const name of names.slice(8, 16)) mended.add(name)
  await world.run(world.now + SEARCH_PAUSE_MS + 15_000)
  expect(names.filter(isServed)).toEqual([...mended])
  expect(said().refusesMore).toBe(undefined)
  expect(
    said()
      .refused.map(([name]) => name)
      .toSorted(),
  ).toEqual(
    names
      .slice(16)
      .map((name) => `route ${name}`)
      .toSorted(),
  )
})

test('the log is followed while a search goes through pages without an end, all of which are served', async () => {
  const { world, redis, edge, command, isServed } = await edgeThatRefuses(NAMES.slice(0, 20), 5)
  const page = Array.from({ length: 1000 }, () => ['a', recordOf('a', history)]).flat()
  answerScans(redis, (cursor) => [String(Number(cursor) + 1), page])
  edge.problemOf = () => undefined
  await world.run(world.now + 10_000)
  const value = recordOf('news', history)
  command('xadd', keys.log, '*', ...encodeStreamMessage({ kind: 'route', name: 'news', value }))
  await world.run(world.now + 3000)
  expect(isServed('news')).toBe(true)
})

test('what stays unreadable has the whole snapshot read once in a minute, not all the time', async () => {
  const { world, redis } = await edgeThatRefuses(NAMES.slice(0, 20), 5)
  let laps = 0
  answerScans(redis, (cursor, answered) => {
    if (cursor === '0') laps += 1
    return answered()
  })
  await world.run(world.now + 10 * SEARCH_PAUSE_MS)
  // One of the routes and one of the certificates.
  expect(laps / 2).toBeGreaterThan(5)
  expect(laps / 2).toBeLessThan(11)
})

test('a search keeps no more of what it found refused than can be listed', () => {
  const search = beginSnapshotSearch({ hscan: async () => ['0', []] }, 1)
  const refused: Refusal[] = NAMES.slice(0, 100).map((name) => ({ kind: 'route', name, reason: 'unreadable' }))
  for (let noted = 0; noted < MAX_REFUSALS; noted += refused.length) search.note(refused)
  expect(search.found()).toHaveLength(MAX_REFUSALS)
  search.note(refused.slice(0, 1))
  expect(search.found()).toBe(undefined)
  search.note(refused)
  expect(search.found()).toBe(undefined)
})

type Scanned = [cursor: string, flat: string[]]

/** From here on HSCAN is answered so. */
function answerScans(redis: SimulatedRedis, answerOf: (cursor: string, answered: () => Scanned) => Scanned): void {
  const execute = redis.execute.bind(redis)
  redis.execute = (session, command, answer) => {
    if (command[0] !== 'hscan') return execute(session, command, answer)
    const answered = (): Scanned => {
      let reply: unknown
      execute(session, command, (said) => (reply = said))
      return reply as Scanned
    }
    answer(answerOf(String(command[2]), answered))
  }
}
