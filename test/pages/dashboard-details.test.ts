/** Small things that people stumble over: what stands on one line, what comes back, what an empty page says, whose clock it is. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiFor, fileForm } from '../support/api.ts'
import { launchBrowser } from '../support/browser.ts'
import { beSignedIn, openVisitor, PASSWORD, type Visitor } from '../support/dashboard-visitor.ts'
import { sharedStack, type Account, type Published, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser
let account: Account
let visitor: Visitor
let site: Published

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
  account = await stack.createAccount('business', { password: PASSWORD })
  site = await stack.publish(account, '<title>Details</title><h1>Details</h1>')
  visitor = await openVisitor(browser, stack)
  await beSignedIn(visitor, stack, account.email)
})
afterAll(() => browser.close())

/** Tops of boxes that are neither on one line nor on two. A box with a frame around it begins a pixel lower. */
const UNEVEN = `[...document.querySelectorAll('main .row')].flatMap((row) => {
  const boxes = [...row.querySelectorAll('input:not([type=checkbox], [type=radio], [type=hidden]), select')]
  const shown = boxes.filter((box) => box.getClientRects().length > 0)
  const tops = shown.map((box) => Math.round(box.getBoundingClientRect().top))
  const isUneven = tops.some((top) => tops.some((other) => top - other > 2 && top - other < 40))
  return isUneven ? [shown.map((box, index) => box.name + ' ' + tops[index]).join(', ')] : []
})`

test('fields that stand beside each other stand on one line', async () => {
  const uneven: string[] = []
  for (const page of [
    '/sites/new',
    '/account',
    '/account/tokens',
    '/account/organisation',
    `/sites/${site.id}/settings`,
  ]) {
    await visitor.goto(page)
    await visitor.page.evaluate(`for (const each of document.querySelectorAll('details')) each.open = true`)
    for (const row of (await visitor.page.evaluate(UNEVEN)) as string[]) uneven.push(`${page}: ${row}`)
  }
  expect(uneven).toEqual([])
})

test('Back brings back the address, the name and the text that were typed', async () => {
  const { page } = visitor
  const text = page.getByRole('textbox', { name: 'HTML or Markdown' })
  await visitor.goto('/sites/new')
  await page.getByLabel('Address').fill('typed-address')
  await page.getByLabel('Name').fill('Typed name')
  await text.fill('# Typed text')
  // A look at the list of drops; leaving what was typed is asked about.
  page.once('dialog', (dialog) => void dialog.accept())
  await page.goto('/sites')
  await page.goBack()
  await expect.poll(() => page.getByLabel('Address').inputValue()).toBe('typed-address')
  expect(await page.getByLabel('Name').inputValue()).toBe('Typed name')
  expect(await text.inputValue()).toBe('# Typed text')
})

test('times are in the zone of the reader, and in UTC where no script runs', async () => {
  const titleIn = async (options: { timezoneId: string; javaScriptEnabled: boolean }): Promise<string | null> => {
    const context = await browser.newContext({
      ...options,
      locale: 'en-GB',
      ignoreHTTPSErrors: true,
      baseURL: stack.baseUrl,
    })
    await beSignedIn({ context }, stack, account.email)
    const page = await context.newPage()
    await page.goto(`/sites/${site.id}/versions`)
    const time = page.locator('time[data-exact]').first()
    if (options.javaScriptEnabled)
      await page.waitForFunction(`!document.querySelector('time[data-exact]').title.endsWith('UTC')`)
    const at = new Date((await time.getAttribute('datetime')) ?? '')
    const hour = new Intl.DateTimeFormat('en-GB', { timeZone: options.timezoneId, timeStyle: 'short' }).format(at)
    expect(await time.getAttribute('title')).toContain(hour)
    return time.getAttribute('title')
  }
  expect(await titleIn({ timezoneId: 'Asia/Kathmandu', javaScriptEnabled: true })).not.toContain('UTC')
  expect(await titleIn({ timezoneId: 'UTC', javaScriptEnabled: false })).toContain('UTC')
})

test('a drop that no one has opened says so, and what to share', async () => {
  await visitor.goto(`/sites/${site.id}/views`)
  await visitor.page.getByText('Nobody has opened it in the last 30 days').waitFor()
  expect(await visitor.page.locator('main svg').count()).toBe(0)
})

test('an invitation says that its link works until a day, not the member', async () => {
  const { page } = visitor
  await visitor.goto('/account/organisation')
  await page.getByLabel('E-mail').fill('colleague@example.test')
  await page.getByRole('button', { name: 'Send the invitation' }).click()
  await page.getByText('The invitation is on its way.').waitFor()
  expect(await page.locator('main').innerText()).toMatch(/invited as member; the link works until \d/)
  expect(visitor.problems).toEqual([])
})

test('the pages of the edge may show the icon of their host: a missing one, and a locked one', async () => {
  await stack.fetch(`/api/v1/sites/${site.id}`, { method: 'PATCH', token: account.token, json: { password: 'sesame' } })
  const open = await stack.publish(account, '<title>Open</title>')
  for (const [status, url] of [
    [401, site.url],
    [404, new URL('/no-such-page', open.url).href],
  ] as const) {
    const answer = await visitor.page.goto(url)
    expect(answer?.status()).toBe(status)
    const isShown = await visitor.page.evaluate(`new Promise((resolve) => {
      document.addEventListener('securitypolicyviolation', () => resolve(false))
      const icon = new Image()
      icon.onload = icon.onerror = () => resolve(true)
      icon.src = '/favicon.ico'
    })`)
    expect(isShown, url).toBe(true)
  }
})

test('two versions of a Markdown page are compared as Markdown', async () => {
  const api = apiFor(stack, account)
  const drop = (await api.create()).json<Published>()
  for (const line of ['The **first** line', 'The **second** line'])
    await api.upload(drop.id, fileForm('notes.md', `# Notes\n\n${line}\n`))
  await visitor.goto(`/sites/${drop.id}/versions`)
  await visitor.page.getByRole('link', { name: 'What changed' }).first().click()
  await visitor.page.getByRole('heading', { name: 'What version 2 changed' }).waitFor()
  const words = await visitor.page.locator('main').innerText()
  expect(words).toContain('The **second** line')
  expect(words).not.toContain('<strong>')
})

test('the plans say what keeps a free drop online, and that the free plan is one per person', async () => {
  await visitor.goto('/account/plan')
  const words = await visitor.page.locator('main').innerText()
  expect(words).toContain('while you sign in or publish every 30 days')
  expect(words).toMatch(/3 per person/)
})

test('the API shows a preview address as it really is', async () => {
  const { components } = (await stack.fetch('/api/v1/openapi.json')).json()
  const [version] = (await apiFor(stack, account).versions(site.id)).json<{ preview_url: string }[]>()
  const lengthIn = (address: string): number => /^https:\/\/\d+-([a-z0-9]+)--[a-z]/.exec(address)?.[1]?.length ?? 0
  expect(lengthIn(version!.preview_url)).toBeGreaterThan(9)
  expect(lengthIn(components.schemas.Version.properties.preview_url.examples[0])).toBe(lengthIn(version!.preview_url))
})
