/** What pages say about plans, domains, views and what happened, on a phone and on a desk. */
import type { Browser, Locator } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seriousViolations } from '../support/accessibility.ts'
import { launchBrowser } from '../support/browser.ts'
import { beSignedIn, keepScreenshot, openVisitor, PASSWORD, type Visitor } from '../support/dashboard-visitor.ts'
import { byTurns } from '../support/depth.ts'
import { sharedStack, type Account, type Published, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser
let account: Account
let site: Published

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
  account = await stack.createAccount('plus', { password: PASSWORD })
  site = await stack.publish(account, '<title>Places</title>one')
  await stack.publish(account, '<title>Places</title>two', site)
  await stack.fetch(`/api/v1/sites/${site.id}/domains`, {
    token: account.token,
    json: { domain: `places-${Date.now()}.example`, pair: true },
  })
})
afterAll(() => browser.close())

const middleOf = async (place: Locator): Promise<number> => {
  const box = (await place.boundingBox())!
  return box.y + box.height / 2
}

const inOneView = byTurns([
  { javaScript: false, width: 390, scheme: 'dark' },
  { javaScript: true, width: 1280, scheme: 'light' },
] as const)

describe.each(inOneView())('with JavaScript $javaScript, at $width px', (options) => {
  let visitor: Visitor

  beforeAll(async () => {
    visitor = await openVisitor(browser, stack, options)
    await beSignedIn(visitor, stack, account.email)
  })
  afterAll(() => visitor.close())

  test.each(['/account/plan', '/'])('all plans of %s are on the screen, with prices in a currency', async (path) => {
    await visitor.goto(path)
    const table = visitor.page.locator('table.plans')
    for (const plan of ['Anonymous', 'Free', 'Plus', 'Business']) {
      const box = (await table.locator('thead th').filter({ hasText: plan }).boundingBox())!
      expect(box.x, plan).toBeGreaterThanOrEqual(0)
      expect(box.x + box.width, plan).toBeLessThanOrEqual(options.width)
    }
    expect(await visitor.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    expect(await table.innerText()).toMatch(/[€$£]12 a month/)
    expect(await table.getByText('Your plan').count()).toBe(path === '/' ? 0 : 1)
    await keepScreenshot(visitor.page, `plans-${path === '/' ? 'landing' : 'account'}-${options.width}`)
  })

  test('a domain says what to enter: the routing record first, apex and www, found and next check', async () => {
    const { page } = visitor
    await visitor.goto(`/sites/${site.id}/domains`)
    const card = page.locator('[data-domains] section.card')
    const rows = (await card.locator('tbody tr').allInnerTexts()).map((row) => row.replaceAll(/\s+/g, ' '))
    expect(rows[0]).toMatch(/Add .*@ .*(?:A|AAAA) .*nothing/)
    expect(rows.some((row) => /_dropway.* TXT .*dropway-verify=/.test(row))).toBe(true)
    expect(rows.at(-1)).toMatch(/Add .*www .*CNAME .*nothing/)
    // Copying needs a script; without one there is no button that does nothing.
    const copies = options.javaScript ? 2 * rows.length : 0
    expect(await card.getByRole('button', { name: /^Copy / }).count()).toBe(copies)
    expect(await card.innerText()).toMatch(/Checked .*Next check/s)
    await keepScreenshot(page, `domains-${options.width}`)
  })

  test('every version says what it changed, line by line, also the live one; one button is the main one', async () => {
    const { page } = visitor
    const drop = await stack.publish(account, {
      'index.html': '<!doctype html>\n<title>Lines</title>\n<h1>First</h1>\n',
      'style.css': 'h1 { color: red }\n',
      'gone.html': 'gone',
    })
    await stack.publish(
      account,
      {
        'index.html': '<!doctype html>\n<title>Lines</title>\n<h1>Second <b>&</b></h1>\n',
        'style.css': 'h1 { color: red }\n',
        'new.html': 'new',
      },
      drop,
    )
    await visitor.goto(`/sites/${drop.id}/versions`)
    expect(await page.getByRole('main').locator('.button.primary').count()).toBe(0)
    const rows = page.getByRole('row').filter({ has: page.getByRole('rowheader') })
    expect(await rows.nth(0).innerText()).toMatch(
      /Version 2[^]*1 file changed, 1 added, 1 removed: index\.html, new\.html, gone\.html/,
    )
    expect(await rows.nth(1).innerText()).not.toMatch(/changed|added|removed/)
    await keepScreenshot(page, `versions-${options.width}`)
    await page.getByRole('link', { name: 'What changed with version 2' }).click()
    await page.getByRole('heading', { name: 'What version 2 changed' }).waitFor()
    expect(await page.getByRole('main').innerText()).toContain('compared with version 1, which was there before')
    const lines = page.getByRole('region', { name: 'Lines of index.html' })
    expect(await lines.locator('.removed').allTextContents()).toEqual(['− removed: <h1>First</h1>'])
    expect(await lines.locator('.added').allTextContents()).toEqual(['+ added: <h1>Second <b>&</b></h1>'])
    expect(await page.getByRole('region', { name: 'Lines of style.css' }).count()).toBe(0)
    await keepScreenshot(page, `version-changed-${options.width}`)
    if (options.javaScript) expect(await seriousViolations(page)).toEqual([])
    await visitor.goto(`/sites/${drop.id}/versions`)
    await page.getByRole('link', { name: 'What changes with version 1' }).click()
    await page.getByRole('heading', { name: 'What version 1 would change' }).waitFor()
    expect(await lines.locator('.added').allTextContents()).toEqual(['+ added: <h1>First</h1>'])
    expect(await page.getByRole('button', { name: 'Make live version 1' }).isVisible()).toBe(true)
  })

  test('the days of the views are chosen beside their heading', async () => {
    const { page } = visitor
    await visitor.goto(`/sites/${site.id}/views`)
    const heading = page.getByRole('heading', { name: /page views?$/ })
    const choice = page.getByRole('link', { name: '90 days' })
    // Where both do not fit on a line, it is the next one.
    expect(Math.abs((await middleOf(heading)) - (await middleOf(choice)))).toBeLessThan(options.width < 600 ? 60 : 24)
    await choice.click()
    await page.getByText('Nobody has opened it in the last 90 days.').waitFor()
    expect(await choice.getAttribute('aria-current')).toBe('true')
    await keepScreenshot(page, `views-${options.width}`)
  })

  test('the audit log tells deeds in words, without ids', async () => {
    const { page } = visitor
    await visitor.goto('/account/log')
    const text = await page.getByRole('main').innerText()
    expect(text).toContain('Published version 2 of Places')
    expect(text).toMatch(/with an API token/)
    expect(text).not.toMatch(/\b(?:st|usr|org|tok|v|inv)_\w{8}/)
    await keepScreenshot(page, `log-${options.width}`)
  })
})

test.each(['/sites/new', 'SETTINGS'])(
  'an address on %s is looked up while it is typed, with others that are free',
  async (place) => {
    const visitor = await openVisitor(browser, stack, { width: 390 })
    await beSignedIn(visitor, stack, account.email)
    const { page } = visitor
    await visitor.goto(place === 'SETTINGS' ? `/sites/${site.id}/settings` : place)
    const field = page.getByLabel('Address', { exact: true })
    const note = page.locator('.address-note')
    const other = await stack.publish(account, '<title>Taken</title>')
    await field.fill(other.slug)
    await note.getByText('is taken').waitFor()
    await keepScreenshot(page, `address-taken-${place === 'SETTINGS' ? 'settings' : 'new'}`)
    await note.getByRole('button', { name: `my-${other.slug}` }).click()
    await note.getByText('This address is free.').waitFor()
    expect(await field.inputValue()).toBe(`my-${other.slug}`)
    await field.fill('Über Uns!')
    await note.getByRole('button', { name: 'uber-uns', exact: true }).waitFor()
    expect(visitor.problems).toEqual([])
    await visitor.close()
  },
)

test('an invitation says until when it works', async () => {
  const visitor = await openVisitor(browser, stack)
  await beSignedIn(visitor, stack, account.email)
  const { page } = visitor
  await visitor.goto('/account/organisation')
  await page.getByLabel('E-mail').fill(`guest-${Date.now()}@example.test`)
  await page.getByRole('button', { name: 'Send the invitation' }).click()
  await page.getByText(/works\s+until\s+\d+ \w+ 20\d\d/).waitFor()
  await visitor.close()
})
