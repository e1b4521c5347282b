/** What publishing by hand shows is accessible and fits: refusals, results, summaries, the page that is edited, documents. */
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seriousViolations } from '../support/accessibility.ts'
import { launchBrowser } from '../support/browser.ts'
import { beSignedIn, keepScreenshot, openVisitor, PASSWORD } from '../support/dashboard-visitor.ts'
import { IS_DEEP } from '../support/depth.ts'
import { dropOnWindow, layFiles } from '../support/dropped-files.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

const SITE = { 'index.html': '<title>Home</title><h1>Home</h1>', 'about.html': 'about', 'css/a.css': 'a{}' }

let stack: Stack
let browser: Browser
let account: Account
let folder: string

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
  account = await stack.createAccount('plus', { password: PASSWORD })
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-published-'))
})
afterAll(async () => {
  await browser.close()
  await rm(folder, { recursive: true, force: true })
})

const lay = (name: string, files: Readonly<Record<string, string>>): Promise<string> =>
  layFiles(path.join(folder, name), files)

const VIEWS = [
  { width: 390, scheme: 'light' },
  { width: 1280, scheme: 'dark' },
  { width: 390, scheme: 'dark' },
  { width: 1280, scheme: 'light' },
] as const
/** Each width and each scheme; by `npm run test:deep` every pair of them. */
const LOOKED_AT = IS_DEEP ? VIEWS : VIEWS.slice(0, 2)
describe.each(LOOKED_AT)('at $width px, $scheme', ({ width, scheme }) => {
  const found: string[] = []
  async function look(page: Page, what: string): Promise<void> {
    for (const violation of await seriousViolations(page)) found.push(`${what}: ${violation}`)
    if (!(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))) found.push(`${what}: too wide`)
    await keepScreenshot(page, `by-hand-${what}-${width}-${scheme}`)
  }

  test('what publishing shows is accessible and fits', async () => {
    const stranger = await openVisitor(browser, stack, { width, scheme })
    await stranger.goto('/')
    await dropOnWindow(stranger.page, [await lay('shown', SITE)])
    await stranger.page.getByRole('alert').waitFor()
    await look(stranger.page, 'refusal')
    await dropOnWindow(stranger.page, [path.join(await lay('shown-note', { 'note.md': '# Note' }), 'note.md')])
    await stranger.page.getByRole('heading', { name: 'Your page is live' }).waitFor()
    await stranger.page.getByText('Delete', { exact: true }).click()
    await look(stranger.page, 'result')
    await stranger.close()

    const owner = await openVisitor(browser, stack, { width, scheme })
    await beSignedIn(owner, stack, account.email)
    const { page } = owner
    await page.goto('/')
    await look(page, 'front-page-signed-in')
    const site = await stack.publish(account, SITE)
    await page.goto(`/sites/${site.id}`)
    await dropOnWindow(page, [path.join(await lay('shown-page', { 'a.html': '<h1>One</h1>' }), 'a.html')])
    await page.getByText('3 files → 1: 1 changed, 2 removed').waitFor()
    await look(page, 'summary')
    await page.getByRole('link', { name: 'Edit the page' }).click()
    await page.frameLocator('[data-preview] iframe').getByRole('heading', { name: 'One' }).waitFor()
    await look(page, 'edit')
    for (const [name, content] of [
      ['cat.svg', '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 6"><circle cx="4" cy="3" r="2"/></svg>'],
      ['todo.txt', 'one\n'.repeat(60)],
    ] as const) {
      await page.goto('/sites')
      await dropOnWindow(page, [path.join(await lay(`shown-${name}`, { [name]: content }), name)])
      await page.getByRole('heading', { name: 'Version 1 is live' }).waitFor()
      await page.goto((await page.locator('.live-link').getAttribute('href'))!)
      await look(page, `document-${name.replace(/.*\./, '')}`)
    }
    expect(found).toEqual([])
    await owner.close()
  })
})
