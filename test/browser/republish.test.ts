/**
 * Tabs of different ages while an app is published again and again: a Vite build with hashed, lazily loaded chunks. Each
 * tab goes on with its own version. Four publishes and three tabs in `npm test`, a hundred and ten when deep.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Browser } from 'playwright-core'
import { build } from 'vite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiFor, bundleForm } from '../support/api.ts'
import { launchBrowser } from '../support/browser.ts'
import { openVisitor, type Visitor } from '../support/dashboard-visitor.ts'
import { IS_DEEP } from '../support/depth.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

const [PUBLISHES, TABS] = IS_DEEP ? [100, 10] : [4, 3]
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

/** A small app whose every chunk says which version it is of. */
async function buildApp(version: number): Promise<Record<string, string>> {
  const root = path.join(folder, `v${version}`)
  await mkdir(path.join(root, 'pages'), { recursive: true })
  for (const page of PAGES) {
    await writeFile(
      path.join(root, 'pages', `${page}.js`),
      `import './${page}.css'\nexport const text = '${page} of ${version}'`,
    )
    await writeFile(path.join(root, 'pages', `${page}.css`), `main { --of: ${version}${page.length} }`)
  }
  const main = `
    const pages = { ${PAGES.map((page) => `${page}: () => import('./pages/${page}.js')`).join(', ')} }
    document.body.dataset.version = '${version}'
    window.show = async (page) => (document.querySelector('main').textContent = (await pages[page]()).text)`
  await writeFile(path.join(root, 'main.js'), main)
  await writeFile(
    path.join(root, 'index.html'),
    '<title>app</title><main></main><script type="module" src="/main.js"></script>',
  )
  await build({ configFile: false, logLevel: 'error', root, build: { outDir: 'dist', minify: true } })
  const dist = path.join(root, 'dist')
  const names = (await readdir(dist, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  const files: Record<string, string> = {}
  for (const { parentPath, name } of names) {
    const file = path.join(parentPath, name)
    files[path.relative(dist, file)] = await readFile(file, 'utf8')
  }
  return files
}

test('every tab loads the chunks of its own version, whatever was published since', async () => {
  const api = apiFor(stack, await stack.createAccount('free'))
  const drop = (await api.create()).json<{ id: string; slug: string; url: string }>()
  const tabs: { visitor: Visitor; version: number }[] = []
  for (let version = 1; version <= PUBLISHES; version++) {
    const answer = await api.uploadBundle(drop.id, bundleForm(await buildApp(version)))
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
}, 600_000)
