/** A person at the dashboard: a browser context of its own against the real stack, and what people do there. */
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { nextAddress } from './addresses.ts'
import { FormBrowser } from './form-browser.ts'
import type { Stack } from './stack.ts'

export const PASSWORD = 'correct horse battery'

export interface VisitorOptions {
  readonly width?: number
  readonly scheme?: 'light' | 'dark'
  readonly javaScript?: boolean
}

export interface Visitor {
  readonly page: Page
  readonly context: BrowserContext
  /** Errors of scripts and refusals by the content security policy, with the address where each was met. */
  readonly problems: readonly string[]
  goto(path: string): Promise<void>
  close(): Promise<void>
}

/** Each comes from an address of its own, so that limits per network do not meet other tests. */
export async function openVisitor(browser: Browser, stack: Stack, options: VisitorOptions = {}): Promise<Visitor> {
  const { width = 1280, scheme = 'light', javaScript = true } = options
  const context = await browser.newContext({
    viewport: { width, height: width < 600 ? 740 : 860 },
    colorScheme: scheme,
    // A colour on its way to another is no finding.
    reducedMotion: 'reduce',
    javaScriptEnabled: javaScript,
    ignoreHTTPSErrors: true,
    baseURL: stack.baseUrl,
    extraHTTPHeaders: { 'x-forwarded-for': nextAddress() },
  })
  const page = await context.newPage()
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(`${error.message} (at ${page.url()})`))
  page.on('console', (message) => {
    if (message.type() !== 'error' || /status of 4\d\d/.test(message.text())) return
    problems.push(`${message.text()} (${message.location().url}, at ${page.url()})`)
  })
  return {
    page,
    context,
    problems,
    goto: async (target) => void (await page.goto(target)),
    close: () => context.close(),
  }
}

export function newEmail(): string {
  return `person-${randomBytes(6).toString('hex')}@example.test`
}

export async function signUp({ page }: Pick<Visitor, 'page'>, email = newEmail()): Promise<string> {
  await page.goto('/signup')
  await fillSignUp(page, email)
  return email
}

export async function fillSignUp(page: Page, email: string): Promise<void> {
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign up' }).click()
  await page.waitForURL(/\/(?:sites|claim|invitation)/)
}

export async function signIn({ page }: Pick<Visitor, 'page'>, email: string, password = PASSWORD): Promise<void> {
  await page.goto('/signin')
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(/\/sites/)
}

/**
 * A session of its own without opening a page, for tests that are not about signing in: three pages fewer to draw. The
 * visitor has not been anywhere yet.
 */
export async function beSignedIn({ context }: Pick<Visitor, 'context'>, stack: Stack, email: string): Promise<void> {
  const forms = new FormBrowser(stack, nextAddress())
  const answer = await forms.send('/signin', { email, password: PASSWORD })
  if (answer.status !== 303) throw new Error(`signing in answered ${answer.status}`)
  await context.addCookies(
    [...forms.cookies].map(([name, value]) => ({ name, value, url: stack.baseUrl, secure: true })),
  )
}

const OUTPUT = fileURLToPath(new URL('../output/screenshots/', import.meta.url))

/** The rest of a very long page looks like its beginning. */
const MAX_SCREENSHOT_PX = 2400

/** With SCREENSHOTS=1, so that a person can look at what the tests saw: drawing hundreds of pages takes minutes. */
export async function keepScreenshot(page: Page, name: string): Promise<void> {
  if (process.env['SCREENSHOTS'] !== '1') return
  mkdirSync(OUTPUT, { recursive: true })
  const size = (await page.evaluate('[innerWidth, document.documentElement.scrollHeight]')) as [number, number]
  await page.screenshot({
    path: path.join(OUTPUT, `${name}.png`),
    fullPage: true,
    clip: { x: 0, y: 0, width: size[0], height: Math.min(size[1], MAX_SCREENSHOT_PX) },
  })
}
