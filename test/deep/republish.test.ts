/**
 * A hundred republishes of a Vite app with hashed chunks under ten tabs of different ages, which load further chunks and
 * navigate while the next version is published. The oldest is 29 days old in the end: no chunk fails, and what a tab
 * shows is of one version, that of its document. Two days later its chunks are gone, which shows that they were kept.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiFor, bundleForm } from '../support/api.ts'
import { launchBrowser } from '../support/browser.ts'
import { openVisitor, type Visitor } from '../support/dashboard-visitor.ts'
import { SEED } from '../support/depth.ts'
import { createRandom } from '../support/random.ts'
import { startStack, type OwnStack } from '../support/stack.ts'
import { buildViteApp } from '../support/vite-app.ts'

const PUBLISHES = 100
const TABS = 10
const PAGES = Array.from({ length: 12 }, (_, index) => `page${String.fromCharCode(97 + index)}`)
const NAVIGATES = 0.15
const DAY_MS = 86_400_000

let stack: OwnStack
let browser: Browser
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-deep-vite-'))
  stack = await startStack({ operator: true })
  browser = await launchBrowser()
}, 600_000)
afterAll(async () => {
  await browser?.close()
  await stack?.stop()
  await rm(folder, { recursive: true, force: true })
}, 60_000)

class Tab {
  readonly #visitor: Visitor
  readonly #url: string
  #version = ''
  #next = 0
  /** What it asked for in vain. */
  readonly failed: string[] = []
  loaded = 0

  constructor(visitor: Visitor, url: string) {
    this.#visitor = visitor
    this.#url = url
    visitor.page.on('response', (answer) => {
      if (answer.status() >= 400 && !answer.url().endsWith('/favicon.ico'))
        this.failed.push(`${answer.status()} ${answer.url()}`)
    })
  }

  get version(): string {
    return this.#version
  }

  async navigate(): Promise<void> {
    await this.#visitor.page.goto(this.#url)
    await this.#visitor.page.waitForFunction('window.show !== undefined')
    this.#version = (await this.#visitor.page.locator('body').getAttribute('data-version')) ?? ''
    this.#next = 0
  }

  /** Loads a chunk that it has not loaded yet, if there is one. */
  async goOn(): Promise<void> {
    const page = PAGES[this.#next++]
    if (page === undefined) return
    await this.#visitor.page.evaluate(`show(${JSON.stringify(page)})`)
    expect(await this.#visitor.page.locator('main').innerText()).toBe(`${page} of ${this.#version}`)
    this.loaded++
  }

  get problems(): readonly string[] {
    return [...this.#visitor.problems, ...this.failed]
  }

  close(): Promise<void> {
    return this.#visitor.close()
  }
}

async function moveClockTo(days: number, startMs: number): Promise<void> {
  await stack.operate('run-lifecycle', '--now', new Date(startMs + days * DAY_MS).toISOString(), '--really')
}

test(`${PUBLISHES} republishes under ${TABS} tabs, one of them 29 days old`, { timeout: 3_600_000 }, async () => {
  const random = createRandom(SEED)
  const api = apiFor(stack, await stack.createAccount('plus'))
  const drop = (await api.create()).json<{ id: string; slug: string; url: string }>()
  const publish = async (version: number): Promise<string[]> => {
    const files = await buildViteApp(folder, version, PAGES)
    const answer = await api.uploadBundle(drop.id, bundleForm(files))
    expect(answer.status, answer.text()).toBe(201)
    return Object.keys(files)
  }
  const tabs: Tab[] = []
  const openTab = async (): Promise<void> => {
    const tab = new Tab(await openVisitor(browser, stack), drop.url)
    await tab.navigate()
    tabs.push(tab)
  }
  const ofFirst = await publish(1)
  await openTab()
  const startMs = Date.now()
  for (let version = 2; version <= PUBLISHES; version++) {
    // The oldest only waits; the others go on while the next version goes live.
    const others = tabs.slice(1)
    const moves = others.map((tab) => (random.chance(NAVIGATES) ? tab.navigate() : tab.goOn()))
    await Promise.all([publish(version), ...moves])
    if (version % (PUBLISHES / TABS) === 0 && tabs.length < TABS) await openTab()
  }
  const [oldest, ...others] = tabs
  expect(oldest!.version).toBe('1')
  await moveClockTo(29, startMs)
  for (let page = 1; page < PAGES.length; page++) await oldest!.goOn()
  for (const tab of others) await tab.goOn()
  expect(tabs.flatMap(({ problems }) => problems)).toEqual([])
  const loaded = tabs.reduce((sum, tab) => sum + tab.loaded, 0)
  console.log(
    `${loaded} chunks in ${tabs.length} tabs, which end at versions ${tabs.map((tab) => tab.version).join(', ')}`,
  )
  expect(loaded).toBeGreaterThan(PUBLISHES)
  await moveClockTo(31, startMs)
  const last = ofFirst.find((name) => name.includes(`${PAGES.at(-1)}-`) && name.endsWith('.js'))!
  await expect.poll(async () => (await stack.visit(drop.slug, `/${last}`)).status).toBe(404)
  await expect(oldest!.goOn()).rejects.toThrow(/Failed to fetch|Unable to preload/)
  for (const tab of tabs) await tab.close()
})
