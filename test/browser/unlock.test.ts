/** A drop whose password strangers guess at: its own visitors still come in. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nextAddress } from '../support/addresses.ts'
import { apiFor, fileForm } from '../support/api.ts'
import { launchBrowser } from '../support/browser.ts'
import { openVisitor } from '../support/dashboard-visitor.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
})
afterAll(() => browser.close())

test('the page calculates while the password is typed and opens the drop; without JavaScript it says what to do', async () => {
  const api = apiFor(stack, await stack.createAccount('plus'))
  const drop = (await api.create()).json<{ id: string; slug: string; url: string }>()
  await api.upload(drop.id, fileForm('index.html', '<h1>inside</h1>'))
  await api.patch(drop.id, { password: 'open sesame' })
  const from = nextAddress()
  // Both workers must have heard of them.
  for (let guess = 0; guess < 20; guess++) {
    await stack.visit(drop.slug, '/.dropway/unlock', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'x-forwarded-for': from },
      body: new URLSearchParams({ password: `wrong ${guess}` }).toString(),
    })
  }

  const visitor = await openVisitor(browser, stack)
  await visitor.context.setExtraHTTPHeaders({ 'x-forwarded-for': from })
  const { page } = visitor
  const challenge = page.locator('[data-challenge]')
  // The workers tell one another of guesses, and nobody waits for that.
  await expect.poll(async () => (await visitor.goto(drop.url), challenge.count())).toBe(1)
  await page.getByLabel('Password').fill('open sesame')
  // Before it is done: the form waits by itself.
  await page.getByRole('button', { name: 'Open' }).click()
  await page.getByRole('heading', { name: 'inside' }).waitFor()
  expect(visitor.problems).toEqual([])
  await visitor.close()

  const plain = await openVisitor(browser, stack, { javaScript: false })
  await plain.context.setExtraHTTPHeaders({ 'x-forwarded-for': from })
  await plain.goto(drop.url)
  const words = plain.page.locator('.notice.warn')
  await words.waitFor()
  expect(await words.innerText()).toContain('needs JavaScript')
  await plain.close()
})
