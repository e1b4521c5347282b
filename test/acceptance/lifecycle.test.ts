/** Every move in the specification's state table, as a visitor sees it before and after. The clock is moved by `run-lifecycle --now`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { apiFor, bundleForm, fileForm } from '../support/api.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { startStack, type Account, type OwnStack } from '../support/stack.ts'
import { mailsOf } from '../support/mailbox.ts'

const DAY_MS = 86_400_000
const PASSWORD = 'correct horse battery'

let stack: OwnStack

beforeAll(async () => {
  stack = await startStack({ env: { JOB_INTERVAL: '1h' }, database: 'shared', operator: true })
})
afterAll(() => stack.stop())

async function operate(...args: string[]): Promise<Record<string, unknown>> {
  const result = await stack.operate(...args)
  expect(result.stderr + result.code).toBe('0')
  return JSON.parse(result.stdout)
}

const runAfter = (days: number, from = Date.now()) =>
  operate('run-lifecycle', '--now', new Date(from + days * DAY_MS).toISOString(), '--really')

async function newDrop(account: Account, content = '<h1>here</h1>') {
  const api = apiFor(stack, account)
  const site = (await api.create()).json()
  await api.upload(site.id, fileForm('a.html', content))
  return site as { id: string; slug: string }
}

async function statusOf(slug: string): Promise<[number, string]> {
  const answer = await stack.visit(slug)
  return [answer.status, answer.text().toLowerCase()]
}

const subjectsTo = (email: string): string[] => mailsOf(stack, email).map(({ subject }) => subject)

async function signIn(account: Account): Promise<void> {
  const browser = new FormBrowser(stack, '198.51.100.5')
  expect((await browser.send('/signin', { email: account.email, password: PASSWORD })).status).toBe(303)
}

test('anonymous, live → 7 days after the upload → expired (410); nothing resets it', async () => {
  const made = (await stack.fetch('/api/v1/drops', { body: fileForm('a.html', 'mine') })).json()
  expect((await statusOf(made.slug))[0]).toBe(200)
  await runAfter(6.9)
  expect((await statusOf(made.slug))[0]).toBe(200)
  await runAfter(7.1)
  expect(await statusOf(made.slug)).toEqual([410, expect.stringContaining('expired')])
})

describe('a free drop', () => {
  let account: Account
  let drop: { id: string; slug: string }

  beforeAll(async () => {
    account = await stack.createAccount('free', { password: PASSWORD })
    drop = await newDrop(account)
  })

  test('warns its owner 7 days and 1 day before, once each, however often the job runs', async () => {
    for (const days of [22, 23.5, 23.6, 28, 29.5, 29.6]) await runAfter(days)
    // Mails go out in order: with this one, all that were to go before it have.
    await new FormBrowser(stack, '198.51.100.5').send('/reset', { email: account.email })
    await expect.poll(() => subjectsTo(account.email)).toContainEqual(expect.stringMatching(/password/i))
    expect(subjectsTo(account.email)).toHaveLength(3)
    expect((await statusOf(drop.slug))[0]).toBe(200)
  })

  test('expires 30 days after the owner was last seen (410); visitors do not matter', async () => {
    await stack.visit(drop.slug)
    await runAfter(30.1)
    expect(await statusOf(drop.slug)).toEqual([410, expect.stringContaining('expired')])
    expect((await apiFor(stack, account).get(drop.id)).json()).toMatchObject({ state: 'expired' })
    const refused = await apiFor(stack, account).upload(drop.id, fileForm('a.html', 'new'))
    expect([refused.status, refused.json().error]).toEqual([409, 'expired'])
  })

  test('comes back when the owner signs in before the final removal', async () => {
    await signIn(account)
    expect((await statusOf(drop.slug))[0]).toBe(200)
    expect((await apiFor(stack, account).get(drop.id)).json()).toMatchObject({ state: 'live' })
  })

  test('is removed for good when the recovery window passes', async () => {
    for (const day of [30.1, 53.1, 59]) await runAfter(day)
    expect(await statusOf(drop.slug)).toEqual([410, expect.stringContaining('expired')])
    await runAfter(60.2)
    expect((await statusOf(drop.slug))[0]).toBe(410)
    await signIn(account)
    expect((await statusOf(drop.slug))[0]).toBe(410)
    expect((await apiFor(stack, account).list()).json()).toEqual([])
  })
})

describe('plans', () => {
  test('paid drops have no clock; when the plan ends the newest 3 stay, the others pause; re-subscribing resumes them', async () => {
    const account = await stack.createAccount('plus', { password: PASSWORD })
    const drops: { id: string; slug: string }[] = []
    for (let index = 0; index < 5; index++) drops.push(await newDrop(account, `<p>drop ${index}</p>`))
    const states = async () => Promise.all(drops.map(async (drop) => (await statusOf(drop.slug))[0]))
    await runAfter(400)
    expect(await states()).toEqual([200, 200, 200, 200, 200])
    expect((await stack.visit(drops[4]!.slug)).text()).not.toContain('dropway')

    await operate('set-plan', '--email', account.email, '--plan', 'free')
    expect(await states()).toEqual([503, 503, 200, 200, 200])
    expect((await statusOf(drops[0]!.slug))[1]).toContain('paused')
    expect((await stack.visit(drops[0]!.slug)).header('retry-after')).toBeDefined()
    expect((await stack.visit(drops[4]!.slug)).text()).toContain('dropway')
    expect((await apiFor(stack, account).create()).json()).toMatchObject({ error: 'plan_limit' })

    await apiFor(stack, account).delete(drops[4]!.id)
    expect(await states()).toEqual([503, 200, 200, 200, 410])

    await operate('set-plan', '--email', account.email, '--plan', 'business')
    expect(await states()).toEqual([200, 200, 200, 200, 410])
  })

  test('a password stays in force when the plan ends', async () => {
    const account = await stack.createAccount('plus')
    const drop = await newDrop(account)
    await apiFor(stack, account).patch(drop.id, { password: 'secret' })
    await operate('set-plan', '--email', account.email, '--plan', 'free')
    expect((await statusOf(drop.slug))[0]).toBe(401)
  })
})

describe('trust and safety', () => {
  test('takedown → 410 removed, with a mail and no way to publish; restore → live', async () => {
    const account = await stack.createAccount('plus')
    const drop = await newDrop(account)
    await operate('takedown', drop.slug, '--reason', 'phishing')
    expect(await statusOf(drop.slug)).toEqual([410, expect.stringContaining('removed')])
    expect((await apiFor(stack, account).upload(drop.id, fileForm('a.html', 'x'))).status).toBe(403)
    await expect.poll(() => subjectsTo(account.email)).toHaveLength(1)
    await operate('restore', drop.slug)
    expect((await statusOf(drop.slug))[0]).toBe(200)
  })

  test('a takedown of nothing fails with a sentence', async () => {
    const result = await stack.operate('takedown', 'no-such-drop', '--reason', 'x')
    expect([result.code !== 0, result.stderr.length > 0]).toEqual([true, true])
  })
})

test('the gallery shows drops whose owners want it, and drops them when they are protected', async () => {
  const account = await stack.createAccount('plus')
  const drop = await newDrop(account, '<title>Look at me</title>')
  const api = apiFor(stack, account)
  const slugs = async () => (await stack.fetch('/api/v1/gallery')).json().map((entry: { slug: string }) => entry.slug)
  expect(await slugs()).not.toContain(drop.slug)
  await api.patch(drop.id, { gallery: true })
  await expect.poll(slugs).toContain(drop.slug)
  await api.patch(drop.id, { password: 'secret' })
  await expect.poll(slugs).not.toContain(drop.slug)
})

test('files of a former version go when their time is over and their version is not kept, to the hour', async () => {
  const account = await stack.createAccount('free', { password: PASSWORD })
  const api = apiFor(stack, account)
  const site = (await api.create()).json()
  for (const number of [1, 2, 3, 4]) {
    const answer = await api.uploadBundle(
      site.id,
      bundleForm({ 'index.html': 'x', [`chunk-${number}.js`]: `${number}` }),
    )
    expect(answer.status).toBe(201)
  }
  const looks = async () =>
    Promise.all([1, 2, 3, 4].map(async (number) => (await stack.visit(site.slug, `/chunk-${number}.js`)).status))
  expect(await looks()).toEqual([200, 200, 200, 200])
  const now = new Date(Date.now() + 31 * DAY_MS).toISOString()
  expect(await operate('run-lifecycle', '--now', now)).toMatchObject({ would_end_old_files: 1 })
  await runAfter(29.9)
  expect(await looks()).toEqual([200, 200, 200, 200])
  // Version 1 is gone from the list of three, so that its chunk has no other reason to stay. Signing in keeps the drop.
  expect(await runAfter(30.1)).toMatchObject({ old_files_ended: 1 })
  await signIn(account)
  await expect.poll(looks).toEqual([404, 200, 200, 200])
})
