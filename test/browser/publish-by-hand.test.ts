/** Publishing by hand, as people do it: what is said before, during and after, and how to get back. */
import { mkdtemp, open, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import {
  beSignedIn,
  fillSignUp,
  keepScreenshot,
  newEmail,
  openVisitor,
  PASSWORD,
  signUp,
  type Visitor,
} from '../support/dashboard-visitor.ts'
import { byTurns } from '../support/depth.ts'
import { dropOnWindow, layFiles } from '../support/dropped-files.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { mailedLink } from '../support/mailbox.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser
let account: Account
let folder: string

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
  account = await stack.createAccount('plus', { password: PASSWORD })
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-by-hand-'))
})
afterAll(async () => {
  await browser.close()
  await rm(folder, { recursive: true, force: true })
})

const lay = (name: string, files: Readonly<Record<string, string>>): Promise<string> =>
  layFiles(path.join(folder, name), files)

async function layOfSize(name: string, bytes: number): Promise<string> {
  const file = path.join(folder, name)
  const handle = await open(file, 'w')
  await handle.truncate(bytes)
  await handle.close()
  return file
}

async function owner(options: Parameters<typeof openVisitor>[2] = {}): Promise<Visitor> {
  const visitor = await openVisitor(browser, stack, options)
  await beSignedIn(visitor, stack, account.email)
  return visitor
}

const slugOf = (url: string): string => new URL(url).hostname.split('.')[0]!

async function liveSlug(page: Page): Promise<string> {
  return slugOf((await page.locator('.live-link').getAttribute('href'))!)
}

/** Addresses of the POSTs that carry content. */
function watchSending(page: Page): string[] {
  const sent: string[] = []
  page.on('request', (request) => {
    if (request.method() === 'POST' && !request.url().endsWith('/check')) sent.push(new URL(request.url()).pathname)
  })
  return sent
}

const SITE = { 'index.html': '<title>Home</title><h1>Home</h1>', 'about.html': 'about', 'css/a.css': 'a{}' }

/** With scripts, and without. */
const inOneWay = byTurns([true, false])

describe('without an account', () => {
  test('one drag publishes a page; the result survives Back, and opens in a new tab', async () => {
    const visitor = await openVisitor(browser, stack, { width: 390 })
    const { page } = visitor
    await visitor.goto('/')
    await dropOnWindow(page, [path.join(await lay('one', { 'note.md': '# One drag' }), 'note.md')])
    await page.getByRole('heading', { name: 'Your page is live' }).waitFor()
    expect((await stack.visit(await liveSlug(page))).text()).toContain('One drag')
    expect(await page.locator('.live-link').getAttribute('target')).toBe('_blank')
    const address = page.url()
    await page.getByRole('link', { name: 'Publish another' }).click()
    await page.getByRole('heading', { name: 'Published from this browser' }).waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'Your page is live' }).waitFor()
    expect(page.url()).toBe(address)
    expect(await page.getByLabel('Claim link').inputValue()).toContain('/claim?token=')
    expect(visitor.problems).toEqual([])
    await keepScreenshot(page, 'by-hand-result-390')
    await visitor.close()
  })

  test('the result of one browser is not shown to another', async () => {
    const visitor = await openVisitor(browser, stack)
    await visitor.goto('/')
    await visitor.page.locator('input[type=file]').setInputFiles({
      name: 'mine.md',
      mimeType: 'text/markdown',
      buffer: Buffer.from('# Mine'),
    })
    await visitor.page.getByRole('heading', { name: 'Your page is live' }).waitFor()
    const other = await openVisitor(browser, stack)
    await other.page.goto(visitor.page.url())
    expect(new URL(other.page.url()).pathname).toBe('/')
    await visitor.close()
    await other.close()
  })

  test('a folder is refused before it is sent; signing up goes on with it', async () => {
    const visitor = await openVisitor(browser, stack)
    const { page } = visitor
    const sent = watchSending(page)
    await visitor.goto('/')
    await dropOnWindow(page, [await lay('kept', SITE)])
    expect(await page.getByRole('alert').innerText()).toContain('A site of 3 files needs an account')
    expect(sent).toEqual([])
    await keepScreenshot(page, 'by-hand-needs-account')
    await page.getByRole('button', { name: 'Sign up and publish it' }).click()
    const email = newEmail()
    await fillSignUp(page, email)
    await page.getByRole('heading', { name: 'Version 1 is live' }).waitFor()
    await new FormBrowser(stack, '198.51.100.81').confirm(await mailedLink(stack, email, '/verify'))
    const slug = await liveSlug(page)
    expect((await stack.visit(slug)).text()).toContain('<h1>Home</h1>')
    expect((await stack.visit(slug, '/about')).text()).toContain('about')
    expect(visitor.problems).toEqual([])
    await visitor.close()
  })

  test('what no account takes either offers no account', async () => {
    const visitor = await openVisitor(browser, stack)
    const { page } = visitor
    await visitor.goto('/')
    await dropOnWindow(page, [path.join(await lay('program', { 'tool.exe': 'MZ' }), 'tool.exe')])
    expect(await page.getByRole('alert').innerText()).toContain('"tool.exe" cannot be published')
    expect(await page.getByRole('button', { name: 'Sign up and publish it' }).count()).toBe(0)
    await visitor.close()
  })

  test.each(inOneWay())('what this browser published can be deleted (scripts: %s)', async (javaScript) => {
    const visitor = await openVisitor(browser, stack, { javaScript, width: 390, scheme: 'dark' })
    const { page } = visitor
    await visitor.goto('/')
    await page.getByRole('textbox', { name: 'HTML or Markdown' }).fill('# A mistake')
    // A form that comes back at once is asked for a proof that needs a script.
    await page.waitForTimeout(800)
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await page.getByRole('heading', { name: 'Your page is live' }).waitFor()
    const slug = await liveSlug(page)
    await visitor.goto('/')
    await keepScreenshot(page, `by-hand-remembered-${javaScript}`)
    await page.getByText('Delete', { exact: true }).click()
    await page.getByRole('button', { name: 'Delete for good' }).click()
    await expect.poll(() => page.getByRole('heading', { name: 'Published from this browser' }).count()).toBe(0)
    expect(page.url()).toBe(`${stack.baseUrl}/`)
    expect((await stack.visit(slug)).status).toBe(410)
    await visitor.close()
  })

  test('another browser cannot delete it', async () => {
    const drop = (await stack.fetch('/api/v1/drops-md', { json: { markdown: '# Kept' } })).json()
    const visitor = await openVisitor(browser, stack)
    const { page } = visitor
    await visitor.goto('/')
    await page.getByRole('textbox', { name: 'HTML or Markdown' }).fill('# Mine')
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await page.getByRole('heading', { name: 'Your page is live' }).waitFor()
    await page.getByText('Delete', { exact: true }).click()
    await page.locator('input[name=id]').evaluate((field, id) => ((field as { value?: string }).value = id), drop.id)
    const answered = page.waitForResponse((answer) => answer.request().method() === 'POST')
    await page.getByRole('button', { name: 'Delete for good' }).click()
    await (await answered).finished()
    expect((await stack.visit(drop.slug)).status).toBe(200)
    await visitor.close()
  })
})

test('a new account has its first drop after four interactions', async () => {
  const visitor = await openVisitor(browser, stack)
  const { page } = visitor
  // E-mail, password, button; then one drag.
  await signUp(visitor)
  await page.getByRole('heading', { name: 'Your first drop takes ten seconds' }).waitFor()
  await dropOnWindow(page, [await lay('first', SITE)])
  await page.getByRole('heading', { name: 'Version 1 is live' }).waitFor()
  await visitor.close()
})

describe('with an account', () => {
  test('what is too large for the plan is refused before it is sent', async () => {
    const visitor = await owner()
    const { page } = visitor
    const sent = watchSending(page)
    await visitor.goto('/sites')
    await dropOnWindow(page, [await layOfSize('film.mp4', 150_000_000)])
    expect(await page.getByRole('alert').innerText()).toContain('larger than 100 MB')
    expect(sent).toEqual([])
    await keepScreenshot(page, 'by-hand-too-large')
    await visitor.close()
  })

  test('a file that cannot be read is named, and no empty drop is made', async () => {
    const visitor = await owner()
    const { page } = visitor
    const sent = watchSending(page)
    // As a browser does with a file that was moved since it was chosen.
    await page.addInitScript(
      'Blob.prototype.arrayBuffer = () => Promise.reject(new DOMException("", "NotReadableError"))',
    )
    await visitor.goto('/sites')
    await dropOnWindow(page, [path.join(await lay('moved', { 'moved.html': '<p>moved' }), 'moved.html')])
    expect(await page.getByRole('alert').innerText()).toMatch(/moved\.html cannot be read/)
    expect(sent).toEqual([])
    await visitor.close()
  })

  test('an address that is taken is refused before anything is sent, and what was typed stays', async () => {
    const taken = await stack.publish(account, 'x')
    const visitor = await owner()
    const { page } = visitor
    const sent = watchSending(page)
    await visitor.goto('/sites/new')
    await page.getByLabel('Address').fill(taken.slug)
    await page.getByLabel('Name').fill('My name')
    await dropOnWindow(page, [await lay('taken', SITE)])
    expect(await page.getByRole('alert').innerText()).toContain('is taken')
    expect(sent).toEqual([])
    expect(await page.getByLabel('Name').inputValue()).toBe('My name')
    await visitor.close()
  })

  test('progress stands where the zone was, in percent and size; leaving is asked about; cancel ends it', async () => {
    const visitor = await owner({ width: 390, scheme: 'dark' })
    const { page } = visitor
    await visitor.goto('/sites/new')
    // Browsers ask only people who have done something on a page.
    await page.getByRole('heading', { level: 1 }).click()
    // A line so slow that a slow machine sees it under way: 5 MB at 20 kB/s.
    const session = await visitor.context.newCDPSession(page)
    const line = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 20_000 }
    await session.send('Network.emulateNetworkConditions', line)
    await dropOnWindow(page, [await layOfSize('film.mp4', 5_000_000)])
    await page.getByText(/^\d+ %, .* of 5 MB$/).waitFor()
    await page.getByRole('status').filter({ hasText: 'Sending film.mp4 (5 MB)' }).waitFor()
    expect(await page.locator('[data-zone]').isVisible()).toBe(false)
    await keepScreenshot(page, 'by-hand-progress-390-dark')
    const asked = page.waitForEvent('dialog')
    const leaving = page.evaluate('void setTimeout(() => location.assign("/docs"))')
    const dialog = await asked
    expect(dialog.type()).toBe('beforeunload')
    await dialog.dismiss()
    await leaving
    await page.getByRole('button', { name: 'Cancel' }).click()
    expect(await page.getByRole('alert').innerText()).toContain('Nothing was published')
    expect(await page.locator('[data-zone]').isVisible()).toBe(true)
    await visitor.close()
  })

  test('a publish over a site says what it did to its files, and Undo goes back', async () => {
    const site = await stack.publish(account, { ...SITE, 'old.html': 'old' })
    const visitor = await owner()
    const { page } = visitor
    await visitor.goto(`/sites/${site.id}`)
    await dropOnWindow(page, [path.join(await lay('single', { 'page.html': '<title>New</title>new' }), 'page.html')])
    await page.getByRole('heading', { name: 'Version 2 is live' }).waitFor()
    await page.getByText('4 files → 1: 1 changed, 3 removed').waitFor()
    await keepScreenshot(page, 'by-hand-summary')
    await page.getByRole('button', { name: 'Undo: back to version 1' }).click()
    await page.getByText('Version 1 is live now.').waitFor()
    expect((await stack.visit(site.slug, '/old')).text()).toContain('old')
    await visitor.close()
  })

  test('files that look like secrets are asked about before they are sent', async () => {
    const visitor = await owner()
    const { page } = visitor
    const sent = watchSending(page)
    await visitor.goto('/sites')
    await dropOnWindow(page, [await lay('secret', { ...SITE, '.env': 'KEY=1' })])
    expect(await page.getByRole('alert').innerText()).toContain('.env" looks like')
    expect(sent).toEqual([])
    await page.getByRole('button', { name: 'Publish them too' }).click()
    await page.getByRole('heading', { name: 'Version 1 is live' }).waitFor()
    await visitor.close()
  })

  test.each([
    [
      'an image',
      'cat.svg',
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 60"><circle cx="45" cy="30" r="25"/></svg>',
      'img',
    ],
    ['a text', 'list.txt', 'one\ntwo\n', 'pre'],
  ])('%s is a drop of its own', async (_what, name, content, element) => {
    const visitor = await owner()
    const { page } = visitor
    await visitor.goto('/sites')
    await dropOnWindow(page, [path.join(await lay(name, { [name]: content }), name)])
    await page.getByRole('heading', { name: 'Version 1 is live' }).waitFor()
    const url = (await page.locator('.live-link').getAttribute('href'))!
    for (const [width, colorScheme] of [
      [390, 'dark'],
      [1280, 'light'],
    ] as const) {
      await page.setViewportSize({ width, height: 760 })
      await page.emulateMedia({ colorScheme })
      await page.goto(url)
      expect(await page.locator(`main ${element}`).isVisible()).toBe(true)
      await keepScreenshot(page, `by-hand-document-${element}-${width}-${colorScheme}`)
    }
    await page.getByRole('link', { name: 'Open' }).click()
    expect(page.url()).toBe(`${url}${url.endsWith('/') ? '' : '/'}${name}`)
    await visitor.close()
  })
})

const README = '<p align="center">\n  <img src="logo.svg" alt="">\n</p>\n\n# The Tool\n\nIt does **one** thing.\n'

describe('pasted text', () => {
  test('a README that begins with HTML is Markdown; the guess is shown and can be switched', async () => {
    const visitor = await owner()
    const { page } = visitor
    await visitor.goto('/sites/new')
    const guess = page.getByLabel('Publish the text as').locator('option').first()
    await page.getByRole('textbox', { name: 'HTML or Markdown' }).fill('<!doctype html><p>x')
    expect(await guess.innerText()).toBe('Looks like HTML')
    await page.getByRole('textbox', { name: 'HTML or Markdown' }).fill(README)
    expect(await guess.innerText()).toBe('Looks like Markdown')
    await page.frameLocator('[data-preview] iframe').getByRole('heading', { name: 'The Tool' }).waitFor()
    await page.getByLabel('Publish the text as').selectOption('HTML')
    await page.frameLocator('[data-preview] iframe').getByText('# The Tool').waitFor()
    await page.getByLabel('Publish the text as').selectOption({ index: 0 })
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await page.getByRole('heading', { name: 'Version 1 is live' }).waitFor()
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('The Tool')
    expect((await stack.visit(await liveSlug(page))).text()).toContain('id="the-tool"')
    await visitor.close()
  })

  test('without scripts it is chosen in the form', async () => {
    const visitor = await openVisitor(browser, stack, { javaScript: false })
    const { page } = visitor
    await visitor.goto('/')
    await page.getByRole('textbox', { name: 'HTML or Markdown' }).fill('# as it stands')
    await page.getByLabel('Publish the text as').selectOption('HTML')
    await page.waitForTimeout(800)
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await page.getByRole('heading', { name: 'Your page is live' }).waitFor()
    expect((await stack.visit(await liveSlug(page))).text()).toContain('# as it stands')
    await visitor.close()
  })

  test('a page without a title is known by its first heading', async () => {
    const visitor = await owner()
    const { page } = visitor
    await visitor.goto('/sites/new')
    await page.getByRole('textbox', { name: 'HTML or Markdown' }).fill('<div><h1>Plain <em>page</em></h1></div>')
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await page.getByRole('heading', { name: 'Version 1 is live' }).waitFor()
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Plain page')
    await visitor.close()
  })
})

describe.each(inOneWay())('editing what is live (scripts: %s)', (javaScript) => {
  test('a page opens with its text, and saving it is the next version', async () => {
    const site = await stack.publish(account, '<title>Before</title><p>before &amp; after')
    const visitor = await owner({ javaScript })
    const { page } = visitor
    await visitor.goto(`/sites/${site.id}`)
    await page.getByRole('link', { name: 'Edit the page' }).click()
    const box = page.getByRole('textbox', { name: 'HTML or Markdown' })
    expect(await box.inputValue()).toBe('<title>Before</title><p>before &amp; after')
    await keepScreenshot(page, `by-hand-edit-${javaScript}`)
    await box.fill('<title>After</title><p>edited')
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await page.getByRole('heading', { name: 'Version 2 is live' }).waitFor()
    expect((await stack.visit(site.slug)).text()).toContain('<p>edited')
    await visitor.close()
  })

  test("another person's version in between is not overwritten", async () => {
    const site = await stack.publish(account, '<p>first')
    const visitor = await owner({ javaScript })
    const { page } = visitor
    await visitor.goto(`/sites/${site.id}?edit`)
    await stack.publish(account, '<p>theirs', site)
    await page.getByRole('textbox', { name: 'HTML or Markdown' }).fill('<p>mine')
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').innerText()).toMatch(/version 2/i)
    expect(await page.getByRole('textbox', { name: 'HTML or Markdown' }).inputValue()).toBe('<p>mine')
    expect((await stack.visit(site.slug)).text()).toContain('theirs')
    await visitor.close()
  })
})

test('a site of several files has no text to edit', async () => {
  const site = await stack.publish(account, SITE)
  const visitor = await owner()
  await visitor.goto(`/sites/${site.id}`)
  await visitor.page.getByRole('heading', { name: 'Version 1' }).waitFor()
  expect(await visitor.page.getByRole('link', { name: 'Edit the page' }).count()).toBe(0)
  await visitor.close()
})
