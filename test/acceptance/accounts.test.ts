/** Accounts as people meet them: forms, mails, and what happens at the address of a drop. */
import { beforeAll, describe, expect, test } from 'vitest'
import { apiFor, fileForm } from '../support/api.ts'
import { FormBrowser, formFields } from '../support/form-browser.ts'
import { enrolGenerator } from '../support/second-factor.ts'
import { sharedStack, type Stack } from '../support/stack.ts'
import { mailedLink } from '../support/mailbox.ts'

const PASSWORD = 'correct horse battery'

let stack: Stack
let addresses = 0

beforeAll(async () => {
  stack = await sharedStack()
})

const newBrowser = (): FormBrowser => new FormBrowser(stack, `192.0.2.${++addresses}`)
const newEmail = (): string => `form-${process.pid}-${Date.now()}-${++addresses}@example.test`

async function signUp(browser: FormBrowser, email: string): Promise<void> {
  const answer = await browser.send('/signup', { email, password: PASSWORD })
  expect(answer.status).toBe(303)
}

async function newAccount(): Promise<{ browser: FormBrowser; email: string }> {
  const [browser, email] = [newBrowser(), newEmail()]
  await signUp(browser, email)
  expect((await browser.confirm(await mailedLink(stack, email, '/verify'))).status).toBe(200)
  return { browser, email }
}

test('a browser that blocks cookies hears so, with what was typed', async () => {
  const browser = newBrowser()
  const fields = formFields((await browser.open('/signin')).text(), '/signin')
  browser.cookies.clear()
  const email = newEmail()
  const answer = await browser.post('/signin', new URLSearchParams({ ...fields, email, password: PASSWORD }))
  expect([answer.status, answer.text().includes('it blocks cookies'), answer.text().includes(email)]).toEqual([
    403,
    true,
    true,
  ])
})

function selectedCountry(page: string): string | undefined {
  return /<option value="(\w\w)" selected>/.exec(page)?.[1]
}

/** By the form in the settings, which shows it once. */
async function newToken(browser: FormBrowser): Promise<string> {
  const page = await browser.send('/account/tokens', { name: 'from a form' })
  return /dw_[\w-]{40}/.exec(page.text())![0]
}

describe('signing up', () => {
  test('claims what this browser published; the address waits for the mailbox and then serves it', async () => {
    const [browser, email] = [newBrowser(), newEmail()]
    const published = await browser.open('/api/v1/drops', {
      method: 'POST',
      body: fileForm('page.html', '<h1>mine</h1>'),
    })
    expect(published.status).toBe(201)
    const { id, slug } = published.json()
    expect((await stack.visit(slug)).status).toBe(200)

    await signUp(browser, email)
    const waiting = await stack.visit(slug)
    expect([waiting.status, waiting.header('retry-after')]).toEqual([503, expect.any(String)])
    const listed = await browser.api('/sites')
    expect(listed.json()).toMatchObject([{ slug }])
    expect((await browser.api('/me')).json()).toMatchObject({ error: 'email_not_verified' })

    // Mail scanners and previews open links: that alone changes nothing.
    const link = await mailedLink(stack, email, '/verify')
    for (const method of ['GET', 'HEAD', 'GET'])
      expect((await new FormBrowser(stack, '198.51.100.77').open(link, { method })).status).toBe(200)
    expect((await browser.api('/me')).json()).toMatchObject({ error: 'email_not_verified' })
    expect((await stack.visit(slug)).status).toBe(503)
    const verified = await browser.confirm(link)
    expect(verified.status).toBe(200)
    expect(verified.text()).toContain('Your address is verified')
    expect(verified.text()).not.toContain('/verify/send')
    const live = await stack.visit(slug)
    expect([live.status, live.text().includes('<h1>mine</h1>')]).toEqual([200, true])
    expect((await browser.api('/me')).json()).toMatchObject({ user: { email, email_verified: true }, role: 'owner' })
    // Another browser's sign-up gets nothing of it.
    const stranger = newBrowser()
    await signUp(stranger, newEmail())
    expect((await stranger.api('/sites')).json()).toEqual([])
    expect(id).toBeTypeOf('string')
  })

  test('asks for the country, guesses it from the language, and takes what is chosen', async () => {
    const [browser, email] = [newBrowser(), newEmail()]
    const page = (await browser.open('/signup', { headers: { 'accept-language': 'de-AT,de;q=0.9' } })).text()
    expect(selectedCountry(page)).toBe('AT')
    const refused = await browser.send('/signup', { email, password: 'short', country: 'NZ' })
    expect([refused.status, selectedCountry(refused.text())]).toEqual([400, 'NZ'])

    expect((await browser.send('/signup', { email, password: PASSWORD, country: 'GB' })).status).toBe(303)
    await browser.confirm(await mailedLink(stack, email, '/verify'))
    expect((await browser.api('/billing')).json()).toMatchObject({ currency: 'gbp' })
  })

  test('a visitor who comes by a claim link gets back to it, by any link to sign up or in', async () => {
    const published = await stack.fetch('/api/v1/drops', { body: fileForm('page.html', '<h1>found</h1>') })
    const { claim_url: claimUrl } = published.json()
    const claim = new URL(claimUrl)
    const page = await newBrowser().open(claim.pathname + claim.search)
    const links = [...page.text().matchAll(/href="(\/sign(?:up|in)[^"]*)"/g)].map((match) => match[1])
    expect(links).toHaveLength(4)
    for (const link of links) expect(link).toContain(`?next=${encodeURIComponent(claim.pathname + claim.search)}`)
  })

  test('a claim link says what to do when the plan has no room, and works afterwards', async () => {
    const published = await stack.fetch('/api/v1/drops', { body: fileForm('page.html', '<h1>found</h1>') })
    const { claim_url: claimUrl, id } = published.json()
    const claim = new URL(claimUrl)
    const account = await stack.createAccount('free', { password: PASSWORD })
    const api = apiFor(stack, account)
    const [first] = await Promise.all([1, 2, 3].map(async () => (await api.create()).json()))
    const browser = newBrowser()
    await browser.send('/signin', { email: account.email, password: PASSWORD })

    const refused = await browser.send(claim.pathname + claim.search, {}, '/claim')
    expect(refused.status).toBe(403)
    expect(refused.text()).toContain('Delete one, or upgrade, then use this link again.')
    expect(refused.text()).toContain('Claim it for')

    await api.delete(first.id)
    const answer = await browser.send(claim.pathname + claim.search, {}, '/claim')
    expect([answer.status, answer.header('location')]).toEqual([303, `/sites/${id}?done=claimed`])
  })

  test('a form from elsewhere, or without its token, is refused', async () => {
    const browser = newBrowser()
    const hidden = formFields((await browser.open('/signup')).text(), '/signup')
    const body = (fields: Record<string, string>) =>
      new URLSearchParams({ email: newEmail(), password: PASSWORD, ...fields })
    expect(
      (await browser.post('/signup', body(hidden), { origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' }))
        .status,
    ).toBe(403)
    expect((await browser.post('/signup', body({}))).status).toBe(403)
    expect((await newBrowser().post('/signup', body(hidden))).status).toBe(403)
    expect((await browser.post('/signup', body(hidden))).status).toBe(303)
  })
})

describe('API tokens', () => {
  test('work at once, and not a second longer than they should', async () => {
    const { browser } = await newAccount()
    const token = await newToken(browser)
    expect((await stack.fetch('/api/v1/me', { token })).status).toBe(200)
    expect((await browser.open('/account/tokens')).text()).not.toContain(token)

    const { id } = (await browser.api('/tokens')).json()[0]
    expect((await browser.api(`/tokens/${id}`, { method: 'DELETE' })).status).toBe(204)
    for (let attempt = 0; attempt < 5; attempt++) {
      const refused = await stack.fetch('/api/v1/me', { token })
      expect([refused.status, refused.json()]).toMatchObject([401, { error: 'unauthorized' }])
    }
  })
})

describe('sessions', () => {
  test('a password from a reset link ends the sessions of other browsers and the API tokens, and says so', async () => {
    const { browser, email } = await newAccount()
    const token = await newToken(browser)
    expect((await stack.fetch('/api/v1/me', { token })).status).toBe(200)
    const other = newBrowser()
    expect((await other.send('/signin', { email, password: PASSWORD })).status).toBe(303)
    expect((await other.api('/me')).status).toBe(200)

    await other.send('/reset', { email })
    const link = await mailedLink(stack, email, '/reset')
    const page = (await browser.open(link)).text()
    expect(page).toContain('Every session, API token and connected app of your account ends')
    const fields = formFields(page, '/reset/password')
    const changed = await browser.post(
      '/reset/password',
      new URLSearchParams({ ...fields, password: 'another long password' }),
    )
    expect(changed.status).toBe(303)
    expect((await browser.open(changed.header('location')!)).text()).toContain(
      'All sessions, API tokens and connected apps have ended',
    )
    expect((await stack.fetch('/api/v1/me', { token })).status).toBe(401)
    expect((await other.api('/me')).status).toBe(401)
    expect((await browser.api('/me')).status).toBe(200)
    expect((await other.send('/signin', { email, password: PASSWORD })).status).toBe(401)
  })

  test('sign-in and reset say the same about an address that no one has', async () => {
    const { email } = await newAccount()
    const browser = newBrowser()
    const wordsOf = async (page: string, address: string, fields: Record<string, string>) => {
      const answer = await browser.send(page, { email: address, ...fields })
      return [
        answer.status,
        answer
          .text()
          .replaceAll(address, '')
          .replace(/(name="csrf" value|nonce)="[^"]*"/g, ''),
      ]
    }
    const unknown = newEmail()
    expect(await wordsOf('/signin', email, { password: 'wrong password' })).toEqual(
      await wordsOf('/signin', unknown, { password: 'wrong password' }),
    )
    expect(await wordsOf('/reset', email, {})).toEqual(await wordsOf('/reset', unknown, {}))
  })
})

test('deleting the account takes its drops along: gone, at once', async () => {
  const { browser, email } = await newAccount()
  const token = await newToken(browser)
  const { slug } = await stack.publish({ token }, '<h1>short-lived</h1>')
  expect((await stack.visit(slug)).status).toBe(200)
  const deleted = await browser.send('/account/data', { password: PASSWORD, confirm: email }, '/account/delete')
  expect([200, 303]).toContain(deleted.status)
  const gone = await stack.visit(slug)
  expect([gone.status, gone.text()]).toEqual([410, expect.stringMatching(/gone/i)])
  expect((await stack.fetch('/api/v1/me', { token })).status).toBe(401)
  expect((await browser.api('/me')).status).toBe(401)
})

test('a member without the second factor that an organisation asks for leaves it at the dashboard', async () => {
  const [owner, member] = [await newAccount(), await newAccount()]
  const call = async (method: string, at: string, body: object) => {
    const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }
    const answer = await owner.browser.api(at, { method, headers, body: JSON.stringify(body) })
    expect([at, answer.status < 300]).toEqual([at, true])
    return answer.json()
  }
  const { id } = await call('POST', '/organisations', { name: 'Careful' })
  await call('POST', `/organisations/${id}/invitations`, { email: member.email })
  await member.browser.confirm(await mailedLink(stack, member.email, '/invitation'))
  const [code] = await enrolGenerator(owner.browser)
  await owner.browser.send('/account/prove', { code: code! })
  await call('PATCH', `/organisations/${id}`, { require_second_factor: true })

  const leave = `/account/organisation/leave?org=${id}`
  const idsOf = async () => (await member.browser.api('/organisations')).json().map((each: { id: string }) => each.id)
  expect(await idsOf()).toContain(id)
  expect((await member.browser.open('/account/organisation')).text()).toContain(leave)
  expect((await member.browser.open(leave)).text()).toContain('Leave Careful?')
  expect((await member.browser.send(leave, {}, '/account/organisation/leave')).status).toBe(303)
  expect(await idsOf()).not.toContain(id)
})
