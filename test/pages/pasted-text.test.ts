/** A long text in the publish form, with scripts and without: the plan decides, and what was typed stays. */
import type { Browser, Locator } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import { beSignedIn, openVisitor, PASSWORD } from '../support/dashboard-visitor.ts'
import { IS_DEEP } from '../support/depth.ts'
import { sharedStack, type PlanName, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
})
afterAll(() => browser.close())

/** More than a free plan takes; the deep run pastes as much as anyone has. */
const LONG_MB = IS_DEEP ? 40 : 12
const LINE = `${'x'.repeat(99)}\n`

/** Pasted at once, and out of sight: Chromium takes minutes to lay out this much text, and this is about what is sent. */
async function paste(area: Locator, characters: number): Promise<void> {
  await area.evaluate(
    (element, text) => Object.assign(element, { hidden: true, value: text }),
    `<!doctype html><title>Long</title><pre>${LINE.repeat(characters / LINE.length)}`,
  )
}

async function openForm(plan: PlanName, javaScript: boolean) {
  const owner = await stack.createAccount(plan, { password: PASSWORD })
  const person = await openVisitor(browser, stack, { javaScript })
  await beSignedIn(person, stack, owner.email)
  await person.goto('/sites/new')
  return { owner, ...person, area: person.page.getByRole('textbox', { name: 'HTML or Markdown', includeHidden: true }) }
}

const WAYS = [
  ['with scripts', true],
  ['without scripts', false],
] as const

test.each(WAYS)(`%s, ${LONG_MB} MB are published where the plan takes them`, async (_, script) => {
  const { owner, page, area, close } = await openForm('plus', script)
  await paste(area, LONG_MB * 1_000_000)
  await page.getByRole('button', { name: 'Publish', exact: true }).click()
  await page.waitForURL(/done=published/, { timeout: 120_000 })
  const id = new URL(page.url()).pathname.split('/')[2]!
  const { slug } = (await stack.fetch(`/api/v1/sites/${id}`, { token: owner.token })).json<{ slug: string }>()
  expect((await stack.visit(slug)).body.length).toBeGreaterThan(LONG_MB * 1_000_000)
  await close()
})

test.each(WAYS)('%s, more than the front page takes is refused and stays in the form', async (_, javaScript) => {
  const { page, goto, close } = await openVisitor(browser, stack, { javaScript })
  await goto('/')
  await paste(page.locator('textarea'), 2_100_000)
  // Who sends at once is taken for a robot.
  await page.waitForTimeout(3000)
  await page.getByRole('button', { name: 'Publish', exact: true }).click()
  await page.getByRole('alert').filter({ hasText: 'larger than 2 MB' }).waitFor()
  if (!javaScript) await page.goBack()
  expect((await page.locator('textarea').inputValue()).length).toBeGreaterThan(2_100_000)
  await close()
})
