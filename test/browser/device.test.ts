/** The pages where a person decides who gets in, in a real browser: a device, and a client with a long address. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seriousViolations } from '../support/accessibility.ts'
import { launchBrowser } from '../support/browser.ts'
import { beSignedIn, keepScreenshot, openVisitor, PASSWORD } from '../support/dashboard-visitor.ts'
import { byTurns } from '../support/depth.ts'
import { attemptOf, consentAddress, DEVICE_GRANT, registerClient, tokenRequest } from '../support/oauth-client.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser
let account: Account

beforeAll(async () => {
  ;[stack, browser] = await Promise.all([sharedStack(), launchBrowser()])
  account = await stack.createAccount('plus', { password: PASSWORD })
})
afterAll(() => browser.close())

const inOneView = byTurns([
  { javaScript: true, width: 1200, scheme: 'light' as const },
  { javaScript: false, width: 390, scheme: 'dark' as const },
])

test.each(inOneView())(
  'a device is let in by its code ($scheme, $width px, JavaScript: $javaScript)',
  async (options) => {
    const metadata = { client_name: 'Command line (dropway)', grant_types: [DEVICE_GRANT] }
    const { client_id } = (await registerClient(stack, metadata)).json()
    const started = (await tokenRequest(stack, { client_id, scope: 'cli' }, '/oauth/device_authorization')).json()
    const visitor = await openVisitor(browser, stack, options)
    const { page } = visitor
    await beSignedIn(visitor, stack, account.email)
    await page.goto('/device')
    if (options.javaScript) expect(await seriousViolations(page)).toEqual([])
    await keepScreenshot(page, `device-code-${options.scheme}`)
    await page.getByLabel('Code').fill(started.user_code.toLowerCase())
    await page.getByRole('button', { name: 'Continue' }).click()
    expect(await page.locator('dd code').first().textContent()).toBe(started.user_code)
    if (options.javaScript) expect(await seriousViolations(page)).toEqual([])
    await keepScreenshot(page, `device-consent-${options.scheme}`)
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByRole('heading', { name: 'Your device is signed in' }).waitFor()
    const fields = { grant_type: DEVICE_GRANT, client_id, device_code: started.device_code }
    expect((await tokenRequest(stack, fields)).status).toBe(200)
    expect(visitor.problems).toEqual([])
    await visitor.close()
  },
)

test('a long redirect address is shown whole, and does not widen the page', async () => {
  const redirect = `https://claude.ai.evil.example/${'callback-'.repeat(40)}end`
  const { client_id } = (await registerClient(stack, { client_name: 'Claude', redirect_uris: [redirect] })).json()
  const visitor = await openVisitor(browser, stack, { width: 390 })
  await beSignedIn(visitor, stack, account.email)
  await visitor.page.goto(consentAddress(attemptOf(stack, client_id, { redirect_uri: redirect })))
  expect(await visitor.page.locator('code.whole').textContent()).toBe(redirect)
  expect(await visitor.page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
  expect(await seriousViolations(visitor.page)).toEqual([])
  await keepScreenshot(visitor.page, 'consent-long-address')
  await visitor.close()
})
