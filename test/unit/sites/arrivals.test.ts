import { PassThrough } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createArrivals } from '../../../control/drops/sites/uploads/arrivals.ts'

/** Time that passes when the test says so. */
function heldTime(): { sleep(): Promise<void>; pass(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { sleep: () => promise, pass: resolve }
}

/** A reading that ends when its body does. */
function reading(log: string[], name: string, body: PassThrough): () => Promise<void> {
  return async () => {
    log.push(`${name} begins`)
    await new Promise<void>((resolve) => body.once('close', resolve))
    // What it read is stored.
    await turn()
    log.push(`${name} ends`)
  }
}

test('what has arrived is told once the reading before has come to its end', async () => {
  const log: string[] = []
  const arrivals = createArrivals(heldTime())
  const body = new PassThrough()
  const first = arrivals.file('a', body, reading(log, 'first', body))
  const asked = arrivals.settled('a').then(() => log.push('told'))
  await arrivals.settled('b')
  await turn()
  expect(log).toEqual(['first begins'])
  body.destroy()
  await Promise.all([first, asked])
  expect(log).toEqual(['first begins', 'first ends', 'told'])
})

test('a file has one writer: the one before ends first, by force when it does not by itself', async () => {
  const log: string[] = []
  const time = heldTime()
  const arrivals = createArrivals(time)
  const bodies = [new PassThrough(), new PassThrough(), new PassThrough()]
  for (const body of bodies) body.on('error', () => {})
  const all = bodies.map((body, index) => arrivals.file('a', body, reading(log, `${index}`, body)))
  await turn()
  expect(log).toEqual(['0 begins'])
  time.pass()
  await all[0]
  await expect.poll(() => log.length).toBe(5)
  expect(log).toEqual(['0 begins', '0 ends', '1 begins', '1 ends', '2 begins'])
  bodies[2]!.destroy()
  await Promise.all(all)
})

test('batches of an upload go side by side; a reading that goes on for long is not waited for', async () => {
  const log: string[] = []
  const time = heldTime()
  const arrivals = createArrivals(time)
  const bodies = [new PassThrough(), new PassThrough()]
  const all = bodies.map((body, index) => arrivals.batch('upload', reading(log, `${index}`, body)))
  expect(log).toEqual(['0 begins', '1 begins'])
  const asked = arrivals.settled('upload').then(() => log.push('told'))
  bodies[0]!.destroy()
  await all[0]
  await turn()
  expect(log).not.toContain('told')
  time.pass()
  await asked
  bodies[1]!.destroy()
  await Promise.all(all)
  await arrivals.settled('upload')
})

test('a reading that fails is forgotten, and its failure is told to its own caller only', async () => {
  const arrivals = createArrivals(heldTime())
  const failing = arrivals.file('a', new PassThrough(), () => Promise.reject(new Error('the disk is full')))
  const asked = arrivals.settled('a')
  await expect(failing).rejects.toThrow('the disk is full')
  await asked
})

test('an announced request is waited for, whether it comes to read or is refused; it never waits for itself', async () => {
  const log: string[] = []
  const arrivals = createArrivals(heldTime())
  const { promise: known, resolve: recognise } = Promise.withResolvers<void>()
  const body = new PassThrough()
  const sending = arrivals.announced('a', async () => {
    await known
    await arrivals.file('a', body, reading(log, 'first', body))
  })
  const asked = arrivals.settled('a').then(() => log.push('told'))
  await turn()
  expect(log).toEqual([])
  recognise()
  await expect.poll(() => log).toEqual(['first begins'])
  body.destroy()
  await Promise.all([sending, asked])
  expect(log).toEqual(['first begins', 'first ends', 'told'])
})
