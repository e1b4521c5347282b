/** The page that asks a person about a client: who sees it, what it shows, and decisions that no one can forge. */
import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { nextAddress } from '../support/addresses.ts'
import { FormBrowser, formFields } from '../support/form-browser.ts'
import { mailedLink } from '../support/mailbox.ts'
import {
  attemptOf,
  callMcp,
  consentAddress,
  decide,
  newAttempt,
  obtainTokens,
  PASSWORD,
  registerClient,
  signedInPerson,
  type Person,
} from '../support/oauth-client.ts'
import { enrolGenerator } from '../support/second-factor.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
let person: Person
let stranger: Person

beforeAll(async () => {
  stack = await sharedStack()
  ;[person, stranger] = await Promise.all([signedInPerson(stack), signedInPerson(stack)])
})

describe('consent', () => {
  test('signing in comes first, and leads back to the question', async () => {
    const browser = new FormBrowser(stack, nextAddress())
    const address = consentAddress(await newAttempt(stack))
    const first = await browser.open(address)
    expect(first.status).toBe(303)
    const fields = { email: person.account.email, password: PASSWORD }
    const signedIn = await browser.send(first.header('location')!, fields, '/signin')
    expect(signedIn.header('location')).toBe(address)
  })

  test('shows who asks, where it leads, for whom and for what, and cannot be framed', async () => {
    const registered = await registerClient(stack, { client_name: '<b>Editor</b>' })
    const page = await person.browser.open(consentAddress(attemptOf(stack, registered.json().client_id)))
    expect(page.status).toBe(200)
    const text = page.text()
    for (const shown of ['&lt;b&gt;Editor', 'client.example', person.account.email, '<code>mcp</code>', 'Organisation'])
      expect(text).toContain(shown)
    expect(page.header('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(page.header('x-frame-options')).toBe('DENY')
    expect(page.header('cache-control')).toBe('no-store')
  })

  test('an address that is not verified yet cannot allow anything', async () => {
    const browser = new FormBrowser(stack, nextAddress())
    const email = `new-${randomBytes(5).toString('hex')}@example.test`
    await browser.send('/signup', { email, password: PASSWORD })
    const answer = await browser.open(consentAddress(await newAttempt(stack)))
    expect(answer.status).toBe(403)
    expect(answer.text()).not.toContain('decision')
  })

  test('denied: the client hears access_denied and gets no code', async () => {
    const location = await decide(person, await newAttempt(stack), 'deny')
    expect(Object.fromEntries(location.searchParams)).toMatchObject({
      error: 'access_denied',
      state: 'the state & more',
      iss: stack.baseUrl,
    })
    expect(location.searchParams.has('code')).toBe(false)
  })

  const UNSAID = { origin: '', 'sec-fetch-site': '' }
  test.each<[string, (fields: Record<string, string>) => Record<string, string>, Record<string, string>]>([
    ['without the token of the form', (fields) => ({ ...fields, csrf: '' }), UNSAID],
    ['with a token of its own', (fields) => ({ ...fields, csrf: 'x'.repeat(43) }), UNSAID],
    ['from another origin', (fields) => fields, { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
    ['from a drop next door', (fields) => fields, { origin: 'https://evil.localhost', 'sec-fetch-site': 'same-site' }],
  ])('a forged decision %s is refused', async (_, forge, headers) => {
    const attempt = await newAttempt(stack)
    const page = await person.browser.open(consentAddress(attempt))
    const fields = forge(formFields(page.text(), '/oauth/authorize'))
    const body = new URLSearchParams({ ...fields, decision: 'allow' })
    const answer = await person.browser.post('/oauth/authorize', body, headers)
    expect(answer.status).toBe(403)
    expect(answer.header('location')).toBeUndefined()
  })

  test.each<[string, (fields: Record<string, string>) => Record<string, string>]>([
    ['without a token', (fields) => ({ ...fields, csrf: '' })],
    ['with another token', (fields) => ({ ...fields, csrf: 'x'.repeat(43) })],
  ])('a decision on our own page %s lets no one in: the question is asked again', async (_, forge) => {
    const page = await person.browser.open(consentAddress(await newAttempt(stack)))
    await expectAskedAgain(forge(formFields(page.text(), '/oauth/authorize')))
  })

  test('the token of one person’s form is worth nothing in the session of another', async () => {
    const page = await stranger.browser.open(consentAddress(await newAttempt(stack)))
    await expectAskedAgain(formFields(page.text(), '/oauth/authorize'))
  })

  async function expectAskedAgain(fields: Record<string, string>): Promise<void> {
    const answer = await person.browser.post('/oauth/authorize', new URLSearchParams({ ...fields, decision: 'allow' }))
    const location = new URL(answer.header('location')!, stack.baseUrl)
    expect([answer.status, location.origin, location.pathname]).toEqual([303, stack.baseUrl, '/oauth/authorize'])
    expect(location.searchParams.has('code')).toBe(false)
    expect((await person.browser.open(`${location.pathname}${location.search}`)).text()).toContain('name="decision"')
  }

  test('when another organisation was chosen since, the question is asked again', async () => {
    const attempt = await newAttempt(stack)
    const page = await person.browser.open(consentAddress(attempt))
    const fields = formFields(page.text(), '/oauth/authorize')
    const body = new URLSearchParams({ ...fields, organisation: stranger.account.org_id, decision: 'allow' })
    const answer = await person.browser.post('/oauth/authorize', body)
    expect(answer.header('location')).toMatch(/^\/oauth\/authorize\?/)
    const changed = await person.browser.post(
      '/oauth/authorize',
      new URLSearchParams({ ...fields, redirect_uri: 'https://evil.example/', decision: 'allow' }),
    )
    expect([changed.status, changed.header('location')]).toEqual([400, undefined])
  })
})

describe('a person with a second factor', () => {
  let careful: Person
  let recoveryCodes: string[]
  beforeAll(async () => {
    careful = await signedInPerson(stack)
    recoveryCodes = await enrolGenerator(careful.browser)
  })

  /** Where the answer leads: the proof, which leads on to `next`. */
  async function prove(location: string | undefined, next: RegExp): Promise<string> {
    expect(location).toMatch(/^\/account\/prove\?next=/)
    const proved = await careful.browser.send(location!, { code: recoveryCodes.pop()! }, '/account/prove')
    expect(proved.header('location')).toMatch(next)
    return proved.header('location')!
  }

  test('shows it before an app gets everything, and the question goes on after that', async () => {
    const attempt = await newAttempt(stack)
    const page = await careful.browser.open(consentAddress(attempt))
    const answer = (decision: string, fields: Record<string, string>) =>
      careful.browser.post('/oauth/authorize', new URLSearchParams({ ...fields, decision }))
    const first = await answer('allow', formFields(page.text(), '/oauth/authorize'))
    const back = await prove(first.header('location'), /^\/oauth\/authorize\?/)
    const again = await careful.browser.open(back)
    const allowed = await answer('allow', formFields(again.text(), '/oauth/authorize'))
    expect(new URL(allowed.header('location')!).searchParams.get('code')).toBeTruthy()
  })
})

describe('consent cannot be spoofed', () => {
  test.each<[string, string, string[], string[]]>([
    ['a site', 'https://claude.ai/cb?x=1', ['the site <strong>claude.ai</strong>', 'https://claude.ai/cb?x=1'], []],
    [
      'a scheme of its own before a familiar name',
      'evilapp://claude.ai/cb',
      ['answers to <strong>evilapp:</strong> (not a site)', '<code class="whole">evilapp://claude.ai/cb</code>'],
      ['the site <strong>'],
    ],
    ['a name as path', 'com.evil:/claude.ai', ['<strong>com.evil:</strong> (not a site)', 'com.evil:/claude.ai'], []],
    ['a name as subdomain', 'https://claude.ai.evil.example/cb', ['<strong>claude.ai.evil.example</strong>'], []],
    ['a name as port of loopback', 'http://localhost:1234/claude.ai', ['a program on your own computer'], []],
    ['a name in the query', 'https://evil.example/?https://claude.ai/', ['the site <strong>evil.example</strong>'], []],
    ['letters that look alike', 'https://xn--cla-fka7a.example/', ['<strong>xn--cla-fka7a.example</strong>'], []],
    [
      'a very long address',
      `https://evil.example/${'a'.repeat(400)}?claude.ai`,
      [`${'a'.repeat(400)}?claude.ai</code>`, 'the site <strong>evil.example</strong>'],
      [],
    ],
  ])('%s', async (_, redirect, shown, hidden) => {
    const clientId = (await registerClient(stack, { client_name: 'Claude', redirect_uris: [redirect] })).json()
      .client_id
    const text = (
      await person.browser.open(consentAddress(attemptOf(stack, clientId, { redirect_uri: redirect })))
    ).text()
    for (const part of shown) expect(text).toContain(part)
    for (const part of hidden) expect(text).not.toContain(part)
    expect(text).toContain('It named itself; we do not know who made it.')
    expect(text).not.toContain('verified)')
  })

  test('a name cannot carry markup, line breaks or text that turns around', async () => {
    const client_name = 'Claude\u202E (verified)\n<dt>Made by</dt><dd>claude.ai</dd>'
    const clientId = (await registerClient(stack, { client_name })).json().client_id
    const text = (await person.browser.open(consentAddress(attemptOf(stack, clientId)))).text()
    expect(text).toContain('<dt>Made by</dt><dd>unknown</dd>')
    expect(text).not.toMatch(/\u202E|<dd>claude/)
  })
})

describe('signing up in the middle', () => {
  test('comes back to the question: at once after the mail, in the waiting tab and behind its link', async () => {
    const browser = new FormBrowser(stack, nextAddress())
    const attempt = await newAttempt(stack)
    const address = consentAddress(attempt)
    const toSignIn = (await browser.open(address)).header('location')!
    const signUp = /href="(\/signup\?next=[^"]+)"/.exec((await browser.open(toSignIn)).text())![1]!
    const email = `new-${randomBytes(5).toString('hex')}@example.test`
    const signedUp = await browser.send(signUp.replaceAll('&amp;', '&'), { email, password: PASSWORD }, '/signup')
    expect(signedUp.header('location')).toBe(address)
    const waiting = await browser.open(address)
    expect([waiting.status, waiting.header('refresh')]).toEqual([403, '4'])
    expect(waiting.text()).toContain(email)

    // A tab of the same browser opens the mail; another browser knows nothing of what waits.
    const link = await mailedLink(stack, email, '/verify')
    const verified = (await browser.confirm(link)).text()
    expect(verified).toContain(`href="${address.replaceAll('&', '&amp;')}"`)
    const elsewhere = await new FormBrowser(stack, nextAddress()).open(link)
    expect(elsewhere.text()).not.toContain('/oauth/authorize')
    expect((await browser.open(address)).text()).toContain('value="allow"')
    const { access_token } = await obtainTokens(stack, { ...person, browser }, attempt)
    expect((await callMcp(stack, access_token)).status).toBe(200)
  })
})
