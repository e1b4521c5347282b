/** An MCP client connects the way people do it: in a real browser. And pages that want to decide for them. */
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { UnauthorizedError, type OAuthClientProvider } from '@modelcontextprotocol/client'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seriousViolations } from '../support/accessibility.ts'
import { launchBrowser } from '../support/browser.ts'
import { beSignedIn, openVisitor, PASSWORD, signIn } from '../support/dashboard-visitor.ts'
import { byTurns } from '../support/depth.ts'
import { newClient, newTransport } from '../support/mcp-client.ts'
import { consentAddress, newAttempt } from '../support/oauth-client.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser
let account: Account

beforeAll(async () => {
  ;[stack, browser] = await Promise.all([sharedStack(), launchBrowser()])
  account = await stack.createAccount('plus', { password: PASSWORD })
})
afterAll(() => browser.close())

/** The client's own web server. Like many it goes on to another origin once it has the answer. */
async function openCallback() {
  const { promise, resolve } = Promise.withResolvers<URLSearchParams>()
  const server = http.createServer((request, response) => {
    const [path, query] = request.url!.split('?', 2) as [string, string?]
    if (path !== '/callback') return void response.end('<h1>Connected</h1>')
    resolve(new URLSearchParams(query))
    response.writeHead(302, { location: `http://localhost:${port}/done` }).end()
  })
  server.listen(0)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { redirect: `http://127.0.0.1:${port}/callback`, answer: promise, close: () => server.close() }
}

type Stored = Awaited<ReturnType<OAuthClientProvider['tokens']>>

/** A client's memory. */
function newProvider(redirectUrl: string) {
  let client: Awaited<ReturnType<OAuthClientProvider['clientInformation']>>
  let verifier = ''
  let discovered: Awaited<ReturnType<NonNullable<OAuthClientProvider['discoveryState']>>>
  const memory: { tokens: Stored; address: URL | undefined } = { tokens: undefined, address: undefined }
  const provider: OAuthClientProvider = {
    redirectUrl,
    clientMetadata: { client_name: 'Test assistant', redirect_uris: [redirectUrl] },
    state: () => 'a state',
    clientInformation: () => client,
    saveClientInformation: (information) => void (client = information),
    tokens: () => memory.tokens,
    saveTokens: (tokens) => void (memory.tokens = tokens),
    redirectToAuthorization: (address) => void (memory.address = address),
    saveCodeVerifier: (value) => void (verifier = value),
    codeVerifier: () => verifier,
    saveDiscoveryState: (state) => void (discovered = state),
    discoveryState: () => discovered,
    invalidateCredentials: () => void (memory.tokens = undefined),
  }
  return { provider, memory }
}

const inOneView = byTurns([{ javaScript: true }, { javaScript: false }])

test.each(inOneView())(
  'an MCP client logs in, works, renews its token and is shut out again (JavaScript: $javaScript)',
  async ({ javaScript }) => {
    const callback = await openCallback()
    const { provider, memory } = newProvider(callback.redirect)
    const transport = newTransport(stack, { authProvider: provider })
    await expect(newClient('modern').connect(transport)).rejects.toBeInstanceOf(UnauthorizedError)

    const visitor = await openVisitor(browser, stack, { javaScript })
    const { page } = visitor
    await page.goto(memory.address!.href)
    await page.getByLabel('E-mail').fill(account.email)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Test assistant' }).waitFor()
    if (javaScript) expect(await seriousViolations(page)).toEqual([])
    expect(await page.getByRole('definition').allInnerTexts()).toEqual(
      expect.arrayContaining([account.email, 'unknown', `a program on your own computer\n${callback.redirect}`]),
    )
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByRole('heading', { name: 'Connected' }).waitFor()
    expect(visitor.problems).toEqual([])
    const answer = await callback.answer
    expect(answer.get('state')).toBe('a state')
    await transport.finishAuth(answer)

    const client = newClient('modern')
    await client.connect(newTransport(stack, { authProvider: provider }))
    const listDrops = () => client.callTool({ name: 'service_list', arguments: {} })
    expect((await listDrops()).structuredContent).toEqual({ drops: [] })

    const before = memory.tokens!
    memory.tokens = { ...before, access_token: 'dwo_expired' }
    expect((await listDrops()).isError).toBeFalsy()
    expect(memory.tokens.refresh_token).not.toBe(before.refresh_token)

    await visitor.goto('/account/apps')
    await page.getByRole('link', { name: 'Revoke… Test assistant' }).click()
    await page.getByRole('button', { name: 'Revoke it' }).click()
    await page.getByText('Nothing is connected').waitFor()
    memory.address = undefined
    await expect(listDrops()).rejects.toBeInstanceOf(UnauthorizedError)
    expect(memory.address, 'the client asks anew').toBeDefined()
    await visitor.close()
    callback.close()
  },
)

test('a question from before a sign-in in another tab is asked again, and goes on', async () => {
  const callback = await openCallback()
  const { provider, memory } = newProvider(callback.redirect)
  const transport = newTransport(stack, { authProvider: provider })
  await expect(newClient('modern').connect(transport)).rejects.toBeInstanceOf(UnauthorizedError)
  const visitor = await openVisitor(browser, stack, { javaScript: false })
  const { page } = visitor
  await beSignedIn(visitor, stack, account.email)
  await page.goto(memory.address!.href)
  await page.getByRole('heading', { name: 'Test assistant' }).waitFor()
  await visitor.context.clearCookies()
  const other = await visitor.context.newPage()
  await signIn({ page: other }, account.email)
  await page.getByRole('button', { name: 'Allow' }).click()
  // The same question, made for the new session.
  await page.getByRole('heading', { name: 'Test assistant' }).waitFor()
  await page.getByRole('button', { name: 'Allow' }).click()
  await page.getByRole('heading', { name: 'Connected' }).waitFor()
  expect((await callback.answer).get('code')).not.toBeNull()
  await visitor.close()
  callback.close()
})

test('a drop can neither frame the question nor answer it', async () => {
  const attempt = await newAttempt(stack)
  const fields = Object.entries({ ...attempt.query, organisation: account.org_id, decision: 'allow' })
  const inputs = fields.map(([name, value]) => `<input name="${name}" value="${value.replaceAll('&', '&amp;')}">`)
  const evil = await stack.publish(account, {
    'index.html': `<iframe src="${stack.baseUrl}${consentAddress(attempt).replaceAll('&', '&amp;')}"></iframe>`,
    'forged.html': `<form method="post" action="${stack.baseUrl}/oauth/authorize">${inputs.join('')}</form><script>document.forms[0].submit()</script>`,
  })
  const visitor = await openVisitor(browser, stack)
  const { page } = visitor
  await beSignedIn(visitor, stack, account.email)
  await page.goto(evil.url)
  const frame = await (await page.waitForSelector('iframe')).contentFrame()
  await frame!.waitForLoadState()
  expect(await frame!.content()).not.toContain('decision')

  const answered = page.waitForResponse((response) => response.url() === `${stack.baseUrl}/oauth/authorize`)
  await page.goto(`${evil.url}/forged.html`, { waitUntil: 'commit' })
  expect((await answered).status()).toBe(403)
  await page.getByRole('heading', { name: 'This is not allowed' }).waitFor()
  await visitor.close()
})
