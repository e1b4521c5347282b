/**
 * What was dropped × where → what was published: the same for the front page, the dashboard, the API, the client and
 * MCP. Each row is a real file or folder; what visitors get is asked of the edge.
 */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Client } from '@modelcontextprotocol/client'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { apiFor, bundleForm, fileForm } from '../support/api.ts'
import { launchBrowser } from '../support/browser.ts'
import { openCli, type Cli } from '../support/cli.ts'
import { beSignedIn, openVisitor, PASSWORD, type Visitor } from '../support/dashboard-visitor.ts'
import { sampled } from '../support/depth.ts'
import { dropOnWindow, layFiles } from '../support/dropped-files.ts'
import { connectWithToken } from '../support/mcp-client.ts'
import { rawZip } from '../support/raw-zip.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

type Files = Readonly<Record<string, string>>

interface Thing {
  readonly what: string
  readonly files: Files
  /** One file by itself, the files of a folder, or several files that lie side by side. */
  readonly as: 'file' | 'folder' | 'files' | 'zip'
  /** With an account: what is at which path, or the words of the refusal. */
  readonly account: Readonly<Record<string, string>> | RegExp
  /** Without one; the same when left out. */
  readonly stranger?: RegExp
}

const NEEDS_ACCOUNT = /needs an account/
const HOME = '<!doctype html><title>Home</title><h1>Home page</h1>'

const things: readonly Thing[] = [
  {
    what: 'a page',
    as: 'file',
    files: { 'report.html': '<title>R</title>the report' },
    account: { '/': 'the report' },
  },
  { what: 'an old page', as: 'file', files: { 'OLD.HTM': 'an old page' }, account: { '/': 'an old page' } },
  { what: 'Markdown', as: 'file', files: { 'note.md': '# A note' }, account: { '/': 'id="a-note"' } },
  {
    what: 'a README that begins with HTML',
    as: 'file',
    files: { 'README.md': '<p align="center">logo</p>\n\n# Tool' },
    account: { '/': 'id="tool"' },
  },
  {
    what: 'a folder with Markdown and a zip before its index.html',
    as: 'folder',
    files: { 'a.md': '# raw', 'a.zip': 'PK', 'about.html': 'about us', 'css/a.css': 'a{}', 'index.html': HOME },
    account: { '/': 'Home page', '/about': 'about us', '/css/a.css': 'a{}', '/a.md': '# raw', '/a.zip': 'PK' },
    stranger: NEEDS_ACCOUNT,
  },
  {
    what: 'a folder with a Markdown index',
    as: 'folder',
    files: { 'index.md': '# From Markdown', 'other.md': '# raw' },
    account: { '/': 'id="from-markdown"', '/other.md': '# raw' },
    stranger: NEEDS_ACCOUNT,
  },
  {
    what: 'a folder that holds index.html and what a system adds',
    as: 'folder',
    files: { 'index.html': HOME, '.DS_Store': 'x' },
    account: { '/': 'Home page' },
    stranger: NEEDS_ACCOUNT,
  },
  {
    what: 'a folder with one page of another name',
    as: 'folder',
    files: { 'about.html': 'about us' },
    account: /no index\.html/,
    stranger: NEEDS_ACCOUNT,
  },
  {
    what: 'files with an index.html',
    as: 'files',
    files: { 'a.css': 'a{}', 'index.html': HOME },
    account: { '/': 'Home page', '/a.css': 'a{}' },
    stranger: NEEDS_ACCOUNT,
  },
  {
    what: 'two pages',
    as: 'files',
    files: { 'one.html': 'one', 'two.html': 'two' },
    account: /no index\.html/,
    stranger: NEEDS_ACCOUNT,
  },
  {
    what: 'a zip',
    as: 'zip',
    files: { 'index.html': HOME, 'a.css': 'a{}' },
    account: { '/': 'Home page', '/a.css': 'a{}' },
    stranger: NEEDS_ACCOUNT,
  },
  {
    what: 'a zip of a folder',
    as: 'zip',
    files: { 'dist/index.html': HOME, 'dist/a.css': 'a{}' },
    account: { '/': 'Home page', '/a.css': 'a{}' },
    stranger: NEEDS_ACCOUNT,
  },
  {
    what: 'a zip without a landing page',
    as: 'zip',
    files: { 'a.txt': 'x', 'b.txt': 'x' },
    account: /no index\.html/,
    stranger: NEEDS_ACCOUNT,
  },
  {
    what: 'an image',
    as: 'file',
    files: { 'my cat.png': 'PNG' },
    account: { '/': '<img src="my%20cat.png"', '/my%20cat.png': 'PNG' },
    stranger: NEEDS_ACCOUNT,
  },
  {
    what: 'a PDF',
    as: 'file',
    files: { 'cv.pdf': '%PDF-1.4' },
    account: { '/': '<object data="cv.pdf" type="application/pdf"', '/cv.pdf': '%PDF-1.4' },
    stranger: NEEDS_ACCOUNT,
  },
  {
    what: 'a video',
    as: 'file',
    files: { 'film.mp4': 'MP4' },
    account: { '/': '<video src="film.mp4" controls', '/film.mp4': 'MP4' },
    stranger: NEEDS_ACCOUNT,
  },
  {
    what: 'a text',
    as: 'file',
    files: { 'todo.txt': '1 < 2' },
    account: { '/': '1 &lt; 2</pre>', '/todo.txt': '1 < 2' },
    stranger: NEEDS_ACCOUNT,
  },
  { what: 'a program', as: 'file', files: { 'tool.exe': 'MZ' }, account: /tool\.exe" cannot be published/ },
  { what: 'an empty page', as: 'file', files: { 'empty.html': '' }, account: /empty\.html" is empty/ },
]

/** What came of it: where it is live, or why not. */
type Outcome = { readonly slug: string } | { readonly refusal: string }

let stack: Stack
let browser: Browser
let account: Account
let folder: string
let stranger: Visitor
let owner: Visitor
let cli: Cli
let assistant: Client

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
  account = await stack.createAccount('business', { password: PASSWORD })
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-dropped-'))
  stranger = await openVisitor(browser, stack)
  owner = await openVisitor(browser, stack)
  await beSignedIn(owner, stack, account.email)
  cli = await openCli()
  assistant = await connectWithToken(stack, account.token, 'modern')
})
afterAll(async () => {
  await browser.close()
  await assistant.close()
  await cli.remove()
  await rm(folder, { recursive: true, force: true })
})

const doors: Readonly<Record<string, (thing: Thing, place: string) => Promise<Outcome>>> = {
  'the front page': (thing, place) => dropIn(stranger, '/', thing, place),
  'the front page, signed in': (thing, place) => dropIn(owner, '/', thing, place),
  'the list of drops': (thing, place) => dropIn(owner, '/sites', thing, place),
  'the API': publishByApi,
  'the client': publishByClient,
  MCP: publishByMcp,
}

/** The same script stands behind these two; by `npm run test:deep` everything is dropped on both. */
const TURNS: Readonly<Record<string, boolean>> = { 'the front page, signed in': true, 'the list of drops': false }

const dropped = (door: string) => (TURNS[door] === undefined ? things : sampled(things, TURNS[door]))

describe.each(Object.entries(doors))('%s', (door, publish) => {
  test.each(dropped(door).map((thing) => [thing.what, thing] as const))('%s', async (_what, thing) => {
    const expected = door === 'the front page' ? (thing.stranger ?? thing.account) : thing.account
    const outcome = await publish(thing, await lay(thing))
    if (expected instanceof RegExp) {
      expect(outcome).toEqual({ refusal: expect.stringMatching(expected) })
      return
    }
    expect(outcome).toEqual({ slug: expect.any(String) })
    if (!('slug' in outcome)) return
    for (const [address, content] of Object.entries(expected)) {
      const answer = await stack.visit(outcome.slug, address)
      expect([address, answer.status]).toEqual([address, 200])
      expect(answer.text()).toContain(content)
    }
  })
})

/** Puts a thing on the disk; returns its folder. */
async function lay({ as, files }: Thing): Promise<string> {
  const place = await mkdtemp(path.join(folder, 'thing-'))
  if (as === 'zip') {
    const entries = Object.entries(files).map(([name, content]) => ({ name, data: content }))
    await writeFile(path.join(place, 'site.zip'), rawZip(entries))
    return place
  }
  return layFiles(place, files)
}

/** What a hand takes hold of. */
async function heldOf({ as }: Thing, place: string): Promise<string[]> {
  return as === 'folder' ? [place] : (await readdir(place)).map((name) => path.join(place, name))
}

async function dropIn({ page }: Visitor, address: string, thing: Thing, place: string): Promise<Outcome> {
  await page.goto(address)
  let sent = 0
  const count = (request: { method(): string; url(): string }): void => {
    if (request.method() === 'POST' && !request.url().endsWith('/check')) sent++
  }
  page.on('request', count)
  await dropOnWindow(page, await heldOf(thing, place))
  const alert = page.getByRole('alert')
  const live = page.locator('.live-link')
  await alert.or(live).first().waitFor()
  page.off('request', count)
  if (await alert.isVisible()) {
    // What is in an archive shows when it is unpacked; everything else is known before it is sent.
    if (thing.as !== 'zip') expect(sent).toBe(0)
    return { refusal: await alert.innerText() }
  }
  return { slug: slugOf((await live.getAttribute('href'))!) }
}

function slugOf(url: string): string {
  return new URL(url).hostname.split('.')[0]!
}

async function publishByApi({ as, files }: Thing, place: string): Promise<Outcome> {
  const api = apiFor(stack, account)
  const site = (await api.create()).json()
  const [name = ''] = await readdir(place)
  const bytes = async (): Promise<Buffer> => readFile(path.join(place, name))
  const answer =
    as === 'file'
      ? await api.upload(
          site.id,
          fileForm(name, await bytes(), /\.(?:html?|md|markdown)$/i.test(name) ? {} : { as: 'document' }),
        )
      : await api.uploadBundle(site.id, as === 'zip' ? fileForm(name, await bytes()) : bundleForm(files))
  if (answer.status === 201) return { slug: site.slug }
  expect(answer.status).toBe(400)
  await api.delete(site.id)
  return { refusal: answer.json().detail }
}

async function publishByClient(thing: Thing, place: string): Promise<Outcome> {
  const [held = ''] = thing.as === 'files' ? [place] : await heldOf(thing, place)
  const caFile = path.join(stack.dataDir, 'ca', 'ca.pem')
  const env = { DROPWAY_URL: stack.baseUrl, DROPWAY_TOKEN: account.token, DROPWAY_CA_FILE: caFile }
  const result = await cli.call(['deploy', held], { env })
  return result.code === 0 ? { slug: slugOf(result.lines.at(-1)!) } : { refusal: result.stderr }
}

async function publishByMcp({ as, files }: Thing, place: string): Promise<Outcome> {
  const [name = ''] = await readdir(place)
  const isAlone = as === 'file' || as === 'zip'
  const result = isAlone
    ? await assistant.callTool({ name: 'service_publish', arguments: { upload: await sendAhead(place, name) } })
    : await assistant.callTool({
        name: 'service_publish_files',
        arguments: { files: Object.entries(files).map(([file, content]) => ({ path: file, content })) },
      })
  if (result.isError) return { refusal: (result.content[0] as { text: string }).text }
  return { slug: (result.structuredContent as { slug: string }).slug }
}

async function sendAhead(place: string, name: string): Promise<string> {
  const made = await assistant.callTool({ name: 'service_upload', arguments: { name } })
  const { upload, put_url: url } = made.structuredContent as { upload: string; put_url: string }
  const body = await readFile(path.join(place, name))
  const answer = await stack.fetch(url, { method: 'PUT', body })
  expect(answer.status).toBeLessThan(300)
  return upload
}
