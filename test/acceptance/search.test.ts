/** Search over one's own drops: by name, title and text, through every door, and nothing that is another's. */
import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { IS_DEEP } from '../support/depth.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { connectWithToken } from '../support/mcp-client.ts'
import { PASSWORD } from '../support/oauth-client.ts'
import { sharedStack, type Account, type Published, type Stack } from '../support/stack.ts'

/** A deep run judges what was promised, which is so long after a publish; another waits for a second try too. */
const FOUND_WITHIN_MS = IS_DEEP ? 8000 : 200_000

const word = (): string => `w${randomBytes(6).toString('hex')}`
const [REPORT, SECRET, FOREIGN] = [word(), word(), word()]

let stack: Stack
let owner: Account
let stranger: Account
let report: Published
let closed: Published

interface Found {
  readonly id: string
}

const ask = async (q: string, token = owner.token): Promise<string[]> => {
  const answer = await stack.fetch(`/api/v1/sites?q=${encodeURIComponent(q)}`, { token })
  expect(answer.status, answer.text()).toBe(200)
  return answer.json<Found[]>().map(({ id }) => id)
}

/** Asks until it is found. */
async function found(q: string, token = owner.token): Promise<string[]> {
  const until = Date.now() + FOUND_WITHIN_MS
  for (;;) {
    const ids = await ask(q, token)
    if (ids.length > 0 || Date.now() > until) return ids
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

beforeAll(async () => {
  stack = await sharedStack()
  ;[owner, stranger] = await Promise.all([
    stack.createAccount('plus', { password: PASSWORD }),
    stack.createAccount('plus'),
  ])
  report = await stack.publish(owner, {
    'index.html': `<title>Quarterly figures</title><script>let hidden${REPORT}</script><h1>Umsätze</h1><p>All about ${REPORT}.</p>`,
    'details/index.html': '<h1>東京都の報告書</h1><p>売上は四半期ごとに増えました。</p>',
  })
  closed = await stack.publish(owner, { 'index.html': `<p>${SECRET}</p>` })
  const named = { method: 'PATCH', token: owner.token, json: { name: 'Übersicht ОТЧЁТЫ' } }
  expect((await stack.fetch(`/api/v1/sites/${report.id}`, named)).status).toBe(200)
  const access = { method: 'PATCH', token: owner.token, json: { access_mode: 'viewers' } }
  expect((await stack.fetch(`/api/v1/sites/${closed.id}`, access)).status).toBe(200)
  await stack.publish(stranger, { 'index.html': `<p>${FOREIGN} ${REPORT}</p>` })
  expect(await found(REPORT)).toEqual([report.id])
  expect(await found(SECRET)).toEqual([closed.id])
  expect(await found(FOREIGN, stranger.token)).toHaveLength(1)
})

describe('what finds a drop', () => {
  test.each([
    ['a word of its text', () => REPORT],
    ['the beginning of one', () => REPORT.slice(0, 8)],
    ['in any case', () => REPORT.toUpperCase()],
    ['without accents', () => 'umsatze'],
    ['its title', () => 'quarterly figures'],
    ['a part of its title', () => 'arterly'],
    ['its slug', () => report.slug],
    ['its name, in other letters than A to Z and in any case', () => 'übersicht отчёты'],
    ['words of several pages', () => `${REPORT} 東京都`],
    ['two characters of a text without spaces', () => '報告'],
    ['more of them', () => '四半期ごとに'],
    ['one of them', () => '売'],
  ])('%s', async (_what, question) => {
    expect(await ask(question())).toContain(report.id)
  })

  test.each([
    ['a word that is nowhere', () => word()],
    ['one of two', () => `${REPORT} ${word()}`],
    ['what only a script says', () => `hidden${REPORT}`],
    ['characters in another order', () => '都京東'],
    ['signs alone', () => "%' & | !"],
  ])('not %s', async (_what, question) => {
    expect(await ask(question())).not.toContain(report.id)
  })

  test('an empty question finds all, as a list without one does', async () => {
    const all = (await stack.fetch('/api/v1/sites', { token: owner.token })).json<Found[]>().map(({ id }) => id)
    expect(await ask('')).toEqual(all)
    expect(await ask('   ')).toEqual(all)
    expect(all.toSorted()).toEqual([report.id, closed.id].toSorted())
  })

  test('a question is a line, not a page', async () => {
    const answer = await stack.fetch(`/api/v1/sites?q=${'x'.repeat(201)}`, { token: owner.token })
    expect([answer.status, answer.json<{ error: string }>().error]).toEqual([400, 'invalid_request'])
  })

  test('a new version is found by its own words, and no longer by those of the one before', async () => {
    const [before, after] = [word(), word()]
    const drop = await stack.publish(owner, `<p>${before}</p>`)
    expect(await found(before)).toEqual([drop.id])
    await stack.publish(owner, `<p>${after}</p>`, drop)
    expect(await found(after)).toEqual([drop.id])
    expect(await ask(before)).toEqual([])
    await stack.fetch(`/api/v1/sites/${drop.id}`, { method: 'DELETE', token: owner.token })
    expect(await ask(after)).toEqual([])
  })
})

describe('who finds what', () => {
  const narrow = async (sites: string[]): Promise<string> => {
    const browser = new FormBrowser(stack, '198.51.100.77')
    await browser.send('/signin', { email: owner.email, password: PASSWORD })
    const made = await browser.api('/tokens', { json: { name: 'narrow', scopes: ['read'], sites } })
    return made.json<{ token: string }>().token
  }

  test.each<[string, () => Promise<string>, () => string, () => string[]]>([
    ['its owner', async () => owner.token, () => REPORT, () => [report.id]],
    ['its owner, what only viewers may see', async () => owner.token, () => SECRET, () => [closed.id]],
    ['its owner, nothing of another', async () => owner.token, () => FOREIGN, () => []],
    ['a stranger, nothing', async () => stranger.token, () => SECRET, () => []],
    ['a token for one drop, that drop', () => narrow([report.id]), () => REPORT, () => [report.id]],
    ['a token for one drop, no other', () => narrow([report.id]), () => SECRET, () => []],
    ['a token for one drop, no other by its name', () => narrow([report.id]), () => closed.slug, () => []],
  ])('%s', async (_who, token, question, expected) => {
    const ids = await ask(question(), await token())
    expect(ids).toEqual(expected())
  })

  test('without a token there is no answer', async () => {
    expect((await stack.fetch(`/api/v1/sites?q=${REPORT}`)).status).toBe(401)
  })
})

describe('through other doors', () => {
  test('an assistant finds last month’s report and updates it in two calls', async () => {
    const assistant = await connectWithToken(stack, owner.token, 'modern')
    const search = await assistant.callTool({ name: 'service_search', arguments: { query: `quarterly ${REPORT}` } })
    const [drop] = (search.structuredContent as { drops: { slug: string; id: string }[] }).drops
    expect(drop?.id).toBe(report.id)
    const put = [{ path: 'details/index.html', content: '<h1>東京都の報告書</h1><p>四半期ごとに売上</p>' }]
    const edited = await assistant.callTool({ name: 'service_edit_files', arguments: { id: drop!.slug, put } })
    expect(edited.isError).toBeFalsy()
    expect((edited.structuredContent as { version: number }).version).toBe(2)
  })

  test('the dashboard finds it by its text', async () => {
    const browser = new FormBrowser(stack, '198.51.100.78')
    await browser.send('/signin', { email: owner.email, password: PASSWORD })
    const page = (await browser.open(`/sites?q=${SECRET}`)).text()
    expect([page.includes(closed.slug), page.includes(report.slug)]).toEqual([true, false])
  })
})
