import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nextAddress } from '../support/addresses.ts'
import { launchBrowser } from '../support/browser.ts'
import { beSignedIn, newEmail, openVisitor, PASSWORD, signUp, type Visitor } from '../support/dashboard-visitor.ts'
import { byTurns } from '../support/depth.ts'
import { mailedLink } from '../support/mailbox.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { sharedStack, type Account, type Published, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
})
afterAll(() => browser.close())

test('after many wrong passwords the page calculates and lets the owner in; without JavaScript it says what to do', async () => {
  const { email } = await stack.createAccount('free', { password: PASSWORD })
  const from = nextAddress()
  const stranger = new FormBrowser(stack, from)
  for (let guess = 0; guess < 10; guess++)
    await stranger.send('/signin', { email, password: `wrong password ${guess}` })
  const refused = await stranger.send('/signin', { email, password: PASSWORD })
  expect(refused.status).toBe(429)
  expect(refused.text()).toContain('choose a new password by mail')

  const visitor = await openVisitor(browser, stack)
  const { page } = visitor
  await visitor.context.setExtraHTTPHeaders({ 'x-forwarded-for': from })
  await visitor.goto('/signin')
  for (let round = 0; round < 2; round++) {
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    if (round === 0) await page.locator('[data-challenge]').waitFor()
  }
  // How many tries it takes is chance.
  await page.waitForURL(/\/sites/)
  expect(visitor.problems).toEqual([])
  await visitor.close()
})

const inOneView = byTurns([{ javaScript: true }, { javaScript: false }])

describe.each(inOneView())('with JavaScript $javaScript', ({ javaScript }) => {
  test('sign up, verify, sign out, sign in', async () => {
    const visitor = await openVisitor(browser, stack, { javaScript, width: 360 })
    const { page } = visitor
    await visitor.goto('/')
    await page.getByRole('link', { name: 'Sign up' }).click()
    const email = await signUp(visitor)
    await page.getByText('Open the link in the mail we just sent').waitFor()
    await page.goto(await mailedLink(stack, email, '/verify'))
    await page.getByRole('button', { name: 'Confirm my address' }).click()
    await page.getByRole('heading', { name: 'Your address is verified' }).waitFor()
    await visitor.goto('/account')
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await visitor.goto('/sites')
    expect(new URL(page.url()).pathname).toBe('/signin')
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill('wrong password')
    await page.getByRole('button', { name: 'Sign in' }).click()
    expect(await page.getByRole('alert').innerText()).not.toBe('')
    expect(await page.getByLabel('E-mail').inputValue()).toBe(email)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL(/\/sites/)
    await visitor.close()
  })

  test('a token is shown once, works, and is revoked', async () => {
    const account = await stack.createAccount('free', { password: PASSWORD })
    const visitor = await openVisitor(browser, stack, { javaScript })
    const { page } = visitor
    await beSignedIn(visitor, stack, account.email)
    await visitor.goto('/sites')
    await page.getByRole('button', { name: /You act for/ }).click()
    await page.getByRole('link', { name: 'Account', exact: true }).click()
    await page.getByRole('link', { name: 'API tokens' }).click()
    await page.getByLabel('Name').fill('CI <b>token</b>')
    await page.getByRole('button', { name: 'Create token' }).click()
    const token = await page.locator('#token').innerText()
    expect(token).toMatch(/^dw_/)
    expect((await stack.fetch('/api/v1/sites', { token })).status).toBe(200)
    await visitor.goto('/account/tokens')
    expect(await page.content()).not.toContain(token)
    await page.getByRole('link', { name: 'Revoke… CI <b>token</b>' }).click()
    await page.getByText('are refused from the next request on').waitFor()
    expect((await stack.fetch('/api/v1/sites', { token })).status).toBe(200)
    await page.getByRole('button', { name: 'Revoke it' }).click()
    await page.getByText('Revoked.').waitFor()
    expect((await stack.fetch('/api/v1/sites', { token })).status).toBe(401)
    await visitor.close()
  })
})

test('a forgotten password is replaced by the link in the mail', async () => {
  const account = await stack.createAccount('free', { password: PASSWORD })
  const visitor = await openVisitor(browser, stack)
  const { page } = visitor
  await visitor.goto('/signin')
  await page.getByRole('link', { name: 'Forgot your password?' }).click()
  await page.getByLabel('E-mail').fill(account.email)
  await page.getByRole('button', { name: 'Send the link' }).click()
  await page.getByRole('heading', { name: 'Look into your mailbox' }).waitFor()
  const link = await mailedLink(stack, account.email, '/reset')
  await page.goto(link)
  await page.getByLabel('New password').fill('a whole new password')
  await page.getByRole('button', { name: 'Set password' }).click()
  await page.getByText('Your password is changed.').waitFor()
  await page.goto(link)
  expect(await page.getByRole('heading', { level: 1 }).innerText()).toContain('does not work any more')
  await visitor.close()
})

describe('everything about an account', () => {
  let account: Account
  let visitor: Visitor

  beforeAll(async () => {
    account = await stack.createAccount('free', { password: PASSWORD })
    visitor = await openVisitor(browser, stack)
    await beSignedIn(visitor, stack, account.email)
  })

  test('sessions are listed and ended', async () => {
    const other = await openVisitor(browser, stack)
    await beSignedIn(other, stack, account.email)
    await visitor.goto('/account/sessions')
    const { page } = visitor
    expect(await page.getByText('This browser').count()).toBe(1)
    await page.getByRole('button', { name: 'Sign it out' }).first().click()
    await page.getByText('Revoked.').waitFor()
    await other.goto('/sites')
    expect(new URL(other.page.url()).pathname).toBe('/signin')
    await other.close()
  })

  test('plan, usage and the honest word about payments', async () => {
    await visitor.goto('/account/plan')
    const { page } = visitor
    expect(await page.getByRole('progressbar', { name: 'Active drops' }).isVisible()).toBe(true)
    expect(await page.getByText('Payments are not configured').isVisible()).toBe(true)
  })

  test('an organisation is created, someone invited, and the invitation accepted', async () => {
    const { page } = visitor
    await visitor.goto('/account/organisation')
    await page.locator('#create').fill('Night <i>Shift</i>')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByText('You still act for').waitFor()
    await page.getByRole('button', { name: 'Switch to Night <i>Shift</i>' }).click()
    await page.getByText('You act for this organisation now.').waitFor()
    const guest = newEmail()
    await page.getByLabel('E-mail').fill(guest)
    await page.getByRole('button', { name: 'Send the invitation' }).click()
    await page.getByText('The invitation is on its way.').waitFor()

    const invited = await openVisitor(browser, stack, { width: 360, scheme: 'dark' })
    await invited.page.goto(await mailedLink(stack, guest, '/invitation'))
    await invited.page.getByRole('main').getByRole('link', { name: 'Sign up' }).click()
    expect(await invited.page.getByLabel('E-mail').inputValue()).toBe(guest)
    await invited.page.getByLabel('Password').fill(PASSWORD)
    await invited.page.getByRole('button', { name: 'Sign up' }).click()
    // First the address is verified; the link in that mail leads back to the invitation.
    await invited.page.goto(await mailedLink(stack, guest, '/verify'))
    await invited.page.getByRole('button', { name: 'Confirm my address' }).click()
    await invited.page.getByRole('main').getByRole('link', { name: 'Go on with what you were doing' }).click()
    await invited.page.getByRole('button', { name: 'Accept the invitation' }).click()
    await invited.page.getByText('You have joined the organisation.').waitFor()
    await invited.close()

    await visitor.goto('/account/organisation')
    expect(await page.getByRole('row', { name: new RegExp(guest) }).innerText()).toContain('member')
    await page.getByRole('link', { name: `Remove… ${guest}` }).click()
    await page.getByText('They lose access to its drops at once').waitFor()
    await page.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('Removed.').waitFor()
  })

  test('the audit log tells what happened', async () => {
    await visitor.goto('/account/log')
    expect(await visitor.page.getByText(/^Removed .*@/).isVisible()).toBe(true)
  })

  test('the password changes and the session goes on', async () => {
    const { page } = visitor
    await visitor.goto('/account')
    await page.getByLabel('Current password').fill('wrong one here')
    await page.getByLabel('New password').fill('another good password')
    await page.getByRole('button', { name: 'Change password' }).click()
    expect(await page.getByRole('alert').innerText()).not.toBe('')
    await page.getByLabel('Current password').fill(PASSWORD)
    await page.getByLabel('New password').fill('another good password')
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByText('Your password is changed.').waitFor()
  })

  test('everything can be exported, then the account deleted', async () => {
    const site = await stack.publish(account, '<title>Mine</title>mine')
    const { page } = visitor
    await visitor.goto('/account/data')
    // The organisation made above is the current one; the drop belongs to the personal one.
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: /zip of everything/ }).click(),
    ])
    expect(await download.failure()).toBeNull()
    await page.getByLabel(/^Type/).fill(account.email)
    await page.locator('input[name=password]').fill('another good password')
    await page.getByRole('button', { name: 'Delete my account' }).click()
    await page.getByRole('heading', { name: 'Your account is deleted' }).waitFor()
    expect((await stack.visit(site.slug)).status).toBe(410)
    await visitor.close()
  })
})

describe.each(inOneView())('what stays live, with JavaScript $javaScript', (options) => {
  test('is chosen before a plan ends, and swapped afterwards', async () => {
    const account = await stack.createAccount('plus', { password: PASSWORD })
    const drops: Published[] = []
    for (const name of ['first', 'second', 'third', 'fourth', 'fifth'])
      drops.push(await stack.publish(account, `<title>The ${name}</title>`))
    const statuses = () => Promise.all(drops.map(async ({ slug }) => (await stack.visit(slug)).status))
    const visitor = await openVisitor(browser, stack, options)
    const { page } = visitor
    await beSignedIn(visitor, stack, account.email)

    await visitor.goto('/account/plan')
    // No end is in sight, so there is nothing to choose; whoever wants to can, by the API.
    const keep = page.getByRole('button', { name: 'Keep these live' })
    expect(await keep.count()).toBe(0)
    const [one, two] = drops
    const json = { site_ids: [one!.id, two!.id] }
    const chosen = await stack.fetch('/api/v1/sites/staying-live', { method: 'PUT', token: account.token, json })
    expect(chosen.status).toBe(200)
    expect(await statuses()).toEqual([200, 200, 200, 200, 200])

    await stack.operate('set-plan', '--email', account.email, '--plan', 'free')
    // The two that were chosen, and what was published last.
    expect(await statuses()).toEqual([200, 200, 503, 503, 200])
    await visitor.goto('/account/plan')
    await page.getByRole('heading', { name: /paused$/ }).waitFor()
    expect(await page.getByRole('checkbox', { checked: true }).count()).toBe(2)
    for (const name of ['third', 'fourth']) await page.getByLabel(`The ${name}`).check()
    await keep.click()
    await page.getByRole('alert').getByText('at most 3').waitFor()
    await page.getByLabel('The fourth').uncheck()
    await page.getByLabel('The first').uncheck()
    await page.getByLabel('The third').check()
    await keep.click()
    await page.getByText('These stay live').waitFor()
    const [first, second, third, fourth, fifth] = await statuses()
    expect([second, third, fourth]).toEqual([200, 200, 503])
    expect([first, fifth].filter((status) => status === 200)).toHaveLength(1)
    expect(visitor.problems).toEqual([])
    await visitor.close()
  })
})
