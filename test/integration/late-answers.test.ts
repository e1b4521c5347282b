/** What the deep run's `late` does to a process: connections overtake one another, and each keeps its order. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { GIVEN } from '../support/given.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { startTestRedis } from '../support/redis.ts'

const SQL = new URL('../../control/ground/database/sql.ts', import.meta.url).href

/** A connection that gives back the numbers it is given. */
const DRIVERS = {
  Redis: `
    import { Redis } from 'ioredis'
    function open() {
      const redis = new Redis(process.argv[1])
      return { ask: async (number) => Number(await redis.echo(number)), end: () => redis.disconnect() }
    }`,
  Postgres: `
    import { openDatabase } from '${SQL}'
    function open() {
      const sql = openDatabase({ url: process.argv[1], maxConnections: 1 })
      return { ask: async (number) => (await sql\`select \${number}::int as number\`)[0].number, end: () => sql.end() }
    }`,
}

const PROGRAM = `
  const [one, other] = [open(), open()]
  await Promise.all([one.ask(0), other.ask(0)])
  let overtaken = 0
  const echoed = []
  for (let round = 0; round < 400; round++) {
    const mine = Promise.all([2 * round, 2 * round + 1].map((number) => one.ask(number).then((given) => echoed.push(given))))
    let isHeard = false
    const first = mine.then(() => (isHeard = true))
    // Three turns with the server later.
    for (let turn = 0; turn < 3; turn++) await other.ask(0)
    if (!isHeard) overtaken++
    await first
  }
  console.log(JSON.stringify({ overtaken, isInOrder: echoed.every((number, index) => number === index) }))
  await Promise.all([one.end(), other.end()])`

async function urlOf(driver: keyof typeof DRIVERS): Promise<string> {
  if (driver === 'Postgres') {
    const database = await createTestDatabase()
    onTestFinished(() => database.close())
    return database.url
  }
  const redis = await startTestRedis()
  onTestFinished(() => redis.stop())
  return redis.url
}

test.each(['Redis', 'Postgres'] as const)(
  '%s: the second who asks is heard first now and then, and no connection loses its order',
  async (driver) => {
    const preload = new URL('../support/given-process.ts', import.meta.url).href
    const program = DRIVERS[driver] + PROGRAM
    const args = ['--import', preload, '--input-type=module', '-e', program, await urlOf(driver)]
    const env = { ...process.env, ...GIVEN, NODE_OPTIONS: '', LATE_ANSWERS: '1' }
    const { stdout } = await promisify(execFile)(process.execPath, args, { env })
    const { overtaken, isInOrder } = JSON.parse(stdout) as { overtaken: number; isInOrder: boolean }
    expect(isInOrder).toBe(true)
    expect(overtaken).toBeGreaterThan(0)
  },
)
