/**
 * The specification's table of states, generated: every row × every plan × every way to act on a drop, walked along one
 * moved clock. Each step is one table: what visitors see, how much mail went out, and what is still there. `npm test` walks
 * each row once (test/acceptance/lifecycle.test.ts) and histories of all of them (test/integration/owner-histories.test.ts).
 */
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiFor, fileForm } from '../support/api.ts'
import { openCli, type Cli } from '../support/cli.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { mailedLink, mailsOf } from '../support/mailbox.ts'
import { connectWithToken } from '../support/mcp-client.ts'
import { startStack, type Account, type OwnStack, type PlanName } from '../support/stack.ts'

const DAY_MS = 86_400_000
const PASSWORD = 'correct horse battery'
const PLANS: readonly PlanName[] = ['free', 'plus', 'business', 'starter', 'pro']

let stack: OwnStack
let cli: Cli
let start: number

/** What an owner does with a drop, in one of the ways that there are. */
interface Way {
  /** A version; the first one makes the drop. */
  publish(account: Account, slug: string, text: string): Promise<void>
  promote(account: Account, slug: string, version: number): Promise<void>
  remove(account: Account, slug: string): Promise<void>
  /** The drop stays live when a plan ends, or comes back in the place of another. */
  keep(account: Account, slug: string): Promise<void>
}

interface Site {
  readonly id: string
  readonly slug: string
}
interface Version {
  readonly version_id: string
  readonly version_number: number
}

const sitesOf = async (account: Account): Promise<Site[]> => (await apiFor(stack, account).list()).json<Site[]>()
const find = async (account: Account, slug: string): Promise<Site | undefined> =>
  (await sitesOf(account)).find((each) => each.slug === slug)

const browsers = new Map<string, FormBrowser>()

/** Signed in before the clock is moved, and not again: signing in would set it back. */
async function browserOf(account: Account): Promise<FormBrowser> {
  const known = browsers.get(account.email)
  if (known) return known
  const browser = new FormBrowser(stack, '198.51.100.40')
  expect((await browser.send('/signin', { email: account.email, password: PASSWORD })).status).toBe(303)
  browsers.set(account.email, browser)
  return browser
}

type Call = (
  path: string,
  options?: { json?: unknown; body?: FormData; method?: string },
) => Promise<{
  status: number
  json<Value>(): Value
}>

/** The REST interface, as a dashboard's session and as a token reach it. */
function overHttp(callerOf: (account: Account) => Promise<Call>): Way {
  async function done(answer: ReturnType<Call>): Promise<void> {
    expect((await answer).status).toBeLessThan(300)
  }
  return {
    async publish(account, slug, text) {
      const call = await callerOf(account)
      const site = (await find(account, slug)) ?? (await call('/sites', { json: { slug } })).json<Site>()
      await done(call(`/sites/${site.id}/upload`, { body: fileForm('a.html', text) }))
    },
    async promote(account, slug, version) {
      const call = await callerOf(account)
      const { id } = (await find(account, slug))!
      const entries = (await call(`/sites/${id}/versions`)).json<Version[]>()
      const wanted = entries.find((entry) => entry.version_number === version)!
      await done(call(`/sites/${id}/versions/${wanted.version_id}/promote`, { method: 'POST' }))
    },
    async remove(account, slug) {
      const call = await callerOf(account)
      await done(call(`/sites/${(await find(account, slug))!.id}`, { method: 'DELETE' }))
    },
    async keep(account, slug) {
      const call = await callerOf(account)
      const json = { site_ids: [(await find(account, slug))!.id] }
      await done(call('/sites/staying-live', { method: 'PUT', json }))
    },
  }
}

async function dropway(account: Account, slug: string, args: readonly string[]): Promise<void> {
  const folder = path.join(cli.folder, slug)
  const env = {
    DROPWAY_URL: stack.baseUrl,
    DROPWAY_TOKEN: account.token,
    DROPWAY_CA_FILE: path.join(stack.dataDir, 'ca', 'ca.pem'),
  }
  const done = await cli.run(args, { cwd: folder, env })
  expect(done.stderr + done.code).toMatch(/0$/)
}

async function callTool(account: Account, name: string, args: Record<string, unknown>): Promise<void> {
  const client = await connectWithToken(stack, account.token, 'legacy')
  const done = await client.callTool({ name, arguments: args })
  expect(done.isError ?? false, JSON.stringify(done.content)).toBe(false)
  await client.close()
}

const WAYS = {
  browser: overHttp(async (account) => {
    const browser = await browserOf(account)
    return (address, options) => browser.api(address, options)
  }),
  token: overHttp(
    async (account) => (address, options) => stack.fetch(`/api/v1${address}`, { ...options, token: account.token }),
  ),
  cli: {
    async publish(account, slug, text) {
      const folder = path.join(cli.folder, slug)
      await mkdir(folder, { recursive: true })
      await writeFile(path.join(folder, 'index.html'), text)
      await dropway(account, slug, ['deploy', folder, '--slug', slug])
    },
    promote: (account, slug, version) => dropway(account, slug, ['rollback', String(version)]),
    remove: (account, slug) => dropway(account, slug, ['delete', '--yes', '--drop', slug]),
    keep: (account, slug) => dropway(account, slug, ['keep', slug]),
  },
  mcp: {
    publish: (account, slug, text) => callTool(account, 'service_publish', { slug, content: text, format: 'html' }),
    promote: (account, slug, version) => callTool(account, 'service_promote', { id: slug, version }),
    remove: (account, slug) => callTool(account, 'service_delete', { id: slug }),
    keep: (account, slug) => callTool(account, 'service_settings', { id: slug, stays_live: true }),
  },
} satisfies Record<string, Way>
type WayName = keyof typeof WAYS
const WAY_NAMES = Object.keys(WAYS) as WayName[]

interface Cell {
  readonly name: string
  readonly plan: PlanName
  readonly way: Way
  readonly account: Account
  readonly slug: string
}

let cells: Cell[]

beforeAll(async () => {
  ;[stack, cli] = await Promise.all([
    startStack({ env: { JOB_INTERVAL: '1h' }, database: 'shared', operator: true }),
    openCli(),
  ])
  cells = []
  for (const plan of PLANS) {
    const made = WAY_NAMES.map(async (name) => ({
      name: `${plan} by ${name}`,
      plan,
      way: WAYS[name],
      account: await stack.createAccount(plan, { password: PASSWORD }),
      slug: `${plan}-${name}-drop`,
    }))
    cells.push(...(await Promise.all(made)))
  }
  await inTurns(async ({ way, account, slug }) => {
    await way.publish(account, slug, '<title>one</title>')
    await way.publish(account, slug, '<title>two</title>')
  })
  start = Date.now()
}, 600_000)
afterAll(async () => {
  await cli?.remove()
  await stack?.stop()
})

/** For every cell, the ways side by side. */
async function inTurns(act: (cell: Cell) => Promise<void>, among: readonly Cell[] = cells): Promise<void> {
  const lanes = WAY_NAMES.map((name) => among.filter((cell) => cell.way === WAYS[name]))
  await Promise.all(
    lanes.map(async (lane) => {
      for (const cell of lane) await act(cell)
    }),
  )
}

async function operate(...args: string[]): Promise<void> {
  const result = await stack.operate(...args)
  expect(result.stderr + result.code).toBe('0')
}

async function runAfter(days: number): Promise<void> {
  const result = await stack.admin('run-lifecycle', '--now', new Date(start + days * DAY_MS).toISOString(), '--really')
  expect(result.stderr + result.code).toBe('0')
}

/** What a visitor reads of the state, in one word. */
async function seen(slug: string): Promise<string> {
  const answer = await stack.visit(slug)
  const text = answer.text().toLowerCase()
  const word = ['expired', 'paused', 'removed', 'gone', 'not verified', 'nothing here yet', 'one', 'two'].find(
    (each) =>
      text.includes(`<title>${each}`) ||
      text.includes(`drop is ${each}`) ||
      text.includes(`has ${each}`) ||
      text.includes(`was ${each}`) ||
      (each.includes(' ') && text.includes(each)),
  )
  return `${answer.status} ${word}`
}

/** Subjects by recipient: every mail of the stack, read once. */
function mails(): Map<string, string[]> {
  const subjects = new Map<string, string[]>()
  for (const { to, subject } of mailsOf(stack)) subjects.set(to, [...(subjects.get(to) ?? []), subject])
  return subjects
}

interface Row {
  readonly sees: string
  readonly mails: number
  readonly versions: number
}

/** The whole table as it is now. */
async function table(): Promise<Record<string, Row>> {
  const rows: Record<string, Row> = {}
  const sent = mails()
  for (const { name, account, slug } of cells) {
    const site = await find(account, slug)
    rows[name] = {
      sees: await seen(slug),
      mails: sent.get(account.email)?.length ?? 0,
      versions: site ? (await apiFor(stack, account).versions(site.id)).json<unknown[]>().length : 0,
    }
  }
  return rows
}

const expected = (row: (cell: Cell) => Row): Record<string, Row> =>
  Object.fromEntries(cells.map((cell) => [cell.name, row(cell)]))

const isPaid = ({ plan }: Cell): boolean => plan !== 'free'
const LIVE: Row = { sees: '200 two', mails: 0, versions: 2 }

test('reserved → live; a version is promoted, and rolled forward again; deleted, gone for good', async () => {
  expect(await table()).toEqual(expected(() => LIVE))
  await inTurns(async ({ way, account, slug }) => {
    await way.promote(account, slug, 1)
    expect(await seen(slug)).toBe('200 one')
    await way.promote(account, slug, 2)
    const reserved = (await apiFor(stack, account).create()).json<Site>()
    expect(await seen(reserved.slug)).toBe('404 nothing here yet')
    await mkdir(path.join(cli.folder, reserved.slug), { recursive: true })
    await way.remove(account, reserved.slug)
    expect(await seen(reserved.slug)).toBe('410 gone')
  })
  expect(await table()).toEqual(expected(() => LIVE))
}, 600_000)

test('trust and safety: removed, with a mail and no clock; restored, live for as long as the plan says', async () => {
  await Promise.all(cells.map(({ slug }) => operate('takedown', slug, '--reason', 'phishing')))
  await runAfter(0.1)
  expect(await table()).toEqual(expected(() => ({ sees: '410 removed', mails: 1, versions: 2 })))
  await Promise.all(cells.map(({ slug }) => operate('restore', slug)))
  expect(await table()).toEqual(expected(() => ({ ...LIVE, mails: EARLIER_MAILS })))
}, 600_000)

/** The mail of a takedown, which every owner has had. */
const EARLIER_MAILS = 1

/** A row of the clock: what was sent before is not news. */
const clockRow = (row: Row): Row => ({ ...row, mails: row.mails + EARLIER_MAILS })

test.each([
  [22, 0],
  [23.5, 1],
  [29.5, 2],
])('after %d days everything is live; free owners have %i mails', async (days, mailsOfFree) => {
  await runAfter(days)
  expect(await table()).toEqual(expected((cell) => clockRow({ ...LIVE, mails: isPaid(cell) ? 0 : mailsOfFree })))
})

test('after 31 days free drops have expired, with a mail; paid ones have no clock', async () => {
  await runAfter(31)
  expect(await table()).toEqual(
    expected((cell) => clockRow(isPaid(cell) ? LIVE : { sees: '410 expired', mails: 3, versions: 2 })),
  )
})

test('after 54 days their owners hear of the removal; signing in brings everything back', async () => {
  await runAfter(54)
  const removal = (cell: Cell): Row => clockRow(isPaid(cell) ? LIVE : { sees: '410 expired', mails: 4, versions: 2 })
  expect(await table()).toEqual(expected(removal))
  const [back] = cells.filter((cell) => !isPaid(cell))
  await new FormBrowser(stack, '198.51.100.41').send('/signin', { email: back!.account.email, password: PASSWORD })
  expect(await table()).toEqual({ ...expected(removal), [back!.name]: { ...removal(back!), sees: '200 two' } })
})

test('after 62 days what no one came back for is gone; paid drops are there after 400', async () => {
  const [back] = cells.filter((cell) => !isPaid(cell))
  await runAfter(62)
  const rows = await table()
  // Its clock began anew when its owner signed in, which was today.
  expect(rows[back!.name]).toMatchObject({ sees: '410 expired', versions: 2 })
  delete rows[back!.name]
  const others = expected((cell) => clockRow(isPaid(cell) ? LIVE : { sees: '410 gone', mails: 4, versions: 0 }))
  delete others[back!.name]
  expect(rows).toEqual(others)
  cells = cells.filter(isPaid)
  await runAfter(400)
  expect(await table()).toEqual(expected(() => clockRow(LIVE)))
})

test('a paid plan ends: what is beyond the cap pauses, with one mail and no clock; the owner swaps; it resumes', async () => {
  const others = ({ slug }: Cell): string[] => [1, 2, 3].map((index) => `${slug}-${index}`)
  await inTurns(async (cell) => {
    for (const slug of others(cell)) await WAYS.token.publish(cell.account, slug, '<title>two</title>')
  })
  await Promise.all(cells.map(({ account }) => operate('set-plan', '--email', account.email, '--plan', 'free')))
  const paused = (): Row => clockRow({ sees: '503 paused', mails: 1, versions: 2 })
  // The one that was published first pauses. Mails are sent by control, not by the operator's command.
  await expect.poll(table).toEqual(expected(paused))
  await inTurns(async (cell) => {
    expect(await Promise.all(others(cell).map(seen))).toEqual(['200 two', '200 two', '200 two'])
  })
  await runAfter(500)
  // Paused is never deleted, and never expires; what is live has the clock of a free drop, and its mails.
  const later = await table()
  for (const cell of cells) expect(later[cell.name]).toMatchObject({ sees: '503 paused', versions: 2 })
  // Each in its own way: the paused one comes back in the place of another, or when another is deleted.
  await inTurns(async ({ way, account, slug }) => {
    await way.keep(account, slug)
    expect(await seen(slug)).toBe('200 two')
  })
  await Promise.all(cells.map(({ account, plan }) => operate('set-plan', '--email', account.email, '--plan', plan)))
  for (const cell of cells) expect([cell.name, await seen(cell.slug)]).toEqual([cell.name, '200 two'])
}, 600_000)

test('anonymous: seven days; claimed by signing up, hidden until verified, at the same address', async () => {
  const browser = new FormBrowser(stack, '198.51.100.42')
  const made = (await browser.open('/api/v1/drops', { body: fileForm('a.html', '<title>two</title>') })).json()
  const left = (await stack.fetch('/api/v1/drops', { body: fileForm('a.html', '<title>two</title>') })).json()
  const email = `claimer${Date.now()}@example.com`
  expect((await browser.send('/signup', { email, password: PASSWORD })).header('location')).toBe(
    '/sites?done=claimed-hidden',
  )
  expect(await seen(made.slug)).toBe('503 not verified')
  await browser.confirm(await mailedLink(stack, email, '/verify'))
  expect(await seen(made.slug)).toBe('200 two')
  await runAfter(7.1)
  expect([await seen(left.slug), await seen(made.slug)]).toEqual(['410 expired', '200 two'])
})
