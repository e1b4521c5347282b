/** Passkeys in Chromium's virtual authenticator, and codes without JavaScript. */
import type { Browser, CDPSession, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nextAddress } from '../support/addresses.ts'
import { launchBrowser } from '../support/browser.ts'
import { beSignedIn, openVisitor, PASSWORD, type Visitor } from '../support/dashboard-visitor.ts'
import { FormBrowser, formFields } from '../support/form-browser.ts'
import { mailedLink } from '../support/mailbox.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
})
afterAll(() => browser.close())

interface Device {
  readonly visitor: Visitor
  readonly page: Page
  readonly session: CDPSession
  readonly authenticatorId: string
}

/** A browser with a key of its own, which says yes by itself. */
async function openDevice(): Promise<Device> {
  const visitor = await openVisitor(browser, stack)
  const session = await visitor.context.newCDPSession(visitor.page)
  await session.send('WebAuthn.enable')
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return { visitor, page: visitor.page, session, authenticatorId }
}

async function addPasskey({ visitor, page }: Device, name: string): Promise<void> {
  await visitor.goto('/account/ways-in')
  await page.locator('#passkey-name').fill(name)
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  await page.getByText('The passkey is added.').waitFor()
}

async function signOut({ visitor, page }: Device): Promise<void> {
  await visitor.goto('/signout')
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await page.waitForURL((url) => url.pathname === '/')
}

async function tryPasskey({ visitor, page }: Device): Promise<void> {
  await visitor.goto('/signin')
  await page.getByRole('button', { name: 'Use a passkey' }).click()
}

test('added, used without e-mail and password, on a second device, copied, removed', async () => {
  const { email } = await stack.createAccount('free', { password: PASSWORD })
  const laptop = await openDevice()
  await beSignedIn(laptop.visitor, stack, email)
  await addPasskey(laptop, 'Laptop')
  await signOut(laptop)
  await tryPasskey(laptop)
  await laptop.page.waitForURL(/\/sites/)

  const phone = await openDevice()
  await beSignedIn(phone.visitor, stack, email)
  await addPasskey(phone, 'Phone')
  await signOut(phone)
  await tryPasskey(phone)
  await phone.page.waitForURL(/\/sites/)
  await signOut(phone)

  // A copy of the key counts on from where it was copied.
  const { authenticatorId, session } = phone
  const { credentials } = await session.send('WebAuthn.getCredentials', { authenticatorId })
  const [credential] = credentials
  await session.send('WebAuthn.removeCredential', { authenticatorId, credentialId: credential!.credentialId })
  await session.send('WebAuthn.addCredential', { authenticatorId, credential: { ...credential!, signCount: 0 } })
  await tryPasskey(phone)
  await phone.page.getByText('This passkey opens no account here.').waitFor()

  await laptop.visitor.goto('/account/ways-in')
  await laptop.page.getByRole('button', { name: 'Remove Laptop' }).click()
  await laptop.page.getByText('Revoked.').waitFor()
  await signOut(laptop)
  await tryPasskey(laptop)
  await laptop.page.getByText('This passkey opens no account here.').waitFor()
  await Promise.all([laptop.visitor.close(), phone.visitor.close()])
})

test('what was typed before the session ended comes back after a passkey', async () => {
  const { email, token } = await stack.createAccount('free', { password: PASSWORD })
  const site = await stack.publish({ token }, '<p>x')
  const device = await openDevice()
  const { visitor, page } = device
  await beSignedIn(visitor, stack, email)
  await addPasskey(device, 'A key')
  await visitor.goto(`/sites/${site.id}/settings`)
  await page.getByLabel('Name', { exact: true }).fill('Typed before it ended')
  await visitor.context.clearCookies()
  await page.getByRole('button', { name: 'Save General' }).click()
  await page.getByText('Your session has ended').waitFor()
  expect(await page.getByRole('link', { name: 'Forgot your password?' }).getAttribute('target')).toBe('_blank')
  await page.getByRole('button', { name: 'Use a passkey' }).click()
  await page.getByText('made before you signed in here').waitFor()
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Typed before it ended')
  await page.getByRole('button', { name: 'Save General' }).click()
  await page.getByText('Saved.').waitFor()
  await visitor.close()
})

test('shown where an organisation asks for a second factor', async () => {
  const { email } = await stack.createAccount('business', { password: PASSWORD })
  const device = await openDevice()
  const { visitor, page } = device
  await beSignedIn(visitor, stack, email)
  await addPasskey(device, 'Laptop')
  await visitor.goto('/account/organisation')
  await page.locator('#create').fill('Careful')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('button', { name: 'Switch to Careful' }).click()
  await page.getByRole('heading', { name: 'Second factor' }).waitFor()
  const ask = async (): Promise<void> => {
    await page.getByLabel('Members need a second factor').check()
    await page.getByRole('heading', { name: 'Second factor' }).locator('..').getByRole('button').click()
  }
  await ask()
  await page.getByRole('heading', { name: 'Prove that it is you' }).waitFor()
  await page.getByRole('button', { name: 'Use a passkey' }).click()
  await page.waitForURL(/\/account\/organisation/)
  await ask()
  await page.waitForURL(/done=/)
  expect(await page.getByLabel('Members need a second factor').isChecked()).toBe(true)

  // Whoever knows the password alone acts for the person's own organisation, and not for this one.
  const elsewhere = new FormBrowser(stack, nextAddress())
  await elsewhere.send('/signin', { email, password: PASSWORD })
  expect((await elsewhere.open('/account/organisation')).text()).not.toContain('Members need a second factor')
  await visitor.close()
})

test('all are lost: they go after a day of mails, unless the mailbox, the page or a passkey stops it', async () => {
  const { email } = await stack.createAccount('free', { password: PASSWORD })
  const device = await openDevice()
  await beSignedIn(device.visitor, stack, email)
  await addPasskey(device, 'Key')
  const elsewhere = new FormBrowser(stack, nextAddress())
  await elsewhere.send('/signin', { email, password: PASSWORD })
  const ask = () => elsewhere.send('/account/prove', {}, '/account/prove/lost')
  const isUnderWay = async (): Promise<boolean> =>
    (await elsewhere.open('/account/ways-in')).text().includes('Keep my second factor')
  const begun = await ask()
  expect(begun.status).toBe(200)
  expect(begun.text()).toContain('Your passkeys go in a day')
  expect(await isUnderWay()).toBe(true)
  await new FormBrowser(stack, nextAddress()).confirm(await mailedLink(stack, email, '/recovery/stop'))
  expect(await isUnderWay()).toBe(false)

  await ask()
  const kept = await elsewhere.send('/account/ways-in', {}, '/account/ways-in/recovery/stop')
  expect(kept.header('location')).toBe('/account/ways-in?done=factor-kept')
  expect(await isUnderWay()).toBe(false)

  await ask()
  expect(await isUnderWay()).toBe(true)
  await signOut(device)
  await tryPasskey(device)
  await device.page.waitForURL(/\/sites/)
  expect(await isUnderWay()).toBe(false)
  await device.visitor.close()
})

test('an answer that another origin got, or that was given before, opens nothing', async () => {
  const account = await stack.createAccount('free', { password: PASSWORD })
  const device = await openDevice()
  await beSignedIn(device.visitor, stack, account.email)
  await addPasskey(device, 'Key')
  const options = () => stack.fetch('/api/v1/signin/passkey/options', { json: {} })
  const answerTo = async (asked: unknown): Promise<unknown> =>
    device.page.evaluate(async (json) => {
      const publicKey = (
        PublicKeyCredential as unknown as {
          parseRequestOptionsFromJSON(options: unknown): PublicKeyCredentialRequestOptions
        }
      ).parseRequestOptionsFromJSON(json)
      return JSON.parse(JSON.stringify(await navigator.credentials.get({ publicKey }))) as unknown
    }, asked)
  const signIn = async (credential: unknown): Promise<number> =>
    (await stack.fetch('/api/v1/signin/passkey', { json: { credential }, from: nextAddress() })).status

  const own = (await answerTo((await options()).json())) as { response: { clientDataJSON: string } }
  const said = JSON.parse(Buffer.from(own.response.clientDataJSON, 'base64url').toString()) as { origin: string }
  const elsewhere = Buffer.from(JSON.stringify({ ...said, origin: 'https://evil.example' })).toString('base64url')
  expect(await signIn({ ...own, response: { ...own.response, clientDataJSON: elsewhere } })).toBe(401)
  // What was asked is asked no more, whoever answered it.
  expect(await signIn(own)).toBe(401)
  const fresh = await answerTo((await options()).json())
  expect(await signIn(fresh)).toBe(200)
  expect(await signIn(fresh)).toBe(401)

  const api = (method: string, id = ''): Promise<{ status: number; text: string }> =>
    device.page.evaluate(
      async ([verb, path]) => {
        const reply = await fetch(path!, { method: verb! })
        return { status: reply.status, text: await reply.text() }
      },
      [method, `/api/v1/passkeys${id}`],
    )
  const [listed] = JSON.parse((await api('GET')).text) as { id: string; name: string }[]
  expect(listed).toMatchObject({ name: 'Key' })
  expect((await api('DELETE', '/unknown')).status).toBe(404)
  expect((await api('DELETE', `/${listed!.id}`)).status).toBe(204)
  expect(await signIn(await answerTo((await options()).json()))).toBe(401)
  await device.visitor.close()
})

test('a second factor is turned on, asked for and turned off without JavaScript', async () => {
  const account = await stack.createAccount('free', { password: PASSWORD })
  const person = new FormBrowser(stack, nextAddress())
  await person.send('/signin', { email: account.email, password: PASSWORD })
  const begun = (await person.send('/account/totp', {}, '/account/totp/begin')).text()
  expect(begun).toMatch(/otpauth:\/\/totp\/[^"]*secret=[A-Z2-7]{32}/)
  expect(begun).toContain('class="qr"')
  const secret = /id="totp-secret">([A-Z2-7]{32})</.exec(begun)![1]!
  const code = async (): Promise<string> => {
    const { codeAt, codeStepAt } = await import('../../control/people/factors/totp.ts')
    const bits = [...secret].map((letter) =>
      'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0'),
    )
    return codeAt(
      Buffer.from(
        bits
          .join('')
          .match(/.{8}/g)!
          .map((byte) => parseInt(byte, 2)),
      ),
      codeStepAt(Date.now()),
    )
  }
  const refused = await person.send('/account/totp', { code: '000000' })
  expect(refused.status).toBe(401)
  expect(refused.text()).toContain(secret)
  const on = await person.send('/account/totp', { code: await code() })
  expect(on.status).toBe(201)
  const recovery = [...on.text().matchAll(/<li>([a-z2-7]{5}-[a-z2-7]{5})<\/li>/g)].map(([, text]) => text!)
  expect(recovery.length).toBeGreaterThanOrEqual(8)

  const elsewhere = new FormBrowser(stack, nextAddress())
  const asked = await elsewhere.send('/signin', { email: account.email, password: PASSWORD })
  expect(asked.text()).toContain('name="code"')
  const pending = /name="pending" value="([^"]+)"/.exec(asked.text())![1]!
  const page = `/signin/code?pending=${encodeURIComponent(pending)}`
  expect((await elsewhere.send(page, { code: '000000' }, '/signin/code')).status).toBe(401)
  expect((await elsewhere.send(page, { code: recovery[0]! }, '/signin/code')).status).toBe(303)
  expect((await elsewhere.open('/sites')).status).toBe(200)

  // What was typed before a session ended comes along through the code, a wrong one too.
  const site = await stack.publish(account, '<p>x')
  const settings = `/sites/${site.id}/settings/general`
  const writer = new FormBrowser(stack, nextAddress())
  let step = await writer.post(settings, new URLSearchParams({ name: 'Typed before it ended', slug: site.slug }))
  for (const [action, fields] of [
    ['/signin', { email: account.email, password: PASSWORD }],
    ['/signin/code', { code: '000000' }],
    ['/signin/code', { code: recovery[2]! }],
  ] as const)
    step = await writer.post(action, new URLSearchParams({ ...formFields(step.text(), action), ...fields }))
  expect([step.status, formFields(step.text(), settings)]).toMatchObject([200, {}])
  expect(step.text()).toContain('value="Typed before it ended"')

  // The first session is from before: it proves itself before it goes further.
  const stopped = await person.send('/account/ways-in', {}, '/account/totp/remove')
  expect(stopped.header('location')).toBe('/account/prove?next=%2Faccount%2Fways-in')
  const proved = await person.send(stopped.header('location')!, { code: recovery[1]! }, '/account/prove')
  expect(proved.header('location')).toBe('/account/ways-in')
  expect((await person.send('/account/ways-in', {}, '/account/totp/remove')).header('location')).toContain('factor-off')
  const again = await new FormBrowser(stack, nextAddress()).send('/signin', {
    email: account.email,
    password: PASSWORD,
  })
  expect(again.status).toBe(303)
})
