import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import { beSignedIn, openVisitor, PASSWORD } from '../support/dashboard-visitor.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
})
afterAll(() => browser.close())

test('a report reaches the queue; staff take the drop down and bring it back', async () => {
  const owner = await stack.createAccount('free')
  const site = await stack.publish(owner, '<title>Questionable</title>text')
  const reporter = await openVisitor(browser, stack, { javaScript: false, width: 360, scheme: 'dark' })
  await reporter.goto(`/report?url=${encodeURIComponent(site.url)}`)
  await reporter.page.getByLabel('Details').fill('<b>It imitates</b> my bank')
  await reporter.page.getByRole('button', { name: 'Send the report' }).click()
  await reporter.page.getByText('We will look at it.').waitFor()
  await reporter.close()

  const { email } = await stack.createAccount('free', { password: PASSWORD, staff: true })
  const staff = await openVisitor(browser, stack)
  const { page } = staff
  await beSignedIn(staff, stack, email)
  await staff.goto('/sites')
  await page.getByRole('link', { name: 'Staff' }).click()
  const entry = page.getByRole('listitem').filter({ hasText: site.slug })
  expect(await entry.innerText()).toContain('<b>It imitates</b> my bank')
  await entry.getByText('Take it down').click()
  await entry.getByLabel('Reason').fill('phishing')
  await entry.getByRole('button', { name: /^Take down/ }).click()
  await page.getByText('Done.').waitFor()
  expect((await stack.visit(site.slug)).status).toBe(410)

  await page.getByLabel('Address, domain or e-mail').fill(owner.email)
  await page.getByRole('button', { name: 'Search' }).click()
  await page.getByRole('button', { name: 'Restore' }).click()
  await page.getByText('Done.').waitFor()
  expect((await stack.visit(site.slug)).status).toBe(200)
  await staff.close()
})

test('for everyone else there is no staff page', async () => {
  const account = await stack.createAccount('free', { password: PASSWORD })
  const visitor = await openVisitor(browser, stack)
  await beSignedIn(visitor, stack, account.email)
  const response = await visitor.page.goto('/staff')
  expect(response!.status()).toBe(404)
  await visitor.close()
})

test('a drop appears in the gallery when its owner wants it, and leaves it with a password', async () => {
  const account = await stack.createAccount('plus', { password: PASSWORD })
  const title = `Shown ${Date.now()}`
  const site = await stack.publish(account, `<title>${title}</title>x`)
  const visitor = await openVisitor(browser, stack)
  const { page } = visitor
  await beSignedIn(visitor, stack, account.email)
  await visitor.goto(`/sites/${site.id}/settings`)
  await page.getByLabel('Show it in the public gallery').check()
  await page.getByRole('button', { name: 'Save Behaviour' }).click()
  await page.getByText('Saved.').waitFor()
  // The list is kept for two seconds.
  const shown = async (): Promise<number> => {
    await visitor.goto('/gallery')
    return page.getByRole('link', { name: title, exact: true }).count()
  }
  await expect.poll(shown).toBe(1)
  await visitor.goto(`/sites/${site.id}/settings`)
  await page.locator('input[name=password]').fill('secret enough')
  await page.getByRole('button', { name: 'Set password' }).click()
  await page.getByText('Saved.').waitFor()
  await expect.poll(shown).toBe(0)
  await visitor.close()
})
