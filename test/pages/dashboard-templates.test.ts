import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import { beSignedIn, keepScreenshot, openVisitor, PASSWORD } from '../support/dashboard-visitor.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser
let account: Account

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
  account = await stack.createAccount('plus', { password: PASSWORD })
})
afterAll(() => browser.close())

const TEMPLATES = [
  { name: 'CV', field: 'Your name', width: 1280, scheme: 'light' },
  { name: 'Portfolio', field: 'Your name', width: 360, scheme: 'dark' },
  { name: 'Link in bio', field: 'Your name', width: 360, scheme: 'light' },
  { name: 'Event invite', field: 'What', width: 1280, scheme: 'dark' },
] as const

test.each(TEMPLATES)(
  '$name: filled with a live preview, published, and edited again',
  async ({ name, field, width, scheme }) => {
    const visitor = await openVisitor(browser, stack, { width, scheme })
    const { page } = visitor
    await beSignedIn(visitor, stack, account.email)
    await visitor.goto('/templates')
    await page.getByRole('link', { name: new RegExp(`^${name}`) }).click()
    await page.getByLabel(field).fill('Zoë <b>Quill</b>')
    await page.frameLocator('[data-preview] iframe').locator('body').getByText('Zoë <b>Quill</b>').first().waitFor()
    await keepScreenshot(page, `template-${name.toLowerCase().replaceAll(' ', '-')}-${width}-${scheme}`)
    await page.getByRole('button', { name: 'Publish' }).click()
    await page.waitForURL(/done=published/)
    const url = await page.getByRole('textbox', { name: 'Address' }).inputValue()
    const slug = new URL(url).hostname.split('.')[0]!
    expect((await stack.visit(slug)).text()).toContain('Zoë &lt;b&gt;Quill&lt;/b&gt;')

    await page.getByRole('link', { name: 'Edit its fields' }).click()
    expect(await page.getByLabel(field).inputValue()).toBe('Zoë <b>Quill</b>')
    await page.getByLabel(field).fill('Second edition')
    await page.getByRole('button', { name: 'Publish the changes' }).click()
    await page.getByRole('heading', { name: 'Version 2 is live' }).waitFor()
    expect((await stack.visit(slug)).text()).toContain('Second edition')

    await page.goto(url)
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    await keepScreenshot(page, `published-${name.toLowerCase().replaceAll(' ', '-')}-${width}-${scheme}`)
    expect(visitor.problems).toEqual([])
    await visitor.close()
  },
)

test('a template works without an account and without JavaScript', async () => {
  const visitor = await openVisitor(browser, stack, { javaScript: false, width: 360 })
  const { page } = visitor
  await visitor.goto('/templates/links')
  await page.getByLabel('Your name').fill('Plain Jane')
  await page.getByLabel('Links', { exact: true }).fill('Good | https://example.com/\nBad | javascript:alert(1)')
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.frameLocator('iframe[name=preview]').getByRole('heading', { name: 'Plain Jane' }).waitFor()
  await page.getByRole('button', { name: 'Publish for 7 days' }).click()
  await page.getByRole('heading', { name: 'Your page is live' }).waitFor()
  const url = await page.locator('.live-link').getAttribute('href')
  const text = (await stack.visit(new URL(url!).hostname.split('.')[0]!)).text()
  expect(text).toContain('href="https://example.com/"')
  expect(text).not.toContain('javascript:')
  await visitor.close()
})

test('a preview that is refused says so in its frame, and the form stays as it is', async () => {
  const visitor = await openVisitor(browser, stack)
  const { page } = visitor
  await visitor.goto('/templates/links')
  // Nothing is left of the visit that the form was made for.
  await visitor.context.clearCookies()
  await page.getByLabel('Your name').fill('Plain Jane')
  const frame = page.frameLocator('[data-preview] iframe')
  await frame.getByRole('heading', { name: 'No preview' }).waitFor()
  await frame.getByText('sent no cookie with this form').waitFor()
  expect(await page.getByLabel('Your name').inputValue()).toBe('Plain Jane')
  expect(visitor.problems).toEqual([])
  await visitor.close()
})
