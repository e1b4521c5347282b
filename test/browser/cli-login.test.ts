/** Signing in from the command line, with a real browser in between. */
import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import { openCli, type CliResult, type Cli } from '../support/cli.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

const PASSWORD = 'correct horse battery staple'

let cli: Cli
let stack: Stack
let account: Account
let browser: Browser
let env: Record<string, string>

beforeAll(async () => {
  ;[cli, stack, browser] = await Promise.all([openCli(), sharedStack(), launchBrowser()])
  account = await stack.createAccount('plus', { password: PASSWORD })
  await writeFile(path.join(cli.folder, 'ca.pem'), stack.ca)
  // What the client opens as "the browser": it only notes the address.
  const opener = path.join(cli.folder, 'opener')
  await writeFile(opener, `#!/bin/sh\nprintf %s "$1" > "$OPENED.part" && mv "$OPENED.part" "$OPENED"\n`)
  await chmod(opener, 0o755)
  env = { DROPWAY_URL: stack.baseUrl, DROPWAY_CA_FILE: path.join(cli.folder, 'ca.pem'), BROWSER: opener }
}, 120_000)

afterAll(async () => {
  await browser.close()
  await cli.remove()
})

const credentialsFile = (): string => path.join(cli.folder, 'home', '.config', 'dropway', 'credentials.json')

async function openedAddress(file: string): Promise<string> {
  for (;;) {
    const text = await readFile(file, 'utf8').catch(() => undefined)
    if (text !== undefined) return text
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Runs `login` and lets a fresh browser decide; resolves when both are done. */
async function login(decision: 'Allow' | 'Deny'): Promise<CliResult> {
  const opened = path.join(cli.folder, `opened-${decision}-${Date.now()}`)
  const running = cli.run(['login'], { env: { ...env, OPENED: opened } })
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  const page = await context.newPage()
  await page.goto(await openedAddress(opened))
  await signIn(page)
  await page.getByRole('button', { name: decision }).click()
  await page.getByText('Back to the terminal').waitFor()
  await context.close()
  return running
}

async function signIn(page: Page): Promise<void> {
  await page.locator('input[name=email]').fill(account.email)
  await page.locator('input[name=password]').fill(PASSWORD)
  await page.locator('form:has(input[name=password]) button').first().click()
}

test('login → whoami → expiry → logout: tokens are stored for the owner alone, rotated, and revoked', async () => {
  const signedIn = await login('Allow')
  expect([signedIn.code, signedIn.stdout], signedIn.stderr).toEqual([0, `Signed in as ${account.email}.\n`])
  expect((await stat(credentialsFile())).mode & 0o777).toBe(0o600)
  expect((await cli.run(['whoami'], { env })).stdout).toContain(account.email)

  // Two processes meet an expired token at once: one renews it, both go on.
  const before = JSON.parse(await readFile(credentialsFile(), 'utf8'))
  const expired = { ...before, [stack.baseUrl]: { ...before[stack.baseUrl], expires_at: 0 } }
  await writeFile(credentialsFile(), JSON.stringify(expired))
  const both = await Promise.all([cli.run(['whoami'], { env }), cli.run(['list'], { env })])
  expect(both.map((result) => result.code)).toEqual([0, 0])
  const after = JSON.parse(await readFile(credentialsFile(), 'utf8'))
  expect(after[stack.baseUrl].refresh_token).not.toBe(before[stack.baseUrl].refresh_token)

  const out = await cli.run(['logout'], { env })
  expect(out.code, out.stderr).toBe(0)
  expect(JSON.parse(await readFile(credentialsFile(), 'utf8'))).toEqual({})
  expect((await cli.run(['whoami'], { env })).code).toBe(3)
  const revoked = await stack.fetch('/api/v1/me', { token: after[stack.baseUrl].access_token })
  expect(revoked.status).toBe(401)
}, 60_000)

test('denied in the browser: exit code 3, nothing stored', async () => {
  const denied = await login('Deny')
  expect([denied.code, denied.stdout]).toEqual([3, ''])
  expect(denied.stderr).toContain('denied')
  expect((await cli.run(['whoami'], { env })).code).toBe(3)
}, 60_000)

test('without a browser and without a terminal the address is printed', async () => {
  const kill = new AbortController()
  const { stderr } = await cli.run(['login', '--no-browser'], {
    env,
    signal: kill.signal,
    respond(output) {
      if (output.includes('code_challenge_method=S256')) kill.abort()
      return undefined
    },
  })
  expect(stderr).toContain(`${stack.baseUrl}/oauth/authorize?`)
})

/** The address that the client printed, once its prompt stands there. */
function printedAddress(output: string): string | undefined {
  return output.includes('paste') ? /https:\/\/\S+\/oauth\/authorize\?\S+/.exec(output)?.[0] : undefined
}

test('in a terminal: the browser answers while the prompt waits', async () => {
  const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage()
  const { code, stdout } = await cli.runInTerminal(['login', '--no-browser'], {
    env,
    respond(output) {
      const address = printedAddress(output)
      if (address === undefined) return undefined
      return allow(page, address).then(() => '')
    },
  })
  expect(code, stdout).toBe(0)
  expect(stdout).toContain(`Signed in as ${account.email}`)
  await page.context().close()
}, 60_000)

test('in a terminal: a browser on another machine ends at an address that can be pasted', async () => {
  const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage()
  const { code, stdout } = await cli.runInTerminal(['login', '--no-browser'], {
    env: { ...env, HOME: path.join(cli.folder, 'elsewhere') },
    respond(output) {
      const address = printedAddress(output)
      return address === undefined ? undefined : endOf(page, address).then((end) => `${end}\r`)
    },
  })
  expect(code, stdout).toBe(0)
  expect(stdout).toContain(`Signed in as ${account.email}`)
  await page.context().close()
}, 60_000)

async function allow(page: Page, address: string): Promise<void> {
  await page.goto(address)
  await signIn(page)
  await page.getByRole('button', { name: 'Allow' }).click()
}

/** Where the browser is sent, on a machine where nobody listens there. */
async function endOf(page: Page, address: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  await page.route('http://127.0.0.1:*/callback*', async (route) => {
    resolve(route.request().url())
    await route.abort()
  })
  await allow(page, address)
  return promise
}
