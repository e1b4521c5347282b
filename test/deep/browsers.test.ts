/**
 * What people do, in the engines of the other browsers: Firefox, and WebKit, which is Safari's. Everything else is tested
 * in Chromium; here stands what engines do differently: files, cookies, frames, streams, focus, layout and policies.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { apiFor, fileForm } from '../support/api.ts'
import { PASSWORD } from '../support/dashboard-visitor.ts'
import { connectWithToken } from '../support/mcp-client.ts'
import { sharedStack, type Account, type Published, type Stack } from '../support/stack.ts'
import { viewerMail } from '../support/viewer-mail.ts'
import type { DriverOptions } from '../support/webdriver/driver.ts'
import { ENGINES, KEYS, openPerson, type Engine, type Person } from '../support/webdriver/visitor.ts'

let stack: Stack
let owner: Account
let folder: string
const opened: Person[] = []

beforeAll(async () => {
  stack = await sharedStack()
  owner = await stack.createAccount('business', { password: PASSWORD, staff: true })
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-browsers-'))
})
afterEach(async () => {
  for (const person of opened.splice(0)) await person.close()
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function lay(name: string, content: string): Promise<string> {
  const file = path.join(folder, name)
  await writeFile(file, content)
  return file
}

/** Drops what a field of the test's own holds, at a place without a drop zone, as a desktop would. */
const DROP = `const data = new DataTransfer()
  for (const file of document.querySelector('#given').files) data.items.add(file)
  for (const type of ['dragenter', 'dragover', 'drop'])
    document.body.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data }))`
const ADD_FIELD = `document.body.insertAdjacentHTML('beforeend', '<input type="file" id="given">')`

const PASTE = `const data = new DataTransfer()
  data.setData('text/plain', arguments[0])
  const box = document.querySelector('textarea')
  box.focus()
  const isLeft = box.dispatchEvent(new ClipboardEvent('paste', { bubbles: true, cancelable: true, clipboardData: data }))
  if (isLeft) document.execCommand('insertText', false, arguments[0])`

const SELECT = `const text = document.querySelector('#price').firstChild
  const start = text.data.indexOf('from')
  const range = document.createRange()
  range.setStart(text, start)
  range.setEnd(text, start + 'from 10 euros'.length)
  document.getSelection().removeAllRanges()
  document.getSelection().addRange(range)
  document.dispatchEvent(new MouseEvent('mouseup', { bubbles: true }))`

/** Only what never comes meets it. */
const PATIENCE = { timeout: 45_000 }

const TICKETS = (price: string): string =>
  `<!doctype html><html lang="en"><title>Tickets</title><h1>Tickets</h1><p id="price">A ticket costs ${price} a person.</p>`

async function sharedWith(email: string): Promise<Published> {
  const api = apiFor(stack, owner)
  const drop = (await api.create()).json<Published>()
  const fields = { access_mode: 'viewers', viewers: email }
  await api.upload(drop.id, fileForm('index.html', '<title>x</title><h1>inside</h1>', fields))
  return drop
}

describe.each(Object.keys(ENGINES) as Engine[])('%s', { timeout: 600_000 }, (engine) => {
  async function open(options: Partial<DriverOptions> = {}): Promise<Person> {
    const person = await openPerson(engine, stack, options)
    opened.push(person)
    return person
  }

  async function openOwner(options: Partial<DriverOptions> = {}): Promise<Person> {
    const person = await open(options)
    await person.beSignedIn(owner.email, PASSWORD)
    return person
  }

  const liveSlug = async (person: Person): Promise<string> => {
    const href = (await person.script(`return document.querySelector('.live-link').href`)) as string
    return new URL(href).hostname.split('.')[0]!
  }

  test('a page is published by a drag, and its result survives', async () => {
    const person = await open()
    await person.goto('/')
    await person.script(ADD_FIELD)
    await person.give(await lay('note.md', '# One drag'), '#given')
    await person.script(DROP)
    await person.see('Your page is live')
    expect((await stack.visit(await liveSlug(person))).text()).toContain('One drag')
    expect(await person.tooWide()).toEqual([])
    expect(await person.problems()).toEqual([])
  })

  test('a chosen file and a pasted text are published', async () => {
    const person = await openOwner()
    await person.goto('/sites/new')
    await person.give(await lay('chosen.html', '<title>Chosen</title><h1>Chosen</h1>'))
    await person.see('Version 1 is live')
    expect((await stack.visit(await liveSlug(person))).text()).toContain('<h1>Chosen</h1>')
    await person.goto('/sites/new')
    await person.script(PASTE, '# Pasted\n\ntext')
    await person.see('Looks like Markdown')
    await person.inFrame('[data-preview] iframe', () => person.see('Pasted'))
    await person.press('Publish')
    await person.see('Version 1 is live')
    expect((await stack.visit(await liveSlug(person))).text()).toContain('id="pasted"')
    expect(await person.problems()).toEqual([])
  })

  test('a file that is gone when it is read is named, and nothing is published', async () => {
    const person = await openOwner()
    const before = (await stack.fetch('/api/v1/sites', { token: owner.token })).text()
    await person.goto('/sites')
    await person.script(ADD_FIELD)
    const file = await lay('moved.html', '<p>moved')
    await person.give(file, '#given')
    await rm(file)
    await person.script(DROP)
    await person.see('moved.html cannot be read')
    expect((await stack.fetch('/api/v1/sites', { token: owner.token })).text()).toBe(before)
  })

  test('what was typed outlives a session that has ended: text, message and format', async () => {
    const site = await stack.publish(owner, '<title>Before</title><p>before')
    const person = await openOwner()
    await person.goto(`/sites/${site.id}?edit`)
    await person.fill('HTML or Markdown', '# A second evening\n\nof work')
    await person.fill('Message', 'What the evening brought')
    await person.choose('Publish the text as', 'Markdown')
    await person.forgetCookies()
    await person.press('Publish')
    await person.see('Your session has ended')
    await person.press('Sign in')
    await person.fill('E-mail', owner.email)
    await person.fill('Password', PASSWORD)
    await person.press('Sign in')
    await person.see('You are signed in again')
    expect((await person.valueOf('HTML or Markdown')).replaceAll('\r\n', '\n')).toBe('# A second evening\n\nof work')
    expect(await person.valueOf('Message')).toBe('What the evening brought')
    expect(await person.valueOf('Publish the text as')).toBe('markdown')
    await person.press('Publish')
    await person.see('Version 2 is live')
    expect(await person.problems()).toEqual([])
  })

  test('who blocks cookies is told so', async () => {
    const person = await open({ cookies: false })
    await person.goto('/signin')
    await person.fill('E-mail', owner.email)
    await person.fill('Password', PASSWORD)
    await person.press('Sign in')
    await person.see('blocks cookies')
  })

  test('an invitation is read after one key, at 360 pixels', async () => {
    const email = `${engine.toLowerCase()}-invited-${process.pid}@example.com`
    await sharedWith(email)
    const { link = '' } = await viewerMail(stack, email)
    // Without scripts WebKit's driver cannot look at pages either.
    const person = await open({ width: 360, javaScript: engine !== 'Firefox' })
    await person.goto(link)
    await person.type(KEYS.enter)
    await person.see('inside')
  })

  test('an address, a code, the page: by keyboard, at 360 pixels', async () => {
    const email = `${engine.toLowerCase()}-coded-${process.pid}@example.com`
    const drop = await sharedWith(email)
    await viewerMail(stack, email)
    const person = await open({ width: 360, javaScript: engine !== 'Firefox' })
    await person.goto(drop.url)
    await person.type(email)
    await person.type(KEYS.enter)
    await person.see('Code of six digits')
    expect(await person.tooWide()).toEqual([])
    const { code = '' } = await viewerMail(stack, email, 2)
    await person.type(code)
    await person.type(KEYS.enter)
    await person.see('inside')
  })

  test('a guest points at words, an assistant mends them, and the open tabs of two people show both', async () => {
    const slug = `${engine.toLowerCase()}-review-${process.pid}`
    const api = apiFor(stack, owner)
    const { id } = (await api.create({ slug })).json<{ id: string }>()
    await api.upload(id, fileForm('page.html', TICKETS('from 10 euros'), { access_mode: 'viewers' }))
    const made = await stack.fetch(`/api/v1/sites/${id}/guest-links`, { token: owner.token, json: { role: 'comment' } })
    const comeIn = async (name: string): Promise<Person> => {
      const person = await open()
      await person.goto(made.json<{ url: string }>().url)
      await person.fill('Your name', name)
      await person.press('Go to the page')
      return person
    }
    const guest = await comeIn('Ada')
    await guest.inFrame('.review-frame', async () => {
      await guest.see('A ticket costs')
      await guest.script(SELECT)
    })
    await expect
      .poll(() => guest.script(`return document.querySelector('[data-quoted]').textContent`), PATIENCE)
      .toBe('from 10 euros')
    await guest.fill('What should be different?', 'This price is old.')
    await guest.press('Comment')
    await guest.see('This price is old.')
    await guest.keepScreenshot(`${engine}-review`)
    const other = await comeIn('Grace')
    await other.see('This price is old.')

    const client = await connectWithToken(stack, owner.token, 'modern')
    const listed = await client.callTool({ name: 'service_threads', arguments: { id: slug } })
    const { threads } = listed.structuredContent as { threads: { thread: string; quote: string }[] }
    expect(threads).toMatchObject([{ quote: 'from 10 euros' }])
    const mended = { slug, content: TICKETS('from 12 euros'), format: 'html', resolves: [threads[0]!.thread] }
    const published = await client.callTool({ name: 'service_publish', arguments: mended })
    expect(published.isError, JSON.stringify(published.content)).toBeFalsy()
    await client.close()

    for (const person of [guest, other]) {
      await expect
        .poll(() => person.inFrame('.review-frame', () => person.script('return document.body.textContent')), PATIENCE)
        .toContain('from 12 euros')
      await person.miss('This price is old.')
      await person.follow('Resolved')
      await person.see('resolved in version 2')
      expect(await person.problems()).toEqual([])
    }
  })

  test('a password opens a drop, also when the page has to calculate first', async () => {
    const api = apiFor(stack, owner)
    const drop = (await api.create()).json<Published>()
    await api.upload(drop.id, fileForm('index.html', '<h1>inside</h1>'))
    await api.patch(drop.id, { password: 'open sesame' })
    const person = await open()
    await person.goto(drop.url)
    await person.fill('Password', 'open sesame')
    await person.press('Open')
    await person.see('inside')
    // Both workers must have heard of them, and the browser may come by either address of this machine.
    for (let guess = 0; guess < 40; guess++)
      await stack.visit(drop.slug, '/.dropway/unlock', {
        method: 'POST',
        from: guess % 2 === 0 ? '127.0.0.1' : '::1',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ password: `wrong ${guess}` }).toString(),
      })
    await person.forgetCookies()
    await person.goto(drop.url)
    await expect.poll(() => person.script(`return document.querySelector('[data-challenge]') !== null`)).toBe(true)
    await person.fill('Password', 'open sesame')
    await person.press('Open')
    await person.see('inside')
    expect(await person.problems()).toEqual([])
  })

  test('signing in, signing up and passkeys: what the browser lacks is said', async () => {
    const person = await open()
    await person.goto('/signup')
    await person.fill('E-mail', `${engine.toLowerCase()}-new-${process.pid}@example.test`)
    await person.fill('Password', PASSWORD)
    await person.press('Sign up')
    await person.see('Your first drop takes ten seconds')
    await person.goto('/account/ways-in')
    await person.see('Passkeys')
    const hasPasskeys = (await person.script('return window.PublicKeyCredential !== undefined')) as boolean
    if (hasPasskeys) await person.miss('This browser has no passkeys')
    else await person.see('This browser has no passkeys')
    await person.goto('/signout')
    await person.script(`document.querySelector('main form[action="/signout"]').requestSubmit()`)
    await person.see('Sign in')
    await person.goto('/signin')
    await person.fill('E-mail', owner.email)
    await person.fill('Password', PASSWORD)
    await person.press('Sign in')
    await expect.poll(() => person.address()).toMatch(/\/sites/)
    expect(await person.problems()).toEqual([])
  })

  test.each([360, 1280])('every page fits %i pixels and has nothing to complain of', async (width) => {
    const site = await stack.publish(owner, '<title>Pages</title><h1>Pages</h1>')
    await stack.fetch(`/api/v1/sites/${site.id}`, {
      method: 'PATCH',
      token: owner.token,
      json: { name: 'W'.repeat(110) },
    })
    const person = await open({ width })
    const found: string[] = []
    const look = async (pages: readonly string[]): Promise<void> => {
      for (const page of pages) {
        await person.goto(page)
        expect(await person.script('return innerWidth'), page).toBe(width)
        for (const wide of await person.tooWide()) found.push(`${page}: ${wide}`)
        await person.keepScreenshot(`${engine}${page.replaceAll(/[/?]/g, '-').replace(site.id, 'ID')}-${width}`)
      }
    }
    await look(['/', '/signup', '/signin', '/reset', '/docs', '/docs/quick-start', '/docs/api/versions'])
    await look(['/gallery', '/report', '/templates', '/templates/cv', '/status', '/no-such-page'])
    await person.beSignedIn(owner.email, PASSWORD)
    await look(['/sites', '/sites/new', '/account', '/account/ways-in', '/account/tokens', '/account/organisation'])
    await look(['/account/plan', '/account/log', '/account/data', '/account/webhooks', '/staff'])
    await look(['', '/versions', '/views', '/settings', '/domains', '/sharing'].map((tab) => `/sites/${site.id}${tab}`))
    await look([`/review/${site.slug}`, site.url])
    expect(found).toEqual([])
    expect(await person.problems()).toEqual([])
  })
})
