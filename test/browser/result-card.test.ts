/** The card of a publish in a client that shows pages (MCP Apps): what it says, and what it asks its client for. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readCard } from '../../control/doors/mcp/card/result-card.ts'
import { HOUSE_LOOK } from '../../shared/pages/look.ts'
import { launchBrowser } from '../support/browser.ts'

const settings = {
  look: { ...HOUSE_LOOK, name: 'Acme Pages' },
  sitesDomain: 'sites.acme.test',
  publicPort: undefined,
  baseUrl: 'https://pages.acme.test',
}
const published = {
  id: 'st_1',
  slug: 'report',
  url: 'https://report.sites.acme.test',
  version: 3,
  files: 2,
  live: true,
  warnings: ['a link leads nowhere'],
}

/** A client as the protocol of MCP Apps has it: answers the hello, then hands over the answer of the tool. */
const CLIENT = `
  window.heard = []
  addEventListener('message', ({ data, source }) => {
    heard.push(data)
    if (data.method === 'ui/initialize') source.postMessage({ jsonrpc: '2.0', id: data.id, result: { protocolVersion: '2026-01-26' } }, '*')
    if (data.method === 'ui/notifications/initialized')
      source.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/tool-result', params: { structuredContent: window.answer } }, '*')
    if (data.method === 'ui/open-link') source.postMessage({ jsonrpc: '2.0', id: data.id, result: {} }, '*')
  })`

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

async function openCard(answer: object) {
  const page = await browser.newPage({ viewport: { width: 360, height: 640 } })
  const asked: string[] = []
  await page.route('**/*', (route) => {
    asked.push(route.request().url())
    return route.fulfill({ contentType: 'text/html', body: '<h1>the page itself</h1>' })
  })
  const [card] = readCard(settings).contents
  if (card === undefined || !('text' in card)) throw new Error('the card is a text')
  await page.setContent('<iframe sandbox="allow-scripts" style="width:340px;height:400px;border:0"></iframe>')
  await page.evaluate(`window.answer = ${JSON.stringify(answer)}; ${CLIENT}`)
  await page.evaluate(
    ([text]) => {
      document.querySelector('iframe')!.srcdoc = text!
    },
    [card.text],
  )
  return { page, asked, frame: page.frameLocator('iframe').first(), close: () => page.close() }
}

test('shows the page, its address and what is known of it; its buttons ask the client to open places', async () => {
  const { page, asked, frame, close } = await openCard(published)
  await frame.getByRole('heading', { name: 'report' }).waitFor()
  expect(await frame.locator('.address').textContent()).toBe('report.sites.acme.test')
  expect(await frame.locator('.facts').textContent()).toBe('version 3 · 2 files · public · 1 warning')
  for (const name of ['Open', 'Share', 'Versions']) await frame.getByRole('button', { name }).click()
  // What a frame posts arrives a moment after the click.
  const heard = (): Promise<{ method?: string; params?: { url?: string } }[]> => page.evaluate('heard')
  const opened = async () =>
    (await heard()).filter(({ method }) => method === 'ui/open-link').map(({ params }) => params?.url)
  await expect
    .poll(opened)
    .toEqual([
      'https://report.sites.acme.test',
      'https://pages.acme.test/sites/st_1/sharing',
      'https://pages.acme.test/sites/st_1/versions',
    ])
  await page.waitForFunction('heard.some(({ method }) => method === "ui/notifications/size-changed")')
  // The preview is all that it loads.
  await expect.poll(() => asked.map((url) => new URL(url).origin)).toEqual(['https://report.sites.acme.test'])
  await close()
})

test('a drop that not everyone may see has no preview; what is no answer of ours shows nothing', async () => {
  const closed = await openCard({ ...published, access_mode: 'password' })
  await closed.frame.getByRole('heading', { name: 'report' }).waitFor()
  expect(await closed.frame.locator('iframe').count()).toBe(0)
  expect(closed.asked).toEqual([])
  await closed.close()
  const strange = await openCard({ url: 'javascript:alert(1)', slug: 'x' })
  await strange.page.waitForFunction('heard.some(({ method }) => method === "ui/notifications/initialized")')
  expect(await strange.frame.locator('main').isHidden()).toBe(true)
  await strange.close()
})
