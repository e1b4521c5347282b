/** The pages that the edge writes, in a real browser: readable for everyone, on any screen, in light and dark. */
import { createRequire } from 'node:module'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { closedPage, errorPage, missingPage, unlockPage } from '../../edge/gate/pages.ts'
import type { PreparedPage } from '../../edge/gate/pages.ts'
import { aceViolations } from '../support/accessibility.ts'
import { launchBrowser } from '../support/browser.ts'

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const options = {
  baseUrl: 'https://dropway.test',
  host: `${'a-very-long-name-'.repeat(3)}x.${'subdomain.'.repeat(4)}dropway.test`,
}

const closedPages = ['unknown', 'reserved', 'gone', 'expired', 'removed', 'unverified', 'paused'] as const
const pages: readonly (readonly [string, PreparedPage])[] = [
  ...closedPages.map((name) => [name, closedPage(name, options)] as const),
  ['missing', missingPage({ ...options, isProtected: false })],
  ['unlock', unlockPage({ ...options, next: '/' })],
  ['unlock again', unlockPage({ ...options, next: '/', problem: 'wrong' })],
  ['unlock with work', unlockPage({ ...options, next: '/', problem: 'limited', work: { challenge: 'x', bits: 4 } })],
  ['error', errorPage(500, { baseUrl: options.baseUrl, id: 'err_0123456789abcdef' })],
]

let browser: Browser
beforeAll(async () => void (browser = await launchBrowser()))
afterAll(() => browser?.close())

/** The page as it is answered, but it does not look again by itself: a slow machine would meet that in the middle of a check. */
const standingStill = ({ headers }: PreparedPage) => Object.fromEntries(headers.filter(([name]) => name !== 'refresh'))

interface Finding {
  readonly id: string
  readonly nodes: readonly { readonly html: string }[]
}

test.each([
  ['light', 360],
  ['dark', 1280],
] as const)('in %s at %i px nothing is inaccessible, overflows, loads or is blocked', async (colorScheme, width) => {
  // bypassCSP: axe itself is a script, which the pages do not allow.
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 640 }, bypassCSP: true })
  const page = await context.newPage()
  let current: PreparedPage | undefined
  const asked: string[] = []
  await context.route('**/*', (route) => {
    asked.push(route.request().url())
    return route.fulfill({
      status: current!.status,
      headers: standingStill(current!),
      body: current!.body,
    })
  })
  for (const [name, prepared] of pages) {
    current = prepared
    await page.goto('https://demo.dropway.test/')
    expect(await page.evaluate(() => document.documentElement.scrollWidth), `${name} overflows`).toBeLessThanOrEqual(
      width,
    )
    await page.addScriptTag({ path: AXE })
    const found = (await page.evaluate('axe.run().then((result) => result.violations)')) as Finding[]
    expect(
      found.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`),
      name,
    ).toEqual([])
    expect(await aceViolations(page), name).toEqual([])
  }
  expect(asked.filter((url) => url !== 'https://demo.dropway.test/')).toEqual([])
  await context.close()
})

test('their own policy blocks nothing of them', async () => {
  const context = await browser.newContext()
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => complaints.push(message.text()))
  for (const [name, prepared] of pages) {
    await context.unrouteAll()
    await context.route('**/*', (route) =>
      route.fulfill({ status: 200, headers: standingStill(prepared), body: prepared.body }),
    )
    await page.goto('https://demo.dropway.test/')
    expect(await page.evaluate(() => getComputedStyle(document.body).display), name).toBe('grid')
  }
  expect(complaints).toEqual([])
  await context.close()
})
