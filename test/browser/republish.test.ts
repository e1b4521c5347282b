/**
 * Tabs of different ages while an app is published again and again: a Vite build with hashed, lazily loaded chunks. Each
 * tab goes on with its own version. A hundred publishes under ten tabs that navigate are in the deep run.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiFor, bundleForm } from '../support/api.ts'
import { launchBrowser } from '../support/browser.ts'
import { openVisitor, type Visitor } from '../support/dashboard-visitor.ts'
import { sharedStack, type Stack } from '../support/stack.ts'
import { buildViteApp } from '../support/vite-app.ts'

const PUBLISHES = 4
const TABS = 3
const PAGES = ['orders', 'people', 'about'] as const

let stack: Stack
let browser: Browser
let folder: string

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-vite-'))
})
afterAll(async () => {
  await browser?.close()
  await rm(folder, { recursive: true, force: true })
})

test('every tab loads the chunks of its own version, whatever was published since', async () => {
  const api = apiFor(stack, await stack.createAccount('free'))
  const drop = (await api.create()).json<{ id: string; slug: string; url: string }>()
  const tabs: { visitor: Visitor; version: number }[] = []
  for (let version = 1; version <= PUBLISHES; version++) {
    const answer = await api.uploadBundle(drop.id, bundleForm(await buildViteApp(folder, version, PAGES)))
    expect(answer.status, answer.text()).toBe(201)
    if (version > (tabs.length * PUBLISHES) / TABS && tabs.length < TABS) {
      const visitor = await openVisitor(browser, stack)
      await visitor.goto(drop.url)
      tabs.push({ visitor, version })
    }
  }
  for (const { visitor, version } of tabs) {
    expect(await visitor.page.locator('body').getAttribute('data-version')).toBe(String(version))
    for (const page of PAGES) {
      await visitor.page.evaluate(`show(${JSON.stringify(page)})`)
      expect(await visitor.page.locator('main').innerText()).toBe(`${page} of ${version}`)
    }
    expect(visitor.problems).toEqual([])
    await visitor.close()
  }
})
