/** Nothing is typed twice: every form of the dashboard that is refused comes back as it was, and says where it is wrong. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Browser, Locator } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seriousViolations } from '../support/accessibility.ts'
import { launchBrowser } from '../support/browser.ts'
import {
  beSignedIn,
  keepScreenshot,
  openVisitor,
  PASSWORD,
  signIn,
  type Visitor,
} from '../support/dashboard-visitor.ts'
import { byTurns, IS_DEEP, sampled } from '../support/depth.ts'
import { mailedLink } from '../support/mailbox.ts'
import { sharedStack, type Published, type Stack } from '../support/stack.ts'

interface Refusal {
  /** The page where the form stands. */
  readonly page: string
  /** What is typed: each comes back, except passwords. */
  readonly typed: Readonly<Record<string, string>>
  /** Names of the fields that say what is wrong; empty when it is the whole. */
  readonly at: readonly string[]
  readonly says: RegExp
  readonly ticked?: number
  readonly signedOut?: boolean
}

const LONG = 'x'.repeat(200)
const ANONYMOUS_CAP_MB = 2
/** By action, ids left out. */
const REFUSED: Readonly<Record<string, Refusal>> = {
  '/signup': {
    page: '/signup',
    typed: { email: 'nobody', password: PASSWORD, country: 'FR' },
    at: ['email'],
    says: /address/i,
    signedOut: true,
  },
  '/signin': {
    page: '/signin?next=%2Faccount',
    typed: { email: 'ada@example.test', password: 'wrong password' },
    at: ['password'],
    says: /not right/,
    signedOut: true,
  },
  '/reset': { page: '/reset', typed: { email: 'nobody' }, at: ['email'], says: /address/i, signedOut: true },
  '/reset/password': {
    page: 'RESET',
    typed: { password: 'short' },
    at: ['password'],
    says: /characters/,
    signedOut: true,
  },
  '/report': {
    page: '/report',
    typed: { url: 'no address', reason: 'spam', detail: 'Line one\n\n  line two', contact: 'me@example.test' },
    at: ['url'],
    says: /address/,
    signedOut: true,
  },
  '/templates/cv': {
    page: '/templates/cv',
    typed: { name: ' ', role: 'Painter & poet' },
    at: ['name'],
    says: /Fill in/,
    signedOut: true,
  },
  '/account/email': {
    page: '/account',
    typed: { email: 'new@example.test', password: 'wrong password' },
    at: ['password'],
    says: /not your password/,
  },
  '/account/password': {
    page: '/account',
    typed: { current: 'wrong password', new: 'another good password' },
    at: ['current'],
    says: /not your password/,
    ticked: 1,
  },
  '/account/delete': {
    page: '/account/data',
    typed: { confirm: 'someone@example.test', password: PASSWORD },
    at: ['confirm'],
    says: /exactly/,
  },
  '/account/prove': { page: '/account/prove', typed: { code: '000000' }, at: ['code'], says: /not right/ },
  '/sites/ID/publishers': {
    page: '/sites/ID/settings',
    typed: { provider: 'gitlab', repository: 'site', branch: 'main' },
    at: ['repository'],
    says: /owner\/name/,
  },
  '/account/tokens': { page: '/account/tokens', typed: { name: LONG }, at: ['name'], says: /characters/ },
  '/account/webhooks': {
    page: '/account/webhooks',
    typed: { url: 'https://127.0.0.1/hook', description: 'Search index' },
    at: ['url'],
    says: /private or local/,
    ticked: 1,
  },
  '/account/organisation/rename': {
    page: '/account/organisation',
    typed: { name: 'see https://spam.example' },
    at: ['name'],
    says: /web addresses/,
  },
  '/account/organisation/create': {
    page: '/account/organisation',
    typed: { name: 'www.spam.example' },
    at: ['name'],
    says: /web addresses/,
  },
  '/account/organisation/invite': {
    page: '/account/organisation',
    typed: { email: 'nobody', role: 'admin' },
    at: ['email'],
    says: /address/i,
  },
  '/account/organisation/delete': {
    page: '/account/organisation',
    typed: { confirm: 'Another one' },
    at: ['confirm'],
    says: /exactly/,
  },
  '/account/plan/staying-live': { page: '/account/plan', typed: {}, at: [], says: /at most 3/, ticked: 4 },
  '/sites/ID/settings/general': {
    page: '/sites/ID/settings',
    typed: { name: 'A new name', slug: 'Not--Good' },
    at: ['slug'],
    says: /./,
  },
  '/sites/ID/settings/password': {
    page: '/sites/ID/settings',
    typed: { password: '' },
    at: ['password'],
    says: /Enter/,
  },
  '/sites/ID/settings/old-files': {
    page: '/sites/ID/settings',
    typed: { keep_old_files_days: '400' },
    at: ['keep_old_files_days'],
    says: /0 to 365/,
  },
  '/sites/ID/settings/analytics': {
    page: '/sites/ID/settings',
    typed: { google: 'UA-1', meta: 'abc', plausible: 'example.com', consent_banner: 'on' },
    at: ['google', 'meta'],
    says: /Must look like G-/,
  },
  '/sites/ID/delete': { page: '/sites/ID/settings', typed: { confirm: 'another' }, at: ['confirm'], says: /exactly/ },
  '/sites/ID/domains': { page: '/sites/ID/domains', typed: { domain: 'no domain' }, at: ['domain'], says: /./ },
  '/device': { page: '/device', typed: { user_code: 'BCDF-GHJK' }, at: ['user_code'], says: /no such code/ },
  '/staff/takedown': { page: '/staff?q=SLUG', typed: { reason: '  ' }, at: ['reason'], says: /Give one/ },
  '/sites/new': {
    page: '/sites/new',
    typed: { slug: 'Not--Good', name: 'My drop', text: '# Hello\n\nA draft.' },
    at: ['slug'],
    says: /./,
  },
  '/sites/ID/publish': {
    page: '/sites/ID',
    typed: { text: '# Hello\n\nA draft.', message: 'What changed' },
    at: [],
    says: /./,
  },
  '/drop': { page: '/', typed: { text: '# Hello\n\nA draft.' }, at: [], says: /./, signedOut: true },
}

/** Nothing can be typed into these, or everything that can be is accepted. */
const BUTTONS = [
  '/signout',
  '/verify/send',
  '/account/sessions/revoke',
  '/account/sessions/revoke-all',
  '/account/organisation/switch',
  '/account/tokens/revoke',
  '/account/organisation/second-factor',
  '/account/organisation/policy',
  '/account/totp/begin',
  '/account/ways-in/sessions/end',
  '/account/organisation/uninvite',
  '/account/plan/checkout',
  '/account/plan/portal',
  '/sites/ID/settings/behaviour',
  '/sites/ID/domains/check',
  '/sites/ID/versions/ID/promote',
  '/staff/dismiss',
  '/staff/restore',
]

let stack: Stack
let browser: Browser
let email: string
let site: Published
let endedEmail: string
let resetLink: string

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
  const account = await stack.createAccount('business', { password: PASSWORD, staff: true })
  email = account.email
  site = await stack.publish(account, '<title>First</title>x')
  await stack.publish(account, '<title>First</title>y', site)
  for (const title of ['Second', 'Third', 'Fourth']) await stack.publish(account, `<title>${title}</title>x`)
  await stack.fetch(`/api/v1/sites/${site.id}/domains`, { token: account.token, json: { domain: 'forms.example.com' } })
  const left = await stack.createAccount('plus', { password: PASSWORD })
  endedEmail = left.email
  for (let index = 0; index < 4; index++) await stack.publish(left, `<title>Left ${index}</title>`)
  await stack.operate('set-plan', '--email', left.email, '--plan', 'free')
  const forgetful = await stack.createAccount('free')
  const asking = await openVisitor(browser, stack, { javaScript: false })
  await asking.goto('/reset')
  await asking.page.getByLabel('E-mail').fill(forgetful.email)
  await asking.page.getByRole('button', { name: 'Send the link' }).click()
  resetLink = await mailedLink(stack, forgetful.email, '/reset')
  await asking.close()
})
afterAll(() => browser.close())

const filled = (text: string): string => text.replaceAll('ID', site.id).replaceAll('SLUG', site.slug)

/** Fills the form with what is wrong and sends it, past what the browser itself would refuse. */
async function send(form: Locator, { typed, ticked = 0 }: Refusal): Promise<void> {
  await form.evaluate(pastTheBrowser)
  for (const [name, value] of Object.entries(typed)) {
    const field = form.locator(`[name="${name}"]`)
    if ((await field.evaluate(localNameOf)) === 'select') await field.selectOption(value)
    else await field.evaluate(setValue, value)
  }
  const boxes = form.locator('input[type=checkbox]')
  for (let index = 0; index < ticked; index++) await boxes.nth(index).check()
  await form.locator('button:not([type=button])').first().click()
}

/** The parts of the DOM that are used inside the page. */
interface Element {
  readonly localName: string
  readonly parentElement: Element | null
  open?: boolean
  noValidate?: boolean
  value?: string
}

function pastTheBrowser(form: unknown): void {
  ;(form as Element).noValidate = true
  for (let up: Element | null = form as Element; up; up = up.parentElement)
    if (up.localName === 'details') up.open = true
}

function localNameOf(field: unknown): string {
  return (field as Element).localName
}

function setValue(field: unknown, value: string): void {
  ;(field as Element).value = value
}

describe.each([{ javaScript: true }, { javaScript: false }])('with JavaScript $javaScript', ({ javaScript }) => {
  let member: Visitor
  let stranger: Visitor
  /** Someone whose plan has ended: they choose what stays live. */
  let ended: Visitor

  beforeAll(async () => {
    ended = await openVisitor(browser, stack, { javaScript })
    await beSignedIn(ended, stack, endedEmail)

    member = await openVisitor(browser, stack, { javaScript, width: javaScript ? 1280 : 390 })
    await beSignedIn(member, stack, email)
    stranger = await openVisitor(browser, stack, { javaScript, width: 390, scheme: 'dark' })
    // An organisation of its own, which can be deleted.
    await member.goto('/account/organisation')
    await member.page.locator('#create').fill(javaScript ? 'With scripts' : 'Without scripts')
    await member.page.getByRole('button', { name: 'Create' }).click()
  })
  afterAll(async () => {
    expect(member.problems).toEqual([])
    await member.close()
    await stranger.close()
    await ended.close()
  })

  // By turns with and without scripts; by `npm run test:deep` both.
  test.each(sampled(Object.entries(REFUSED), javaScript))(
    '%s comes back with what was typed and says what is wrong',
    async (action, refusal) => {
      const { page } = refusal.signedOut ? stranger : action === '/account/plan/staying-live' ? ended : member
      if (action === '/account/organisation/delete')
        await switchTo(member, javaScript ? 'With scripts' : 'Without scripts')
      await page.goto(refusal.page === 'RESET' ? resetLink : filled(refusal.page))
      const form = page.locator(`form[action="${filled(action)}"], form[action^="${filled(action)}?"]`).first()
      if (action.endsWith('/publish') || action === '/drop')
        await form
          .locator('input[type=file]')
          .setInputFiles({ name: 'archive.xyz', mimeType: 'a/b', buffer: Buffer.from('x') })
      // With a script, choosing a file sends it.
      if (!(javaScript && (action.endsWith('/publish') || action === '/drop'))) await send(form, refusal)
      await page.locator('[role=alert]').first().waitFor()

      expect(await form.locator('[role=alert]').allInnerTexts()).toEqual(
        expect.arrayContaining([expect.stringMatching(refusal.says)]),
      )
      for (const name of refusal.at) {
        const field = form.locator(`[name="${name}"]`)
        if (!javaScript || action !== '/sites/new') {
          expect(await field.getAttribute('aria-invalid'), name).toBe('true')
          const [problem] = ((await field.getAttribute('aria-describedby')) ?? '').split(' ')
          expect(await page.locator(`#${problem}`).innerText(), name).not.toBe('')
        }
      }
      if (!(javaScript && (action.endsWith('/publish') || action === '/drop')))
        for (const [name, value] of Object.entries(refusal.typed)) {
          const field = form.locator(`[name="${name}"]`)
          const isSecret = (await field.getAttribute('type')) === 'password'
          expect((await field.inputValue()).replaceAll('\r\n', '\n'), name).toBe(isSecret ? '' : value)
          expect(await field.isVisible(), name).toBe(true)
        }
      if (refusal.ticked !== undefined) expect(await form.locator(':checked').count()).toBe(refusal.ticked)
      // The pages themselves are looked at in dashboard-pages. Axe waits on timers, which stand still without scripts.
      if (javaScript && IS_DEEP) expect(await seriousViolations(page)).toEqual([])
      await keepScreenshot(page, `refused${action.replaceAll('/', '-')}-${javaScript ? 'scripts' : 'plain'}`)
      const answer = await page.goto(filled(action))
      expect(answer!.status(), 'its address opened by itself').toBeLessThan(400)
      if (action === '/account/organisation/delete') await switchTo(member, email)
    },
  )
})

/** Without scripts the text comes back through the form alone. */
const inOneView = byTurns([{ javaScript: false }, { javaScript: true }])

describe.each(inOneView())('a draft, with JavaScript $javaScript,', ({ javaScript }) => {
  async function openSettings(): Promise<Visitor> {
    const visitor = await openVisitor(browser, stack, { javaScript, width: 390 })
    await beSignedIn(visitor, stack, email)
    await visitor.goto(`/sites/${site.id}/settings`)
    await visitor.page.getByLabel('Name', { exact: true }).fill('Typed before the session ended')
    return visitor
  }

  const save = (visitor: Visitor) => visitor.page.getByRole('button', { name: 'Save General' }).click()

  test('outlives a session that has ended: sign in, and it is there', async () => {
    const visitor = await openSettings()
    const { page } = visitor
    const [session] = (await visitor.context.cookies()).filter(({ name }) => name.endsWith('session'))
    await visitor.context.clearCookies({ name: session!.name })
    await save(visitor)
    await page.getByText('Your session has ended').waitFor()
    await keepScreenshot(page, `session-ended-${javaScript ? 'scripts' : 'plain'}`)
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill('a wrong password')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('is not right').waitFor()
    expect(await page.getByLabel('E-mail').inputValue()).toBe(email)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('You are signed in again').waitFor()
    const name = page.getByLabel('Name', { exact: true })
    expect(await name.inputValue()).toBe('Typed before the session ended')
    await save(visitor)
    await page.getByText('Saved.').waitFor()
    expect(await name.inputValue()).toBe('Typed before the session ended')
    await visitor.close()
  })

  test('outlives a sign-in in another tab', async () => {
    const visitor = await openSettings()
    const { page } = visitor
    const other = await visitor.context.newPage()
    await other.goto('/signout')
    await other.getByRole('main').getByRole('button', { name: 'Sign out' }).click()
    await other.waitForURL(/\/$/)
    await signIn({ page: other }, email)
    await save(visitor)
    await page.getByText('made before you signed in here').waitFor()
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Typed before the session ended')
    await save(visitor)
    await page.getByText('Saved.').waitFor()
    await visitor.close()
  })
})

test('pasted text outlives a session that has ended', async () => {
  const visitor = await openVisitor(browser, stack, { javaScript: false, width: 390 })
  await beSignedIn(visitor, stack, email)
  const { page } = visitor
  await visitor.goto('/sites/new')
  const text = page.getByRole('textbox', { name: 'HTML or Markdown' })
  await text.fill('# Long work\n\nof an evening')
  await visitor.context.clearCookies()
  await page.getByRole('button', { name: 'Publish', exact: true }).click()
  await page.getByText('Your session has ended').waitFor()
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('You are signed in again').waitFor()
  expect(await text.inputValue()).toContain('of an evening')
  await page.getByRole('button', { name: 'Publish', exact: true }).click()
  await page.getByRole('heading', { name: /is live/ }).waitFor()
  await visitor.close()
})

test('an edited page outlives a session that has ended, with its message and format, where scripts run', async () => {
  const visitor = await openVisitor(browser, stack, { width: 390 })
  await beSignedIn(visitor, stack, email)
  const { page } = visitor
  const text = page.getByRole('textbox', { name: 'HTML or Markdown' })
  const publish = page.getByRole('button', { name: 'Publish', exact: true })
  await visitor.goto('/sites/new')
  await text.fill('# A first evening')
  await publish.click()
  await page.getByRole('heading', { name: /is live/ }).waitFor()
  await page.getByRole('link', { name: 'Edit the page' }).click()
  await text.fill('# A second evening\n\nof work')
  await page.getByLabel('Message').fill('What the evening brought')
  await page.getByLabel('Publish the text as').selectOption('markdown')
  await visitor.context.clearCookies()
  await publish.click()
  await page.getByText('Your session has ended').waitFor()
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('You are signed in again').waitFor()
  expect((await text.inputValue()).replaceAll('\r\n', '\n')).toBe('# A second evening\n\nof work')
  expect(await page.getByLabel('Message').inputValue()).toBe('What the evening brought')
  expect(await page.getByLabel('Publish the text as').inputValue()).toBe('markdown')
  await publish.click()
  await page.getByRole('heading', { name: /Version 2 is live/ }).waitFor()
  await visitor.close()
})

test('a text that is too long to come along through signing in waits until it can be sent', async () => {
  const visitor = await openVisitor(browser, stack, { javaScript: false, width: 390 })
  await beSignedIn(visitor, stack, email)
  const { page } = visitor
  await visitor.goto('/sites/new')
  // Each é takes six characters in a hidden field.
  const written = `# A long work\n\n${`${'é'.repeat(1000)}\n`.repeat(95)}\nThe end.`
  await page.getByRole('textbox', { name: 'HTML or Markdown' }).fill(written)
  await visitor.context.clearCookies()
  await page.getByRole('button', { name: 'Publish', exact: true }).click()
  await page.getByText('stays in this tab').waitFor()
  await keepScreenshot(page, 'session-ended-long-plain')
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  const [beside] = await Promise.all([
    visitor.context.waitForEvent('page'),
    page.getByRole('button', { name: 'Sign in' }).click(),
  ])
  await beside.waitForURL(/\/sites/)
  await page.getByRole('button', { name: 'Send it, signed in' }).click()
  await page.getByText('made before you signed in here').waitFor()
  const text = page.getByRole('textbox', { name: 'HTML or Markdown' })
  expect((await text.inputValue()).replaceAll('\r\n', '\n')).toBe(written)
  await page.getByRole('button', { name: 'Publish', exact: true }).click()
  await page.getByRole('heading', { name: /is live/ }).waitFor()
  await visitor.close()
})

test('a text beside a file that is too large comes back; where it cannot, that is said', async () => {
  const visitor = await openVisitor(browser, stack, { javaScript: false, width: 390 })
  const { page } = visitor
  const text = page.getByRole('textbox', { name: 'HTML or Markdown' })
  const file = page.locator('input[type=file]')
  const folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-files-'))
  const sendWith = async (megabytes: number): Promise<void> => {
    const large = path.join(folder, `${megabytes}.html`)
    await writeFile(large, Buffer.alloc(megabytes * 1e6, 'x'))
    await visitor.goto('/')
    await text.fill('# Typed by hand')
    await file.setInputFiles(large)
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await page.locator('form [role=alert]').first().waitFor()
  }
  await sendWith(ANONYMOUS_CAP_MB + 1)
  expect(await page.locator('form [role=alert]').innerText()).toContain(`larger than ${ANONYMOUS_CAP_MB} MB`)
  expect(await text.inputValue()).toBe('# Typed by hand')
  await sendWith(ANONYMOUS_CAP_MB + 12)
  expect(await page.getByRole('alert').allInnerTexts()).toEqual(
    expect.arrayContaining([expect.stringContaining('too much to bring back')]),
  )
  await visitor.close()
  await rm(folder, { recursive: true })
})

test('files of someone whose session has ended are not read to their end', async () => {
  const body = Buffer.alloc(64e6, 'x')
  const boundary = 'a-boundary'
  const head = `--${boundary}\r\ncontent-disposition: form-data; name="files"; filename="a.html"\r\n\r\n`
  const answer = await stack.fetch('/sites/new', {
    method: 'POST',
    body: Buffer.concat([Buffer.from(head), body, Buffer.from(`\r\n--${boundary}--\r\n`)]),
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}`, origin: stack.baseUrl },
  })
  expect(answer.status).toBe(401)
  expect(answer.text()).toContain('too much to be read')
})

test('a form that another site sends is refused, and nothing of it is shown', async () => {
  const visitor = await openVisitor(browser, stack)
  await beSignedIn(visitor, stack, email)
  const cookie = (await visitor.context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
  await visitor.close()
  for (const origin of [`https://evil.${stack.sitesDomain}`, undefined]) {
    const answer = await stack.fetch(`/sites/${site.id}/settings/general`, {
      method: 'POST',
      body: 'name=planted+by+a+stranger&slug=planted',
      headers: { 'content-type': 'application/x-www-form-urlencoded', cookie, ...(origin && { origin }) },
    })
    expect(answer.status).toBe(403)
    expect(answer.text()).not.toContain('planted')
  }
})

async function switchTo({ page }: Visitor, name: string): Promise<void> {
  await page.goto('/account/organisation')
  const choice = page.getByLabel('Act for', { exact: true })
  const label = (await choice.locator('option').allInnerTexts()).find((text) => text.includes(name))
  await choice.selectOption({ label: label! })
  await page.getByRole('button', { name: 'Switch' }).click()
  await page.getByText('You act for this organisation now.').waitFor()
}

test('no form was left out, and the address of each answers when it is opened', async () => {
  const visitor = await openVisitor(browser, stack)
  await beSignedIn(visitor, stack, email)
  const { page } = visitor
  const pages = new Set([
    ...Object.values(REFUSED).map((refusal) => (refusal.page === 'RESET' ? resetLink : filled(refusal.page))),
    ...['/sites', '/account/sessions', '/account/apps', '/account/log', '/signout', '/templates'],
    ...['/versions', '/views'].map((tab) => `/sites/${site.id}${tab}`),
  ])
  const actions = new Set<string>()
  for (const path of pages) {
    await visitor.goto(path)
    const found = (await page.evaluate(
      '[...document.querySelectorAll("form[method=post]")].map((form) => form.getAttribute("action"))',
    )) as string[]
    for (const action of found) actions.add(action.replace(/\?.*/, ''))
  }
  const known = new Set([...Object.keys(REFUSED), ...BUTTONS])
  const shapes = [...actions].map((action) => action.replaceAll(/(?:st|v)_\w+/g, 'ID'))
  expect(shapes.filter((shape) => !known.has(shape))).toEqual([])
  for (const action of actions) {
    const answer = await page.goto(action)
    expect(answer!.status(), action).toBeLessThan(400)
  }
  await visitor.close()
})
