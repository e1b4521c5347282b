/**
 * The dashboard's budget, as a browser meets it on loopback: time to the first byte, bytes transferred, requests,
 * layout shift and largest paint of every kind of page. Ends with an error when a page is over its budget.
 *
 *   npm run bench:dashboard [-- --rounds 15]
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import { launchBrowser } from '../test/support/browser.ts'
import { openVisitor, PASSWORD, signIn } from '../test/support/dashboard-visitor.ts'
import { startStack } from '../test/support/stack.ts'

const BUDGET = { firstByteMs: 50, bytes: 100_000, layoutShift: 0.02 }
/** Drops in the account that is looked at: a list is heavier than an empty page. */
const DROPS = 12

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '15' } } })
const rounds = Number(values.rounds)

interface Load {
  readonly firstByteMs: number
  readonly bytes: number
  readonly requests: number
  readonly layoutShift: number
  readonly paintMs: number
}

const OBSERVE = `window.shift = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.shift += entry.value }).observe({ type: 'layout-shift', buffered: true })`
const READ = `(() => {
  const [page] = performance.getEntriesByType('navigation')
  const all = [page, ...performance.getEntriesByType('resource')]
  const paint = performance.getEntriesByName('first-contentful-paint')[0]
  return {
    firstByteMs: page.responseStart - page.requestStart,
    bytes: all.reduce((sum, entry) => sum + entry.transferSize, 0),
    requests: all.length,
    layoutShift: window.shift,
    paintMs: paint ? paint.startTime : 0,
  }
})()`

const stack = await startStack()
const browser = await launchBrowser()
try {
  const account = await stack.createAccount('plus', { password: PASSWORD })
  let site = await stack.publish(account, '<title>Bench</title>x')
  for (let count = 1; count < DROPS; count++) site = await stack.publish(account, `<title>Bench ${count}</title>x`)
  const visitor = await openVisitor(browser, stack)
  await visitor.page.addInitScript(OBSERVE)
  const results: Record<string, Load> = {}
  for (const path of ['/', '/docs', '/templates', '/signup']) results[path] = await measure(visitor.page, path)
  await signIn(visitor, account.email)
  const ofSite = ['', '/versions', '/settings', '/views'].map((page) => `/sites/${site.id}${page}`)
  for (const path of ['/sites', ...ofSite, '/account', '/account/plan']) {
    results[path.replace(site.id, '<id>')] = await measure(visitor.page, path)
  }
  report(results)
} finally {
  await browser.close()
  await stack.stop()
}

/** The first load fills caches of the server; what people meet every day is the median of the rest. */
async function measure(page: Page, path: string): Promise<Load> {
  const loads: Load[] = []
  const session = await page.context().newCDPSession(page)
  await session.send('Network.enable')
  await session.send('Network.setCacheDisabled', { cacheDisabled: true })
  for (let round = 0; round <= rounds; round++) {
    await page.goto(path, { waitUntil: 'load' })
    await page.waitForTimeout(50)
    loads.push((await page.evaluate(READ)) as Load)
  }
  const median = (name: keyof Load): number =>
    loads
      .slice(1)
      .map((load) => load[name])
      .toSorted((a, b) => a - b)[Math.floor(rounds / 2)]!
  return {
    firstByteMs: median('firstByteMs'),
    bytes: median('bytes'),
    requests: median('requests'),
    layoutShift: median('layoutShift'),
    paintMs: median('paintMs'),
  }
}

function report(results: Readonly<Record<string, Load>>): void {
  console.table(results)
  const folder = fileURLToPath(new URL('results/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  const about = {
    measuredAt: new Date().toISOString(),
    node: process.version,
    machine: `${os.arch()}, ${os.availableParallelism()} cores`,
    rounds,
    budget: BUDGET,
  }
  writeFileSync(`${folder}dashboard.json`, `${JSON.stringify({ ...about, results }, null, 2)}\n`)
  for (const [path, load] of Object.entries(results)) {
    for (const [name, limit] of Object.entries(BUDGET)) {
      const value = load[name as keyof typeof BUDGET]
      if (value <= limit) continue
      console.error(`${path}: ${name} is ${value}, the budget is ${limit}`)
      process.exitCode = 1
    }
  }
}
