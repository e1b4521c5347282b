/** After everything that hands out a secret, none of them lies in Postgres, in Redis or in a log. */
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { Redis } from 'ioredis'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fileForm } from '../support/api.ts'
import { FormBrowser, formFields } from '../support/form-browser.ts'
import { startStack, type OwnStack } from '../support/stack.ts'
import { mailedLink } from '../support/mailbox.ts'

const PASSWORDS = ['the very first password', 'the second password of all', 'a password on the drop']

let stack: OwnStack

beforeAll(async () => {
  stack = await startStack({ env: { LOG_LEVEL: 'trace', ACCESS_LOG_SAMPLE: '1' } })
})
afterAll(() => stack?.stop())

test('no secret that was issued is kept in the clear', async () => {
  const issued = new Map<string, string>()
  const note = (name: string, secret: string | undefined) => {
    expect(secret, name).toMatch(/^[\w .-]{16,}$/)
    issued.set(name, secret!)
  }
  const email = 'secretive@example.test'
  const browser = new FormBrowser(stack, '192.0.2.1')
  const cookie = () => browser.cookies.get('__Host-dropway_session')
  PASSWORDS.forEach((password, index) => note(`password ${index}`, password))

  const dropped = await browser.open('/api/v1/drops', { method: 'POST', body: fileForm('a.html', '<h1>a</h1>') })
  note('claim link', /[\w-]+$/.exec(dropped.json().claim_url)?.[0])
  // Opened by someone without an account, as a link in a chat is.
  await new FormBrowser(stack, '192.0.2.2').open(dropped.json().claim_url)
  await browser.send('/signup', { email, password: PASSWORDS[0]! })
  note('first session', cookie())
  note('verification link', await tokenIn(email, '/verify'))
  await browser.confirm(`/verify?token=${issued.get('verification link')}`)

  const [, token] = /(dw_[\w-]{40})/.exec((await browser.send('/account/tokens', { name: 'ci' })).text())!
  note('API token', token)
  const site = await stack.publish({ token: token! }, '<h1>locked</h1>')
  await stack.operate('set-plan', '--email', email, '--plan', 'plus')
  const locked = await stack.fetch(`/api/v1/sites/${site.id}`, {
    method: 'PATCH',
    token,
    json: { password: PASSWORDS[2] },
  })
  expect(locked.status).toBe(200)
  const unlocked = await stack.visit(site.slug, '/.dropway/unlock', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ password: PASSWORDS[2]! }).toString(),
  })
  note('unlock cookie', unlocked.cookies[0]?.split('=')[1])

  await browser.send('/reset', { email })
  note('reset link', await tokenIn(email, '/reset'))
  const page = await browser.open(`/reset?token=${issued.get('reset link')}`)
  const fields = formFields(page.text(), '/reset/password')
  await browser.post('/reset/password', new URLSearchParams({ ...fields, password: PASSWORDS[1]! }))
  note('second session', cookie())
  expect((await browser.api('/me')).status).toBe(200)
  expect((await stack.fetch('/api/v1/me', { token })).status).toBe(401)
  const [, renewed] = /(dw_[\w-]{40})/.exec((await browser.send('/account/tokens', { name: 'ci' })).text())!
  note('second API token', renewed)
  expect((await stack.fetch('/api/v1/me', { token: renewed })).status).toBe(200)

  // Logs are written in order: with this in them, they tell of all that came before.
  await stack.fetch('/the-last-of-all-requests')
  await expect.poll(readLogs).toContain('/the-last-of-all-requests')
  const places = { postgres: await dumpPostgres(), redis: await dumpRedis(), logs: await readLogs() }
  expect(places.postgres).toContain(email)
  expect(places.redis).toContain(site.id)
  const leaks = [...issued].flatMap(([name, secret]) =>
    Object.entries(places).flatMap(([place, text]) => (text.includes(secret) ? [`${name} in ${place}`] : [])),
  )
  expect(leaks).toEqual([])
})

async function tokenIn(email: string, at: string): Promise<string | undefined> {
  return new URL(await mailedLink(stack, email, at)).searchParams.get('token') ?? undefined
}

async function services(): Promise<{ databaseUrl: string; redisUrl: string }> {
  return JSON.parse(await readFile(path.join(stack.dataDir, 'services.json'), 'utf8'))
}

async function dumpPostgres(): Promise<string> {
  const { databaseUrl } = await services()
  const sql = postgres({
    path: `${databaseUrl}/.s.PGSQL.5432`,
    database: 'dropway',
    username: 'postgres',
    max: 1,
  } as never)
  try {
    const tables = await sql<
      { name: string }[]
    >`select table_name as name from information_schema.tables where table_schema = 'public'`
    const rows: unknown[] = []
    for (const { name } of tables) rows.push(await sql`select * from ${sql(name)}`)
    return JSON.stringify(rows)
  } finally {
    await sql.end()
  }
}

async function dumpRedis(): Promise<string> {
  const redis = new Redis((await services()).redisUrl)
  try {
    const dumps = await Promise.all((await redis.keys('*')).map(async (key) => `${key} ${await valueOf(redis, key)}`))
    return dumps.join('\n')
  } finally {
    redis.disconnect()
  }
}

async function valueOf(redis: Redis, key: string): Promise<string> {
  switch (await redis.type(key)) {
    case 'string':
      return (await redis.get(key)) ?? ''
    case 'hash':
      return JSON.stringify(await redis.hgetall(key))
    case 'set':
      return JSON.stringify(await redis.smembers(key))
    case 'zset':
      return JSON.stringify(await redis.zrange(key, '0', '-1'))
    case 'stream':
      return JSON.stringify(await redis.xrange(key, '-', '+'))
    default:
      return JSON.stringify(await redis.lrange(key, 0, -1))
  }
}

async function readLogs(): Promise<string> {
  const folder = path.join(stack.dataDir, 'logs')
  const files = await Promise.all((await readdir(folder)).map((name) => readFile(path.join(folder, name), 'utf8')))
  return [...files, ...stack.output].join('\n')
}
