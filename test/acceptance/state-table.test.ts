/**
 * The specification's table of states, generated: every plan × every way to publish, walked along one moved clock. Each
 * step is one table: what visitors see, how much mail went out, and what is still there.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiFor, fileForm } from '../support/api.ts'
import { openCli, type Cli } from '../support/cli.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { mailedLink } from '../support/mailbox.ts'
import { connectWithToken } from '../support/mcp-client.ts'
import { startStack, type Account, type OwnStack, type PlanName } from '../support/stack.ts'

const DAY_MS = 86_400_000
const PASSWORD = 'correct horse battery'
const PLANS: readonly PlanName[] = ['free', 'plus', 'business', 'starter', 'pro']

let stack: OwnStack
let cli: Cli
let start: number

/** How a version comes to a drop of an account; resolves the drop's slug. The first call makes the drop. */
type Publish = (account: Account, slug: string, text: string) => Promise<void>

const WAYS: Readonly<Record<string, Publish>> = {
  async browser(account, slug, text) {
    const browser = new FormBrowser(stack, '198.51.100.40')
    expect((await browser.send('/signin', { email: account.email, password: PASSWORD })).status).toBe(303)
    const sites = (await browser.api('/sites')).json<{ id: string; slug: string }[]>()
    const site =
      sites.find((each) => each.slug === slug) ??
      (await browser.api('/sites', { json: { slug } })).json<{ id: string }>()
    expect((await browser.api(`/sites/${site.id}/upload`, { body: fileForm('a.html', text) })).status).toBe(201)
  },
  async token(account, slug, text) {
    const api = apiFor(stack, account)
    const sites = (await api.list()).json<{ id: string; slug: string }[]>()
    const site = sites.find((each) => each.slug === slug) ?? (await api.create({ slug })).json<{ id: string }>()
    expect((await api.upload(site.id, fileForm('a.html', text))).status).toBe(201)
  },
  async cli(account, slug, text) {
    const folder = path.join(cli.folder, slug)
    await mkdir(folder, { recursive: true })
    await writeFile(path.join(folder, 'index.html'), text)
    const env = {
      DROPWAY_URL: stack.baseUrl,
      DROPWAY_TOKEN: account.token,
      DROPWAY_CA_FILE: path.join(stack.dataDir, 'ca', 'ca.pem'),
    }
    const done = await cli.run(['deploy', folder, '--slug', slug], { cwd: folder, env })
    expect(done.stderr + done.code).toMatch(/0$/)
  },
  async mcp(account, slug, text) {
    const client = await connectWithToken(stack, account.token, 'legacy')
    const done = await client.callTool({ name: 'service_publish', arguments: { slug, content: text, format: 'html' } })
    expect(done.isError ?? false).toBe(false)
    await client.close()
  },
}

interface Cell {
  readonly name: string
  readonly plan: PlanName
  readonly account: Account
  readonly slug: string
}

let cells: Cell[]

beforeAll(async () => {
  stack = await startStack({ env: { JOB_INTERVAL: '1h' } })
  cli = await openCli()
  cells = []
  for (const plan of PLANS)
    for (const way of Object.keys(WAYS)) {
      const account = await stack.createAccount(plan, { password: PASSWORD })
      const cell = { name: `${plan} by ${way}`, plan, account, slug: `${plan}-${way}-drop` }
      await WAYS[way]!(account, cell.slug, '<title>one</title>')
      await WAYS[way]!(account, cell.slug, '<title>two</title>')
      cells.push(cell)
    }
  start = Date.now()
}, 300_000)
afterAll(async () => {
  await cli?.remove()
  await stack?.stop()
})

async function admin(...args: string[]): Promise<void> {
  const result = await stack.admin(...args)
  expect(result.stderr + result.code).toBe('0')
}

const runAfter = (days: number) =>
  admin('run-lifecycle', '--now', new Date(start + days * DAY_MS).toISOString(), '--really')

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

async function mailsTo(email: string): Promise<string[]> {
  const folder = path.join(stack.dataDir, 'mail')
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('.eml')).toSorted()
  const sources = await Promise.all(names.map((name) => readFile(path.join(folder, name), 'utf8')))
  return sources
    .filter((source) => source.includes(`\nTo: ${email}\r`))
    .map((source) => /^Subject: (.*)\r$/m.exec(source)![1]!)
}

type Row = { sees: string; mails: number; versions: number }

/** The whole table as it is now. */
async function table(): Promise<Record<string, Row>> {
  const rows: Record<string, Row> = {}
  for (const { name, account, slug } of cells) {
    const sites = (await apiFor(stack, account).list()).json<{ id: string; slug: string }[]>()
    const site = sites.find((each) => each.slug === slug)
    rows[name] = {
      sees: await seen(slug),
      mails: (await mailsTo(account.email)).length,
      versions: site ? (await apiFor(stack, account).versions(site.id)).json<unknown[]>().length : 0,
    }
  }
  return rows
}

const expected = (row: (cell: Cell) => Row): Record<string, Row> =>
  Object.fromEntries(cells.map((cell) => [cell.name, row(cell)]))

const isPaid = ({ plan }: Cell): boolean => plan !== 'free'

test('reserved → uploaded → live; a version is promoted, and rolled forward again', async () => {
  expect(await table()).toEqual(expected(() => ({ sees: '200 two', mails: 0, versions: 2 })))
  for (const { account, slug } of cells) {
    const api = apiFor(stack, account)
    const site = (await api.list()).json<{ id: string; slug: string }[]>().find((each) => each.slug === slug)!
    const [two, one] = (await api.versions(site.id)).json<{ version_id: string }[]>()
    await api.promote(site.id, one!.version_id)
    expect(await seen(slug)).toBe('200 one')
    await api.promote(site.id, two!.version_id)
    const reserved = (await api.create()).json<{ id: string; slug: string }>()
    expect(await seen(reserved.slug)).toBe('404 nothing here yet')
    await api.delete(reserved.id)
    expect(await seen(reserved.slug)).toBe('410 gone')
  }
  expect(await table()).toEqual(expected(() => ({ sees: '200 two', mails: 0, versions: 2 })))
})

test.each([
  [22, 0],
  [23.5, 1],
  [29.5, 2],
])('after %d days everything is live; free owners have %i mails', async (days, mails) => {
  await runAfter(days)
  expect(await table()).toEqual(expected((cell) => ({ sees: '200 two', mails: isPaid(cell) ? 0 : mails, versions: 2 })))
})

test('after 31 days free drops have expired, with a mail; paid ones have no clock', async () => {
  await runAfter(31)
  expect(await table()).toEqual(
    expected((cell) =>
      isPaid(cell) ? { sees: '200 two', mails: 0, versions: 2 } : { sees: '410 expired', mails: 3, versions: 2 },
    ),
  )
})

test('after 54 days their owners hear of the removal; whoever signs in has everything back', async () => {
  await runAfter(54)
  const removal = expected((cell) =>
    isPaid(cell) ? { sees: '200 two', mails: 0, versions: 2 } : { sees: '410 expired', mails: 4, versions: 2 },
  )
  expect(await table()).toEqual(removal)
  const [back] = cells.filter((cell) => !isPaid(cell))
  await new FormBrowser(stack, '198.51.100.41').send('/signin', { email: back!.account.email, password: PASSWORD })
  expect(await table()).toEqual({ ...removal, [back!.name]: { sees: '200 two', mails: 4, versions: 2 } })
})

test('after 62 days what nobody came back for is gone; paid drops are there after 400', async () => {
  const [back] = cells.filter((cell) => !isPaid(cell))
  await runAfter(62)
  const rows = await table()
  // Its clock began anew when its owner signed in, which was today.
  expect(rows[back!.name]).toMatchObject({ sees: '410 expired', versions: 2 })
  delete rows[back!.name]
  const others = expected((cell) =>
    isPaid(cell) ? { sees: '200 two', mails: 0, versions: 2 } : { sees: '410 gone', mails: 4, versions: 0 },
  )
  delete others[back!.name]
  expect(rows).toEqual(others)
  cells = cells.filter(isPaid)
  await runAfter(400)
  expect(await table()).toEqual(expected(() => ({ sees: '200 two', mails: 0, versions: 2 })))
  // What follows is done by the operator: each plan once, each with a drop that came another way.
  cells = PLANS.slice(1).map((plan, way) => cells.filter((cell) => cell.plan === plan)[way]!)
})

test('a paid plan ends: what is beyond the cap pauses, with one mail and no clock; it resumes with the plan', async () => {
  for (const { account } of cells)
    for (const index of [1, 2, 3]) {
      const { id } = (await apiFor(stack, account).create({ slug: `${account.email.split('@')[0]}-${index}` })).json()
      await apiFor(stack, account).upload(id, fileForm('a.html', '<title>two</title>'))
    }
  for (const { account } of cells) await admin('set-plan', '--email', account.email, '--plan', 'free')
  // The oldest is the one that pauses.
  expect(await table()).toEqual(expected(() => ({ sees: '503 paused', mails: 1, versions: 2 })))
  await runAfter(29)
  await runAfter(500)
  const later = await table()
  for (const cell of cells) expect(later[cell.name]).toMatchObject({ sees: '503 paused', versions: 2 })
  for (const { account, plan } of cells) await admin('set-plan', '--email', account.email, '--plan', plan)
  for (const { slug } of cells) expect(await seen(slug)).toBe('200 two')
})

test('trust and safety: removed, with a mail; restored, live for as long as the plan says', async () => {
  for (const { slug } of cells) await admin('takedown', slug, '--reason', 'phishing')
  for (const { slug } of cells) expect(await seen(slug)).toBe('410 removed')
  await runAfter(900)
  for (const { slug } of cells) await admin('restore', slug)
  for (const { slug } of cells) expect(await seen(slug)).toBe('200 two')
})

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
