import { expect, test } from 'vitest'
import { createBoundedWork, createTurns, inParallel } from '../../../shared/running/turns.ts'

/** Work that a test ends by hand, one call after the other. */
function handWork() {
  const begun: string[] = []
  const ends = new Map<string, { resolve(value: string): void; reject(error: Error): void }>()
  return {
    begun,
    work(name: string): Promise<string> {
      begun.push(name)
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      ends.set(name, { resolve, reject })
      return promise
    },
    async finish(name: string): Promise<void> {
      ends.get(name)!.resolve(`${name} is done`)
      await turnOfTheLoop()
    },
    async fail(name: string): Promise<void> {
      ends.get(name)!.reject(new Error(`${name} failed`))
      await turnOfTheLoop()
    },
  }
}

const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('as many run as there are places, and the others follow in the order they came', async () => {
  const turns = createTurns(2)
  const { begun, work, finish } = handWork()
  const results = ['a', 'b', 'c', 'd'].map((name) => turns.take(() => work(name)))
  await turnOfTheLoop()
  expect(begun).toEqual(['a', 'b'])
  expect(turns.waiting).toBe(2)
  await finish('b')
  expect(begun).toEqual(['a', 'b', 'c'])
  await finish('c')
  expect(begun).toEqual(['a', 'b', 'c', 'd'])
  expect(turns.waiting).toBe(0)
  await finish('a')
  await finish('d')
  expect(await Promise.all(results)).toEqual(['a is done', 'b is done', 'c is done', 'd is done'])
})

test('work that fails gives its place back', async () => {
  const turns = createTurns(1)
  const failed = turns.take(() => Promise.reject(new Error('no')))
  const thrown = turns.take(() => {
    throw new Error('at once')
  })
  await expect(failed).rejects.toThrow('no')
  await expect(thrown).rejects.toThrow('at once')
  expect(await turns.take(async () => 'after')).toBe('after')
})

test('a place that was given back stays free for one', async () => {
  const turns = createTurns(1)
  const leave = await turns.enter()
  const next = turns.enter()
  expect(turns.waiting).toBe(1)
  leave()
  const leaveAgain = await next
  leaveAgain()
  const { begun, work, finish } = handWork()
  void turns.take(() => work('a'))
  void turns.take(() => work('b'))
  await turnOfTheLoop()
  expect(begun).toEqual(['a'])
  await finish('a')
  expect(begun).toEqual(['a', 'b'])
})

test('bounded work says when it has begun, and ends when all of it has', async () => {
  const bounded = createBoundedWork(1)
  const { begun, work, finish } = handWork()
  await bounded.begin(async () => void (await work('a')))
  let hasBegun = false
  const second = bounded.begin(async () => void (await work('b'))).then(() => (hasBegun = true))
  await turnOfTheLoop()
  expect([begun, hasBegun]).toEqual([['a'], false])
  await finish('a')
  await second
  let hasEnded = false
  const end = bounded.end().then(() => (hasEnded = true))
  await turnOfTheLoop()
  expect([begun, hasEnded]).toEqual([['a', 'b'], false])
  await finish('b')
  await end
})

test('after a failure no bounded work begins, and everyone who asks learns it', async () => {
  const bounded = createBoundedWork(1)
  const { begun, work, fail } = handWork()
  await bounded.begin(async () => void (await work('a')))
  const late = ['b', 'c'].map((name) => bounded.begin(async () => void (await work(name))))
  const outcomes = Promise.allSettled(late)
  await fail('a')
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  await expect(bounded.begin(async () => void (await work('d')))).rejects.toThrow('a failed')
  await expect(bounded.end()).rejects.toThrow('a failed')
  expect(begun).toEqual(['a'])
})

test('results come in the order of the items, whoever ends first', async () => {
  const { begun, work, finish } = handWork()
  const results = inParallel(new Set(['a', 'b', 'c']), 2, work)
  await turnOfTheLoop()
  expect(begun).toEqual(['a', 'b'])
  for (const name of ['b', 'c', 'a']) await finish(name)
  expect(await results).toEqual(['a is done', 'b is done', 'c is done'])
  expect(await inParallel([], 2, work)).toEqual([])
})

test('the first failure is thrown when the rest has ended, and nothing begins after it', async () => {
  const { begun, work, finish, fail } = handWork()
  let failure: unknown
  const done = inParallel(['a', 'b', 'c', 'd'], 2, work).catch((error: unknown) => (failure = error))
  await turnOfTheLoop()
  await fail('a')
  expect(failure).toBeUndefined()
  await finish('b')
  await done
  expect(failure).toEqual(new Error('a failed'))
  expect(begun).toEqual(['a', 'b'])
})
