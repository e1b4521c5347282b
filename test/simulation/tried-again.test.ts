/** What an edge refused is tried again: all of it, also what stands behind many others. */
import { expect, test } from 'vitest'
import { keys } from '../../shared/redis/keys.ts'
import { encodeStreamMessage } from '../../shared/redis/stream.ts'
import { loneEdge, recordOf } from './lone-edge.ts'

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
  await world.run(world.now + 15_000)
  expect(names.filter(isServed)).toEqual([...mended])
  expect(said().refusesMore).toBe(true)
  for (const name of names.slice(8, 16)) mended.add(name)
  await world.run(world.now + 15_000)
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
