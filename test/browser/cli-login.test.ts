/** Signing in from the command line, with a real browser in between. */
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import { makeOpener, openedAddress } from '../support/cli-sign-in.ts'
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
  env = { DROPWAY_URL: stack.baseUrl, DROPWAY_CA_FILE: path.join(cli.folder, 'ca.pem'), BROWSER: await makeOpener(cli) }
})

afterAll(async () => {
  await browser.close()
  await cli.remove()
})

const credentialsFile = (): string => path.join(cli.folder, 'home', '.config', 'dropway', 'credentials.json')

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
})

test('denied in the browser: exit code 3, nothing stored', async () => {
  const denied = await login('Deny')
  expect([denied.code, denied.stdout]).toEqual([3, ''])
  expect(denied.stderr).toContain('denied')
  expect((await cli.run(['whoami'], { env })).code).toBe(3)
})

test('on a server: a short code, entered in a browser elsewhere; then a folder is deployed', async () => {
  const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage()
  const home = { ...env, HOME: path.join(cli.folder, 'server'), BROWSER: '' }
  const { code, stdout, stderr } = await cli.run(['login'], {
    env: home,
    respond(output) {
      const [, address, userCode] = /^ {2}(https:\S+\/device)\n[^]*^ {2}([A-Z]{4}-[A-Z]{4})$/m.exec(output) ?? []
      return userCode === undefined ? undefined : enter(page, address!, userCode).then(() => '')
    },
  })
  expect([code, stdout], stderr).toEqual([0, `Signed in as ${account.email}.\n`])
  expect(stderr).toContain(`From now on commands talk to ${stack.baseUrl}`)
  await page.context().close()
  // The service and its certificate authority are remembered: nothing but the home folder is needed.
  const folder = path.join(cli.folder, 'site')
  await mkdir(folder)
  await writeFile(path.join(folder, 'index.html'), '<h1>From a server</h1>')
  const deployed = await cli.run(['deploy', folder], { env: { HOME: home.HOME } })
  expect(deployed.code, deployed.stderr).toBe(0)
  const slug = new URL(deployed.lines.at(-1)!).hostname.split('.')[0]!
  expect((await stack.visit(slug)).text()).toContain('From a server')
})

async function enter(page: Page, address: string, userCode: string): Promise<void> {
  await page.goto(address)
  await signIn(page)
  await page.locator('input[name=user_code]').fill(userCode)
  await page.locator('form:has(input[name=user_code]) button').first().click()
  await page.getByRole('button', { name: 'Allow' }).click()
}
