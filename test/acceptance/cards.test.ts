/** The picture for where a drop's address is shared: off until its owner wishes it, never of what not everyone may see. */
import { beforeAll, describe, expect, test } from 'vitest'
import { FormBrowser } from '../support/form-browser.ts'
import { connectWithToken } from '../support/mcp-client.ts'
import { PASSWORD } from '../support/oauth-client.ts'
import { sharedStack, type Account, type Published, type Stack } from '../support/stack.ts'

const PLAIN = '<!doctype html><html><head><title>Quarterly figures</title></head><body><p>one</p></body></html>'
const OWN =
  '<!doctype html><html><head><title>Own</title><meta property="og:image" content="/own.png"></head><body></body></html>'

let stack: Stack
let owner: Account

beforeAll(async () => {
  stack = await sharedStack()
  owner = await stack.createAccount('plus', { password: PASSWORD })
})

interface Shown {
  readonly card: boolean
  readonly card_url: string | null
}

async function patch(drop: Published, json: Record<string, unknown>): Promise<Shown> {
  const answer = await stack.fetch(`/api/v1/sites/${drop.id}`, { method: 'PATCH', token: owner.token, json })
  expect(answer.status, answer.text()).toBe(200)
  return answer.json<Shown>()
}

const pathOf = (url: string): string => new URL(url).pathname + new URL(url).search
const pictureIn = (page: string): string | undefined => /<meta property="og:image" content="([^"]+)">/.exec(page)?.[1]

describe('a drop without the wish', () => {
  test('is sent as it was written, and has no picture', async () => {
    const drop = await stack.publish(owner, { 'index.html': PLAIN })
    const site = (await stack.fetch(`/api/v1/sites/${drop.id}`, { token: owner.token })).json<Shown>()
    expect([site.card, site.card_url]).toEqual([false, null])
    expect((await stack.visit(drop.slug)).text()).toBe(PLAIN)
    expect((await stack.visit(drop.slug, '/.dropway/card.png')).status).toBe(404)
  })
})

describe('a drop with a card', () => {
  let drop: Published
  let url: string

  beforeAll(async () => {
    drop = await stack.publish(owner, { 'index.html': PLAIN, 'own.html': OWN, '.well-known/x.txt': 'x' })
    url = (await patch(drop, { card: true })).card_url!
  })

  test('has it when the answer is there: pages name it, at the end of their head, and nothing else of them changes', async () => {
    const page = (await stack.visit(drop.slug)).text()
    expect(pictureIn(page)).toBe(url)
    expect(page.replace(/<meta (?:property="og|name="twitter)[^>]*>/g, '')).toBe(PLAIN)
    expect(page.indexOf('og:image')).toBeLessThan(page.indexOf('</head>'))
    expect(url).toMatch(new RegExp(`^https://${drop.slug}\\.[^/]+/\\.dropway/card\\.png\\?v=[0-9a-f]{12}$`))
  })

  test('a page that chose its own picture is sent as it was written', async () => {
    expect((await stack.visit(drop.slug, '/own')).text()).toBe(OWN)
  })

  test('the picture is a PNG of 1200 × 630 that caches may keep and ask for again', async () => {
    const answer = await stack.visit(drop.slug, pathOf(url))
    expect([answer.status, answer.header('content-type')]).toEqual([200, 'image/png'])
    expect(answer.header('x-content-type-options')).toBe('nosniff')
    expect([answer.body.readUInt32BE(16), answer.body.readUInt32BE(20)]).toEqual([1200, 630])
    const etag = answer.header('etag')!
    const again = await stack.visit(drop.slug, pathOf(url), { headers: { 'if-none-match': etag } })
    expect(again.status).toBe(304)
    const head = await stack.visit(drop.slug, pathOf(url), { method: 'HEAD' })
    expect([head.status, head.header('content-length')]).toEqual([200, String(answer.body.length)])
  })

  test('a preview has none', async () => {
    const versions = await stack.fetch(`/api/v1/sites/${drop.id}/versions`, { token: owner.token })
    const [{ preview_url: preview }] = versions.json<[{ preview_url: string }]>()
    const page = await stack.fetch(preview)
    expect(page.status).toBe(200)
    expect(page.text()).toBe(PLAIN)
    expect((await stack.fetch(new URL('/.dropway/card.png', preview).href)).status).toBe(404)
  })

  test('another title is another picture, at another address, when the 201 is there', async () => {
    const changed = await stack.publish(owner, { 'index.html': PLAIN })
    const first = (await patch(changed, { card: true })).card_url!
    const before = (await stack.visit(changed.slug, pathOf(first))).body
    await stack.publish(owner, { 'index.html': PLAIN.replace('Quarterly', 'Yearly') }, changed)
    const second = pictureIn((await stack.visit(changed.slug)).text())!
    expect(second).not.toBe(first)
    expect((await stack.visit(changed.slug, pathOf(second))).body.equals(before)).toBe(false)
  })

  test('it ends with the wish, and whenever the drop is protected; it is back when everyone may see the drop again', async () => {
    const bare = async (): Promise<void> => {
      expect((await stack.visit(drop.slug, pathOf(url))).status).not.toBe(200)
    }
    for (const [closed, opened] of [
      [{ password: 'open sesame please' }, { password: null }],
      [{ access_mode: 'viewers' }, { access_mode: 'public' }],
      [{ card: false }, { card: true }],
    ]) {
      expect((await patch(drop, closed!)).card_url).toBeNull()
      await bare()
      expect((await patch(drop, opened!)).card_url).toBe(url)
      expect((await stack.visit(drop.slug, pathOf(url))).status).toBe(200)
      expect(pictureIn((await stack.visit(drop.slug)).text())).toBe(url)
    }
  })

  test('no file of the drop stands in for it', async () => {
    const planted = await stack.publish(owner, { 'index.html': PLAIN, '.dropway/card.png': 'not a picture' })
    const picture = (await patch(planted, { card: true })).card_url!
    expect((await stack.visit(planted.slug, pathOf(picture))).header('content-type')).toBe('image/png')
    expect((await stack.visit(planted.slug, pathOf(picture))).body.subarray(1, 4).toString()).toBe('PNG')
  })

  test('the list of drops and the gallery show it', async () => {
    const browser = new FormBrowser(stack, '198.51.100.91')
    await browser.send('/signin', { email: owner.email, password: PASSWORD })
    const list = await browser.open(`/sites?q=${drop.slug}`)
    expect(list.text()).toContain(`src="${url.replaceAll('&', '&amp;')}"`)
    expect(list.header('content-security-policy')).toMatch(/img-src 'self' data: blob: https:\/\/\*\.[^;\s]+;/)
    await patch(drop, { gallery: true })
    const entries = async () => (await stack.fetch('/api/v1/gallery')).json<(Shown & { slug: string })[]>()
    await expect.poll(async () => (await entries()).find(({ slug }) => slug === drop.slug)?.card_url).toBe(url)
    await patch(drop, { gallery: false })
  })

  test('an assistant switches it on', async () => {
    const asked = await stack.publish(owner, { 'index.html': PLAIN })
    const assistant = await connectWithToken(stack, owner.token, 'modern')
    const { tools } = await assistant.listTools()
    const tool = tools.find(({ inputSchema }) => 'llms_txt' in (inputSchema.properties ?? {}))!
    const done = await assistant.callTool({ name: tool.name, arguments: { id: asked.slug, card: true } })
    expect(done.isError).toBeFalsy()
    expect(pictureIn((await stack.visit(asked.slug)).text())).toBeDefined()
  })
})

test('a free drop’s badge and its card stand in the page together', async () => {
  const free = await stack.createAccount('free')
  const drop = await stack.publish(free, { 'index.html': PLAIN })
  const answer = await stack.fetch(`/api/v1/sites/${drop.id}`, {
    method: 'PATCH',
    token: free.token,
    json: { card: true },
  })
  const page = (await stack.visit(drop.slug)).text()
  expect(pictureIn(page)).toBe(answer.json<Shown>().card_url)
  expect(page).toContain('dropway-badge')
})
