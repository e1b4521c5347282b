import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import { fillSignUp, keepScreenshot, newEmail, openVisitor, type Visitor } from '../support/dashboard-visitor.ts'
import { byTurns } from '../support/depth.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { mailedLink } from '../support/mailbox.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
})
afterAll(() => browser.close())

const markdown = { name: 'note.md', mimeType: 'text/markdown', buffer: Buffer.from('# Dropped here\n\nSome *words*.') }

async function liveText(visitor: Visitor): Promise<string> {
  const url = await visitor.page.locator('.live-link').getAttribute('href')
  const slug = new URL(url!).hostname.split('.')[0]!
  return (await stack.visit(slug)).text()
}

const inOneView = byTurns([
  { width: 360, scheme: 'dark' },
  { width: 1280, scheme: 'light' },
] as const)

describe.each(inOneView())('the front page at $width px, $scheme', ({ width, scheme }) => {
  test('a chosen file is live after one interaction, with link, copy, QR code and notice', async () => {
    const visitor = await openVisitor(browser, stack, { width, scheme })
    const { page } = visitor
    await visitor.goto('/')
    await page.locator('input[type=file]').setInputFiles(markdown)
    await page.getByRole('heading', { name: 'Your page is live' }).waitFor()
    await expect(liveText(visitor)).resolves.toContain('Dropped here')
    expect(await page.getByRole('img', { name: 'QR code of the address' }).isVisible()).toBe(true)
    expect(await page.getByText('It disappears in 7 days.').isVisible()).toBe(true)
    expect(await page.getByRole('link', { name: 'Keep it: sign up' }).isVisible()).toBe(true)
    await visitor.context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: stack.baseUrl })
    await page.getByRole('button', { name: 'Copy' }).first().click()
    const address = await page.locator('.live-link').getAttribute('href')
    await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(address)
    expect(visitor.problems).toEqual([])
    await keepScreenshot(page, `landing-result-${width}-${scheme}`)
    await visitor.close()
  })

  test('pasted HTML is live in two interactions', async () => {
    const visitor = await openVisitor(browser, stack, { width, scheme })
    await visitor.goto('/')
    await visitor.page
      .getByRole('textbox', { name: 'HTML or Markdown' })
      .fill('<!doctype html><title>Pasted</title><p>as HTML')
    await visitor.page.getByRole('button', { name: 'Publish' }).click()
    await visitor.page.getByRole('heading', { name: 'Your page is live' }).waitFor()
    await expect(liveText(visitor)).resolves.toContain('<p>as HTML')
    await visitor.close()
  })

  test('without JavaScript a form does the same', async () => {
    const visitor = await openVisitor(browser, stack, { width, scheme, javaScript: false })
    const { page } = visitor
    await visitor.goto('/')
    await keepScreenshot(page, `landing-no-script-${width}-${scheme}`)
    await page.locator('input[type=file]').setInputFiles(markdown)
    // People take longer than this; a form that comes back at once is asked for a proof that needs a script.
    await page.waitForTimeout(800)
    await page.getByRole('button', { name: 'Publish' }).click()
    await page.getByRole('heading', { name: 'Your page is live' }).waitFor()
    await expect(liveText(visitor)).resolves.toContain('Dropped here')
    await visitor.close()
  })
})

test('a file that cannot be published is refused in words, and the next try works', async () => {
  const visitor = await openVisitor(browser, stack)
  const { page } = visitor
  await visitor.goto('/')
  await page
    .locator('input[type=file]')
    .setInputFiles({ name: 'photo.png', mimeType: 'image/png', buffer: Buffer.from('x') })
  expect(await page.getByRole('alert').innerText()).toContain('photo.png')
  await page.locator('input[type=file]').setInputFiles(markdown)
  await page.getByRole('heading', { name: 'Your page is live' }).waitFor()
  await visitor.close()
})

test('a filled honeypot publishes nothing', async () => {
  const visitor = await openVisitor(browser, stack, { javaScript: false })
  const { page } = visitor
  await visitor.goto('/')
  await page.locator('input[name=website]').fill('https://spam.example', { force: true })
  await page.getByRole('textbox', { name: 'HTML or Markdown' }).fill('# Spam')
  await page.getByRole('button', { name: 'Publish' }).click()
  expect(await page.getByRole('alert').innerText()).toContain('automated')
  await visitor.close()
})

test('a newcomer gets from the front page to a claimed drop with an address of choice in eight interactions', async () => {
  const visitor = await openVisitor(browser, stack)
  const { page } = visitor
  let interactions = 0
  const did = async (action: Promise<unknown>): Promise<void> => {
    await action
    interactions++
  }
  await visitor.goto('/')
  await did(page.locator('input[type=file]').setInputFiles(markdown))
  await page.getByRole('heading', { name: 'Your page is live' }).waitFor()
  expect(interactions).toBeLessThanOrEqual(3)

  const email = newEmail()
  interactions = 0
  await did(page.getByRole('link', { name: 'Keep it: sign up' }).click())
  await page.getByText('1 drop of this browser will be yours').waitFor()
  // E-mail, password, button.
  await fillSignUp(page, email)
  interactions += 3
  await did(page.getByRole('link', { name: 'Dropped here' }).click())
  await did(page.getByRole('link', { name: 'Settings' }).click())
  const slug = `newcomer-${Date.now().toString(36)}`
  // An unverified account may not change settings: the link in the mail is the one step outside.
  await new FormBrowser(stack, '198.51.100.78').confirm(await mailedLink(stack, email, '/verify'))
  await did(page.getByLabel('Address').fill(slug))
  await did(page.getByRole('button', { name: 'Save General' }).click())
  await page.getByText('Saved.').waitFor()
  expect(interactions).toBeLessThanOrEqual(8)
  expect((await stack.visit(slug)).text()).toContain('Dropped here')
  await visitor.close()
})

test('signing up hides a page, says so before and after, and the tab that waits shows it by itself', async () => {
  const visitor = await openVisitor(browser, stack, { width: 1280, scheme: 'light' })
  const { page } = visitor
  await visitor.goto('/')
  await page.locator('input[type=file]').setInputFiles(markdown)
  const address = (await page.locator('.live-link').getAttribute('href'))!
  await page.getByText('visitors see a notice instead, until you have opened the link').waitFor()
  await page.getByRole('link', { name: 'Keep it: sign up' }).click()
  await page.getByText('hidden from visitors when you sign up').waitFor()
  const email = newEmail()
  await fillSignUp(page, email)
  await page.getByText('Yours now, at the same address. Until you open the link').waitFor()

  const waiting = await visitor.context.newPage()
  expect((await waiting.goto(address))!.status()).toBe(503)
  await keepScreenshot(waiting, 'unverified')
  await waiting.getByRole('link', { name: 'send it again' }).click()
  await waiting.getByRole('button', { name: 'Send the mail again' }).waitFor()
  await waiting.goto(address)

  await new FormBrowser(stack, '198.51.100.79').confirm(await mailedLink(stack, email, '/verify'))
  expect((await stack.visit(new URL(address).hostname.split('.')[0]!)).status).toBe(200)
  await waiting.getByRole('heading', { name: 'Dropped here' }).waitFor()
  await visitor.close()
})

test('a claim link asks a stranger to sign up, then moves the drop with one button', async () => {
  const publisher = await openVisitor(browser, stack)
  await publisher.goto('/')
  await publisher.page.locator('input[type=file]').setInputFiles(markdown)
  await publisher.page.getByText('Claim it from another device').click()
  const claimUrl = await publisher.page.getByLabel('Claim link').inputValue()
  await publisher.close()

  const claimant = await openVisitor(browser, stack, { javaScript: false })
  const { page } = claimant
  await page.goto(claimUrl)
  await page.getByRole('link', { name: 'Sign up and claim it' }).click()
  await fillSignUp(page, newEmail())
  await page.getByRole('button', { name: /^Claim it for/ }).click()
  await page.getByText('Yours now, at the same address. Until you open the link').waitFor()
  expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Dropped here')
  await page.goto(claimUrl)
  expect(await page.getByRole('heading', { level: 1 }).innerText()).toContain('does not work any more')
  await claimant.close()
})
