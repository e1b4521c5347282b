/** What the deep run's `late` does to a process: connections overtake one another, and each keeps its order. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { GIVEN } from '../support/given.ts'
import { startTestRedis } from '../support/redis.ts'

const PROGRAM = `
  import { Redis } from 'ioredis'
  const [one, other] = [new Redis(process.argv[1]), new Redis(process.argv[1])]
  await Promise.all([one.ping(), other.ping()])
  let overtaken = 0
  const echoed = []
  for (let round = 0; round < 400; round++) {
    const mine = Promise.all([2 * round, 2 * round + 1].map((number) => one.echo(number).then((text) => echoed.push(Number(text)))))
    let isHeard = false
    const first = mine.then(() => (isHeard = true))
    // Three turns with the server later.
    for (let turn = 0; turn < 3; turn++) await other.ping()
    if (!isHeard) overtaken++
    await first
  }
  console.log(JSON.stringify({ overtaken, isInOrder: echoed.every((number, index) => number === index) }))
  one.disconnect()
  other.disconnect()`

test('the second who asks is heard first now and then, and no connection loses its order', async () => {
  const redis = await startTestRedis()
  onTestFinished(() => redis.stop())
  const preload = new URL('../support/given-process.ts', import.meta.url).href
  const args = ['--import', preload, '--input-type=module', '-e', PROGRAM, redis.url]
  const env = { ...process.env, ...GIVEN, NODE_OPTIONS: '', LATE_ANSWERS: '1', SEED: '1' }
  const { stdout } = await promisify(execFile)(process.execPath, args, { env })
  const { overtaken, isInOrder } = JSON.parse(stdout) as { overtaken: number; isInOrder: boolean }
  expect(isInOrder).toBe(true)
  expect(overtaken).toBeGreaterThan(0)
})
