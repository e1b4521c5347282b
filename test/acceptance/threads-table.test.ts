/**
 * Who × operation for what is said about drops, generated: everyone who might come, every address at which threads are
 * read or changed, every way in which a drop can be seen. A small model says what each of them is answered.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { PASSWORD } from '../support/accounts.ts'
import { apiFor, fileForm } from '../support/api.ts'
import { formFields, FormBrowser } from '../support/form-browser.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

/** What a person is to the threads of a drop. */
type Standing = 'member' | 'comment' | 'view' | 'reading member' | 'other account' | 'no one'
type Whose = 'own' | "another's"

interface Who {
  readonly standing: Standing
  readonly token?: string
  readonly headers?: Record<string, string>
  /** Comes with a cookie, and so has a page too. */
  readonly browser?: FormBrowser
}
interface Thread {
  readonly id: string
  readonly messages: { id: string }[]
}
interface Drop {
  readonly id: string
  readonly slug: string
  readonly path: string
}

let stack: Stack
let owner: Account
let people: Record<'stranger' | 'commenter' | 'looker' | 'removed', Account>
let nextSlug = 0

beforeAll(async () => {
  stack = await sharedStack()
  owner = await stack.createAccount('business', { password: PASSWORD })
  people = {
    stranger: await stack.createAccount('free', { password: PASSWORD }),
    commenter: await stack.createAccount('free', { password: PASSWORD }),
    looker: await stack.createAccount('free', { password: PASSWORD }),
    removed: await stack.createAccount('free', { password: PASSWORD }),
  }
})

/** The model: what the operation answers to who stands so. */
function expected(standing: Standing, needs: Needs, whose: Whose, visible: string): number {
  const { done, deed } = needs
  switch (standing) {
    case 'no one':
      return 401
    case 'other account':
      return 404
    case 'reading member':
      return deed === 'read' ? done : 403
    case 'view':
      return deed === 'read' && visible === 'viewers' ? done : 403
    case 'comment':
      return deed === 'read' || deed === 'write' || whose === 'own' ? done : 403
    case 'member':
      return deed === 'edit' && whose !== 'own' ? 403 : done
    default:
      return standing satisfies never
  }
}

interface Needs {
  readonly deed: 'read' | 'write' | 'settle' | 'edit' | 'delete'
  readonly done: number
}
interface Operation extends Needs {
  readonly method: string
  path(drop: Drop, thread: Thread): string
  readonly json?: unknown
}

const said = { page: '/', body: 'About the page.' }
const OPERATIONS: Readonly<Record<string, Operation>> = {
  'lists threads': { deed: 'read', done: 200, method: 'GET', path: ({ path }) => `${path}/threads?state=all` },
  'lists what must be': { deed: 'read', done: 200, method: 'GET', path: ({ path }) => `${path}/threads?label=must` },
  'opens a thread': { deed: 'write', done: 201, method: 'POST', path: ({ path }) => `${path}/threads`, json: said },
  answers: {
    deed: 'write',
    done: 201,
    method: 'POST',
    path: ({ path }, { id }) => `${path}/threads/${id}/messages`,
    json: { body: 'Me too.' },
  },
  resolves: {
    deed: 'settle',
    done: 200,
    method: 'PATCH',
    path: ({ path }, { id }) => `${path}/threads/${id}`,
    json: { state: 'resolved' },
  },
  reopens: {
    deed: 'settle',
    done: 200,
    method: 'PATCH',
    path: ({ path }, { id }) => `${path}/threads/${id}`,
    json: { state: 'open' },
  },
  labels: {
    deed: 'settle',
    done: 200,
    method: 'PATCH',
    path: ({ path }, { id }) => `${path}/threads/${id}`,
    json: { label: 'must' },
  },
  'changes words': {
    deed: 'edit',
    done: 200,
    method: 'PATCH',
    path: ({ path }, { messages }) => `${path}/messages/${messages[0]!.id}`,
    json: { body: 'Better.' },
  },
  'deletes words': {
    deed: 'delete',
    done: 204,
    method: 'DELETE',
    path: ({ path }, { messages }) => `${path}/messages/${messages[0]!.id}`,
  },
}

/** The review page and what its script and edges ask for: who may read the threads sees all of it, the others nothing. */
const PAGES = [
  ['GET', ''],
  ['GET', '/list'],
  ['GET', '/frame'],
  ['GET', '/changes?since=1'],
  ['POST', '/here'],
  ['GET', '/pass'],
] as const

/** The model of these. The page itself asks everyone to come in who sees nothing of it. */
function expectedAt(standing: Standing, page: string, visible: string): number {
  switch (standing) {
    case 'member':
    case 'comment':
      return 200
    case 'view':
      if (visible === 'viewers') return 200
      return page === '' ? 401 : 403
    case 'other account':
      return page === '/pass' ? 404 : 401
    default:
      return 401
  }
}

const ask = (who: Who, method: string, path: string, json?: unknown) =>
  stack.fetch(path, {
    method,
    ...(who.token === undefined ? {} : { token: who.token }),
    headers: { ...who.headers, ...(who.browser && { cookie: cookieOf(who.browser), origin: stack.baseUrl }) },
    ...(json === undefined ? {} : { json }),
  })
const cookieOf = ({ cookies }: FormBrowser): string => [...cookies].map((pair) => pair.join('=')).join('; ')
const byOwner = (method: string, path: string, json?: unknown) =>
  ask({ standing: 'member', token: owner.token }, method, path, json)

async function newDrop(fields: Record<string, string>): Promise<Drop> {
  const slug = `whose-${process.pid}-${nextSlug++}`
  const api = apiFor(stack, owner)
  const { id } = (await api.create({ slug })).json<{ id: string }>()
  const answer = await api.upload(id, fileForm('page.html', '<!doctype html><p>Secret of the plan.</p>', fields))
  expect(answer.status, answer.text()).toBe(201)
  return { id, slug, path: `/api/v1/sites/${id}` }
}

async function linkTo(drop: Drop, role: 'comment' | 'view'): Promise<{ id: string; url: string; token: string }> {
  const link = (await byOwner('POST', `${drop.path}/guest-links`, { role })).json<{ id: string; url: string }>()
  return { ...link, token: link.url.split('/').at(-1)! }
}
const byLink = (standing: Standing, { token }: { token: string }): Who => ({
  standing,
  headers: { 'dropway-guest': token },
})

async function everyone(drop: Drop): Promise<Record<string, Who>> {
  const add = (account: Account, role: string) =>
    byOwner('POST', `${drop.path}/viewers`, { viewers: [{ email: account.email }], role, invite: false })
  await add(people.commenter, 'comment')
  await add(people.looker, 'view')
  const ended = await linkTo(drop, 'comment')
  await byOwner('DELETE', `${drop.path}/guest-links/${ended.id}`)
  const entered = await linkTo(drop, 'comment')
  const browser = new FormBrowser(stack, '198.51.100.91')
  await browser.send(new URL(entered.url).pathname, { name: 'Ada' })
  const session = new FormBrowser(stack, '198.51.100.92')
  await session.send('/signin', { email: owner.email, password: PASSWORD })
  const narrow = async (wish: object) =>
    (await session.api('/tokens', { json: { name: 'narrow', ...wish } })).json<{ token: string }>().token
  const elsewhere = await newDrop({})
  return {
    'a member': { standing: 'member', token: owner.token },
    'a member in the browser': { standing: 'member', browser: session },
    'a token that only reads': { standing: 'reading member', token: await narrow({ scopes: ['read'] }) },
    'a token for another drop': { standing: 'other account', token: await narrow({ sites: [elsewhere.id] }) },
    'a commenting viewer with an account': { standing: 'comment', token: people.commenter.token },
    'a looking viewer with an account': { standing: 'view', token: people.looker.token },
    'another account': { standing: 'other account', token: people.stranger.token },
    'a commenting guest': byLink('comment', await linkTo(drop, 'comment')),
    'a commenting guest in the browser': { standing: 'comment', browser },
    'a looking guest': byLink('view', await linkTo(drop, 'view')),
    'a guest whose link has ended': byLink('no one', ended),
    'a guest of another drop': byLink('no one', await linkTo(elsewhere, 'comment')),
    'a forged link': byLink('no one', { token: 'x'.repeat(32) }),
    'a wrong token': { standing: 'no one', token: 'dw_nothing' },
    'no one': { standing: 'no one' },
  }
}

/** Those who come with a browser, to the review page. */
async function everyBrowser(drop: Drop): Promise<Record<string, Who & { browser?: FormBrowser }>> {
  const signedIn = async ({ email }: Account, from: string): Promise<FormBrowser> => {
    const browser = new FormBrowser(stack, from)
    await browser.send('/signin', { email, password: PASSWORD })
    return browser
  }
  const all = await everyone(drop)
  const added = await byOwner('POST', `${drop.path}/viewers`, {
    viewers: [{ email: people.removed.email }],
    role: 'comment',
    invite: false,
  })
  const [{ id }] = added.json<{ viewers: [{ id: string }] }>().viewers
  const removed = await signedIn(people.removed, '198.51.100.96')
  expect((await removed.open(`/review/${drop.slug}`)).status).toBe(200)
  expect((await byOwner('DELETE', `${drop.path}/viewers/${id}`)).status).toBe(204)
  // A link that lets its holder look is no way to the review page, and is not used up by the attempt.
  const link = await linkTo(drop, 'view')
  const guest = new FormBrowser(stack, '198.51.100.97')
  const base = `/review/${drop.slug}`
  const fields = { ...formFields((await guest.open(base)).text(), `${base}/code`), name: 'Eve' }
  await guest.post(`${base}/guest/${link.token}`, new URLSearchParams(fields))
  expect([...guest.cookies.keys()].filter((name) => name.includes('dropway-review'))).toEqual([])
  const links = (await byOwner('GET', `${drop.path}/guest-links`)).json<{
    guest_links: { id: string; uses: number }[]
  }>()
  expect(links.guest_links.find((each) => each.id === link.id)).toMatchObject({ uses: 0 })
  return {
    'a member': all['a member in the browser']!,
    'a commenting guest': all['a commenting guest in the browser']!,
    'a looking guest': { standing: 'no one', browser: guest },
    'a commenting viewer': { standing: 'comment', browser: await signedIn(people.commenter, '198.51.100.93') },
    'a looking viewer': { standing: 'view', browser: await signedIn(people.looker, '198.51.100.94') },
    'another account': { standing: 'other account', browser: await signedIn(people.stranger, '198.51.100.95') },
    'a viewer who was removed': { standing: 'other account', browser: removed },
    'no one': { standing: 'no one' },
  }
}

const open = async (drop: Drop, who: Who): Promise<Thread> => {
  const answer = await ask(who, 'POST', `${drop.path}/threads`, said)
  expect(answer.status, answer.text()).toBe(201)
  return answer.json<Thread>()
}

const ACCESS: Readonly<Record<'public' | 'password' | 'viewers', Record<string, string>>> = {
  public: {},
  password: { password: 'open sesame' },
  viewers: { access_mode: 'viewers' },
}

describe.each([
  ['public', 'commenters'],
  ['viewers', 'commenters'],
  ['viewers', 'viewers'],
] as const)('a drop for %s, whose threads are for %s', (mode, visible) => {
  test('every operation answers everyone as the model says, and what is refused changes nothing', async () => {
    const drop = await newDrop(ACCESS[mode])
    expect((await byOwner('PATCH', drop.path, { threads_visible: visible })).status).toBe(200)
    const all = await everyone(drop)
    const other = byLink('comment', await linkTo(drop, 'comment'))
    const wrong: string[] = []
    let asked = 0
    /** A thread of another person that nothing was done to yet. */
    let left: Thread | undefined
    for (const [name, who] of Object.entries(all))
      for (const [operation, { method, path, json, ...needs }] of Object.entries(OPERATIONS)) {
        const mayWrite = who.standing === 'member' || who.standing === 'comment'
        const hasOwner = needs.deed !== 'read' && needs.deed !== 'write'
        for (const whose of hasOwner && mayWrite ? (['own', "another's"] as const) : (["another's"] as const)) {
          const thread = whose === 'own' ? await open(drop, who) : (left ??= await open(drop, other))
          const answer = await ask(who, method, path(drop, thread), json)
          asked++
          const wanted = expected(who.standing, needs, whose, visible)
          if (answer.status !== wanted) wrong.push(`${name} ${operation} (${whose}): ${answer.status}, not ${wanted}`)
          if (wanted >= 400 && answer.text().includes('Secret of the plan')) wrong.push(`${name} ${operation}: told`)
          if (wanted < 400) {
            left = undefined
            continue
          }
          const shown = await byOwner('GET', `${drop.path}/threads?state=all`)
          const now = shown.json<{ threads: object[] }>().threads.find((each) => (each as Thread).id === thread.id)
          expect(now, `${name} ${operation}`).toMatchObject({
            state: 'open',
            label: null,
            messages: [{ body: said.body }],
          })
          expect((now as Thread).messages).toHaveLength(1)
        }
      }
    expect(wrong).toEqual([])
    expect(asked).toBeGreaterThan(150)
  })
})

test.each([
  ['public', 'commenters'],
  ['password', 'commenters'],
  ['viewers', 'commenters'],
  ['viewers', 'viewers'],
] as const)('the review page of a drop for %s is for who reads its threads, for %s', async (mode, visible) => {
  const drop = await newDrop(ACCESS[mode])
  await byOwner('PATCH', drop.path, { threads_visible: visible })
  const all = await everyBrowser(drop)
  await open(drop, all['a member']!)
  const wrong: string[] = []
  for (const [name, who] of Object.entries(all))
    for (const [method, page] of PAGES) {
      const answer = await ask(who, method, `/review/${drop.slug}${page}`)
      const wanted = expectedAt(who.standing, page, visible)
      if (answer.status !== wanted) wrong.push(`${name} ${page}: ${answer.status}, not ${wanted}`)
      if (wanted !== 200 && /About the page|dropway-review=|"pass"/.test(answer.text()))
        wrong.push(`${name} ${page}: told`)
    }
  expect(wrong).toEqual([])
  // A form or a script of another page does nothing, whoever is signed in.
  for (const name of ['a member', 'a commenting guest']) {
    const cookie = cookieOf(all[name]!.browser!)
    const headers = { cookie, origin: 'https://elsewhere.example', 'sec-fetch-site': 'cross-site' }
    const forged = await stack.fetch(`${drop.path}/threads`, { method: 'POST', json: said, headers })
    expect(forged.status, name).toBeGreaterThanOrEqual(401)
  }
  const shown = await byOwner('GET', `${drop.path}/threads?state=all`)
  expect(shown.json<{ threads: object[] }>().threads).toHaveLength(1)
})

test('threads of a drop that is deleted are for no one, whoever asks', async () => {
  const drop = await newDrop({})
  const all = await everyone(drop)
  await open(drop, all['a member']!)
  expect((await byOwner('DELETE', drop.path)).status).toBe(204)
  for (const [name, who] of Object.entries(all)) {
    const answer = await ask(who, 'GET', `${drop.path}/threads?state=all`)
    expect([401, 404], name).toContain(answer.status)
  }
})
