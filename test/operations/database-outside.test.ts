/** A Postgres that is not the embedded one: behind a pooler, read-only, out of reach. */
import { once } from 'node:events'
import net from 'node:net'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startOwnPostgres, startPooledPostgres, type OwnPostgres } from '../support/own-postgres.ts'
import { until } from '../support/processes.ts'
import { startTestRedis } from '../support/redis.ts'
import { freePorts, run, startStack, type Account, type OwnStack, type Published } from '../support/stack.ts'

interface Finding {
  readonly check: string
  readonly state: string
  readonly detail: string
}

async function diagnose(stack: OwnStack, env: Readonly<Record<string, string>> = {}): Promise<Finding[]> {
  const { stdout } = await run(['control/operations/admin/main.ts', 'doctor', '--json'], { ...stack.env, ...env })
  return JSON.parse(stdout) as Finding[]
}

const problems = (findings: readonly Finding[]): Finding[] => findings.filter(({ state }) => state === 'problem')

describe('behind PgBouncer, a connection for each transaction', () => {
  let postgres: OwnPostgres
  let stack: OwnStack

  beforeAll(async () => {
    postgres = await startPooledPostgres()
    stack = await startStack({ env: { DATABASE_URL: postgres.url } })
  })
  afterAll(async () => {
    await stack?.stop()
    await postgres?.stop()
  })

  test('people sign up and publish at the same time, and every statement finds its session', async () => {
    const account = await stack.createAccount('business')
    const publisher = async (mark: string): Promise<void> => {
      let site: Published | undefined
      for (const round of ['first', 'second', 'third']) {
        site = await stack.publish(account, `<p>${round} of ${mark}</p>`, site)
        expect((await stack.visit(site.slug)).text()).toContain(`<p>${round} of ${mark}</p>`)
      }
    }
    await Promise.all(['one', 'two', 'three'].map(publisher))
    expect(stack.output.filter((line) => /error|prepared statement/i.test(line))).toEqual([])
  })

  test('the doctor finds it well and names the pooler', async () => {
    const findings = await diagnose(stack)
    expect(problems(findings)).toEqual([])
    expect(findings.find(({ check }) => check === 'pooler')?.detail).toContain('a pooler stands before Postgres')
  })

  test('a host that refuses is passed over', async () => {
    const [place] = /127\.0\.0\.1:\d+/.exec(postgres.url)!
    const hosts = postgres.url.replace(place, `127.0.0.1:1,${place}`)
    const findings = await diagnose(stack, { DATABASE_URL: `${hosts}?target_session_attrs=read-write` })
    expect(problems(findings)).toEqual([])
  })

  test('a backup holds every table', async () => {
    const { code, stderr } = await stack.admin('backup', `${stack.dataDir}/backup`)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })
})

describe('a Postgres that only reads for a while', () => {
  let postgres: OwnPostgres
  let stack: OwnStack
  let account: Account

  beforeAll(async () => {
    postgres = await startOwnPostgres()
    stack = await startStack({ env: { DATABASE_URL: postgres.url } })
    account = await stack.createAccount('business')
  })
  afterAll(async () => {
    await stack?.stop()
    await postgres?.stop()
  })

  test('publishers hear 503 and when to ask again, visitors notice nothing, and it heals by itself', async () => {
    const site = await stack.publish(account, '<p>before</p>')
    await postgres.set('default_transaction_read_only', 'on')
    await until(async () => (await health(stack)).status === 'degraded', 'control to notice')

    const answers = await Promise.all([
      stack.fetch('/api/v1/sites', { token: account.token, json: {} }),
      stack.fetch(`/api/v1/sites/${site.id}`, { token: account.token, method: 'DELETE' }),
    ])
    for (const answer of answers) {
      expect({ status: answer.status, error: answer.json<{ error: string }>().error }).toEqual({
        status: 503,
        error: 'unavailable',
      })
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
    }
    expect(await health(stack)).toEqual({ status: 'degraded', detail: 'Postgres only reads: nothing can be changed' })
    expect((await stack.fetch('/readyz')).status).toBe(503)
    expect((await stack.visit(site.slug)).text()).toContain('before')
    const findings = problems(await diagnose(stack))
    expect(findings.find(({ check }) => check === 'writing')?.detail).toContain('Postgres only reads')
    expect(findings.find(({ check }) => check === 'control')?.detail).toContain('Postgres only reads')

    const another = await run(['control/main.ts'], { ...stack.env, CONTROL_PORT: '0' })
    expect(another).toMatchObject({ code: 1, stderr: expect.stringMatching(/^Postgres only reads: [^\n]*\n$/) })

    await postgres.set('default_transaction_read_only', undefined)
    await until(async () => (await health(stack)).status === 'ok', 'control to notice')
    await stack.publish(account, '<p>after</p>', site)
    expect((await stack.visit(site.slug)).text()).toContain('after')
  })

  test('the doctor comes to an end and names what differs from the running planes', async () => {
    const silent = net.createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as net.AddressInfo
    const hosts = `127.0.0.1:${port},127.0.0.1:${port}`
    for (const [env, check, detail] of [
      [{ SECRET_KEY: 'k'.repeat(40) }, 'settings', /another SECRET_KEY/],
      [{ BASE_URL: 'https://other.test', MAIL_TO_FILES: '1' }, 'settings', /runs with BASE_URL https:\/\/localhost/],
      [{ SITES_DOMAIN: 'drops.test' }, 'settings', /runs with SITES_DOMAIN localhost, not drops.test/],
      [
        { DATABASE_URL: `postgres://${hosts}/x?target_session_attrs=read-write` },
        'postgres',
        /read-write, as target_session_attrs of DATABASE_URL demands/,
      ],
      [{ DATABASE_URL: `postgres://127.0.0.1:${port}/x` }, 'postgres', /does not answer at 127\.0\.0\.1/],
      [{ REDIS_URL: `redis://127.0.0.1:${port}` }, 'redis', /cannot be reached/],
    ] as const) {
      const found = problems(await diagnose(stack, env)).find((finding) => finding.check === check)
      expect(found?.detail).toMatch(detail)
    }
    silent.close()
  })

  test('the doctor names a wrong password of Redis, and none', async () => {
    const redis = await startTestRedis()
    const [port] = await freePorts(1)
    const client = new Redis(redis.url)
    await client.config('SET', 'port', String(port))
    await client.config('SET', 'requirepass', 'right')
    client.disconnect()
    for (const [url, said] of [
      [`redis://:wrong@127.0.0.1:${port}`, /refuses the user or the password of REDIS_URL: WRONGPASS/],
      [`redis://127.0.0.1:${port}`, /refuses the user or the password of REDIS_URL: NOAUTH/],
    ] as const) {
      const found = problems(await diagnose(stack, { REDIS_URL: url })).find(({ check }) => check === 'redis')
      expect(found?.detail).toMatch(said)
    }
    await redis.stop()
  })
})

async function health(stack: OwnStack): Promise<{ status: string; detail?: string }> {
  return (await stack.fetch('/healthz')).json()
}
