/** Who am I, for whom do I act, and what happens when I press this: organisations, invitations, and what asks first. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seriousViolations } from '../support/accessibility.ts'
import { launchBrowser } from '../support/browser.ts'
import {
  beSignedIn,
  keepScreenshot,
  newEmail,
  openVisitor,
  PASSWORD,
  type Visitor,
} from '../support/dashboard-visitor.ts'
import { byTurns } from '../support/depth.ts'
import { mailedLink } from '../support/mailbox.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
})
afterAll(() => browser.close())

const menuOf = ({ page }: Visitor) => page.getByRole('button', { name: /You act for/ })

async function createOrganisation({ page }: Visitor, name: string): Promise<void> {
  await page.goto('/account/organisation')
  await page.locator('#create').fill(name)
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByText(`${name} is there`).waitFor()
}

async function inviteAndJoin(owner: Visitor, guest: Account): Promise<Visitor> {
  await owner.goto('/account/organisation')
  await owner.page.getByLabel('E-mail').fill(guest.email)
  await owner.page.getByRole('button', { name: 'Send the invitation' }).click()
  await owner.page.getByText('on its way').waitFor()
  const visitor = await openVisitor(browser, stack)
  await beSignedIn(visitor, stack, guest.email)
  await visitor.page.goto(await mailedLink(stack, guest.email, '/invitation'))
  await visitor.page.getByRole('button', { name: 'Accept the invitation' }).click()
  await visitor.page.getByText('You have joined').waitFor()
  return visitor
}

const inOneView = byTurns([
  { javaScript: true, width: 1280, scheme: 'light' },
  { javaScript: false, width: 390, scheme: 'dark' },
] as const)

test.each(inOneView())(
  'the menu says who I am, switches, and signs out; making an organisation does not switch (JavaScript: $javaScript)',
  async (options) => {
    const account = await stack.createAccount('free', { password: PASSWORD })
    const visitor = await openVisitor(browser, stack, options)
    const { page } = visitor
    await beSignedIn(visitor, stack, account.email)
    await createOrganisation(visitor, 'Night Shift')
    expect(await menuOf(visitor).innerText()).not.toContain('Night Shift')

    await menuOf(visitor).click()
    await page.getByText('Signed in as').waitFor()
    expect(await page.locator('#own-menu').innerText()).toContain(account.email)
    if (options.javaScript) expect(await seriousViolations(page)).toEqual([])
    await keepScreenshot(page, `menu-${options.width}`)
    await page.getByRole('button', { name: 'Switch to Night Shift' }).last().click()
    await page.getByText('You act for this organisation now.').waitFor()
    // On every page of it.
    for (const path of ['/sites', '/sites/new', '/account', '/account/plan', '/templates', '/docs']) {
      await visitor.goto(path)
      expect(await menuOf(visitor).innerText(), path).toContain('Night Shift')
    }
    await menuOf(visitor).click()
    await page.locator('#own-menu').getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL(/\/$/)
    await visitor.goto('/account')
    expect(new URL(page.url()).pathname).toBe('/signin')
    expect(visitor.problems).toEqual([])
    await visitor.close()
  },
)

test.each(inOneView())(
  'a link to a drop of another organisation of mine asks, and one press leads there; to a stranger it is nothing (JavaScript: $javaScript)',
  async (options) => {
    const account = await stack.createAccount('free', { password: PASSWORD })
    const drop = await stack.publish(account, '<title>Personal drop</title>x')
    const visitor = await openVisitor(browser, stack, options)
    const { page } = visitor
    await beSignedIn(visitor, stack, account.email)
    await createOrganisation(visitor, 'Elsewhere')
    await page.getByRole('button', { name: 'Switch to Elsewhere' }).first().click()
    await page.getByText('You act for this organisation now.').waitFor()

    await visitor.goto(`/sites/${drop.id}/settings`)
    // A link may stand in anyone's page: opening it changes nothing.
    await page.getByRole('heading', { name: /This drop belongs to/ }).waitFor()
    expect(await menuOf(visitor).innerText()).toContain('Elsewhere')
    await keepScreenshot(page, `switch-first-${options.width}-${options.scheme}`)
    await page
      .locator('#content')
      .getByRole('button', { name: /Switch to/ })
      .click()
    await page.getByRole('heading', { name: 'Personal drop' }).waitFor()
    expect(new URL(page.url()).pathname).toBe(`/sites/${drop.id}/settings`)
    await page.getByText('You act for this organisation now.').waitFor()
    expect(await menuOf(visitor).innerText()).not.toContain('Elsewhere')

    const stranger = await openVisitor(browser, stack, options)
    await beSignedIn(stranger, stack, (await stack.createAccount('free', { password: PASSWORD })).email)
    const answer = await stranger.page.goto(`/sites/${drop.id}/settings`)
    expect(answer!.status()).toBe(404)
    await stranger.close()
    await visitor.close()
  },
)

test.each(inOneView())(
  'a form acts for the organisation that its page shows, whichever was chosen in another tab (JavaScript: $javaScript)',
  async (options) => {
    const account = await stack.createAccount('free', { password: PASSWORD })
    const visitor = await openVisitor(browser, stack, options)
    const { page } = visitor
    await beSignedIn(visitor, stack, account.email)
    await createOrganisation(visitor, 'Other tab')
    await visitor.goto('/account/organisation')
    await page.locator('#rename').fill('My own name')
    const other = await visitor.context.newPage()
    await other.goto('/account/organisation')
    await other.getByLabel('Act for').selectOption({ label: 'Other tab (owner)' })
    await other.getByRole('button', { name: 'Switch', exact: true }).click()
    await other.getByText('You act for this organisation now.').waitFor()
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.getByText('Done.').waitFor()
    const names = await page.getByLabel('Act for').locator('option').allInnerTexts()
    expect(names.toSorted()).toEqual(['My own name (owner)', 'Other tab (owner)'])
    await visitor.close()
  },
)

test.each(inOneView())(
  'a drop is published for the organisation that the page showed, whichever was chosen in another tab (JavaScript: $javaScript)',
  async (options) => {
    const account = await stack.createAccount('free', { password: PASSWORD })
    const visitor = await openVisitor(browser, stack, options)
    const { page } = visitor
    await beSignedIn(visitor, stack, account.email)
    await createOrganisation(visitor, 'Elsewhere')
    await visitor.goto('/sites/new')
    await page.getByRole('textbox', { name: 'HTML or Markdown' }).fill('# Two tabs')
    const other = await visitor.context.newPage()
    await other.goto('/account/organisation')
    await other.getByLabel('Act for').selectOption({ label: 'Elsewhere (owner)' })
    await other.getByRole('button', { name: 'Switch', exact: true }).click()
    await other.getByText('You act for this organisation now.').waitFor()
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await page.getByRole('heading', { name: /is live/ }).waitFor()
    expect(await menuOf(visitor).innerText()).not.toContain('Elsewhere')
    await visitor.close()
  },
)

test.each(inOneView())(
  'an invitation knows its address, and says so to the wrong account (JavaScript: $javaScript)',
  async (options) => {
    const owner = await openVisitor(browser, stack, options)
    await beSignedIn(owner, stack, (await stack.createAccount('free', { password: PASSWORD })).email)
    const guest = await stack.createAccount('free', { password: PASSWORD })
    const wrong = await stack.createAccount('free', { password: PASSWORD })
    await owner.goto('/account/organisation')
    await owner.page.getByLabel('E-mail').fill(guest.email)
    await owner.page.getByRole('button', { name: 'Send the invitation' }).click()
    const link = await mailedLink(stack, guest.email, '/invitation')
    await owner.close()

    const visitor = await openVisitor(browser, stack, options)
    const { page } = visitor
    await beSignedIn(visitor, stack, wrong.email)
    await page.goto(link)
    await page.getByText('you are signed in as').waitFor()
    expect(await page.getByRole('main').innerText()).toContain(wrong.email)
    if (options.javaScript) expect(await seriousViolations(page)).toEqual([])
    await keepScreenshot(page, `invitation-wrong-account-${options.width}`)
    await page.getByRole('button', { name: `Go on as ${guest.email}` }).click()
    await page.getByRole('main').getByRole('link', { name: 'Sign in' }).click()
    expect(await page.getByLabel('E-mail').inputValue()).toBe(guest.email)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Accept the invitation' }).click()
    await page.getByText('You have joined').waitFor()
    await visitor.close()
  },
)

test.each(inOneView())(
  'handing over, removing and leaving ask first and say what happens (JavaScript: $javaScript)',
  async (options) => {
    const owner = await openVisitor(browser, stack, options)
    const { page } = owner
    const account = await stack.createAccount('free', { password: PASSWORD })
    await beSignedIn(owner, stack, account.email)
    await createOrganisation(owner, 'Handed over')
    await page.getByRole('button', { name: 'Switch to Handed over' }).first().click()
    const heir = await stack.createAccount('free', { password: PASSWORD })
    const member = await stack.createAccount('free', { password: PASSWORD })
    const joined = await inviteAndJoin(owner, heir)
    await (await inviteAndJoin(owner, member)).close()

    await owner.goto('/account/organisation')
    await page.getByRole('link', { name: `Remove… ${member.email}` }).click()
    await page.getByRole('heading', { name: `Remove ${member.email} from Handed over?` }).waitFor()
    await page.getByRole('link', { name: 'Keep' }).click()
    expect(await page.getByRole('row', { name: new RegExp(member.email) }).count()).toBe(1)
    await page.getByRole('link', { name: `Remove… ${member.email}` }).click()
    await page.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('Removed.').waitFor()
    expect(await page.getByRole('row', { name: new RegExp(member.email) }).count()).toBe(0)

    await page.getByRole('link', { name: `Make owner… ${heir.email}` }).click()
    await page.getByRole('heading', { name: `Make ${heir.email} the owner` }).waitFor()
    await keepScreenshot(page, `transfer-asks-${options.width}`)
    if (options.javaScript) expect(await seriousViolations(page)).toEqual([])
    await page.getByRole('button', { name: 'Transfer ownership' }).click()
    await page.getByText('has a new owner').waitFor()
    await page.getByRole('link', { name: `Leave… ${account.email}` }).click()
    await page.getByRole('heading', { name: 'Leave Handed over?' }).waitFor()
    await page.getByRole('button', { name: 'Leave' }).click()
    await page.getByText('Removed.').waitFor()
    await joined.goto('/account/organisation')
    expect(await joined.page.getByRole('row', { name: new RegExp(heir.email) }).innerText()).toContain('owner')
    await joined.close()
    await owner.close()
  },
)

test('an invitation by mail to someone new fills in the sign-up form', async () => {
  const owner = await openVisitor(browser, stack)
  await beSignedIn(owner, stack, (await stack.createAccount('free', { password: PASSWORD })).email)
  const guest = newEmail()
  await owner.goto('/account/organisation')
  await owner.page.getByLabel('E-mail').fill(guest)
  await owner.page.getByRole('button', { name: 'Send the invitation' }).click()
  await owner.page.goto(await mailedLink(stack, guest, '/invitation'))
  await owner.page.getByRole('button', { name: `Go on as ${guest}` }).click()
  await owner.page.getByRole('main').getByRole('link', { name: 'Sign up' }).click()
  expect(await owner.page.getByLabel('E-mail').inputValue()).toBe(guest)
  await owner.close()
})
