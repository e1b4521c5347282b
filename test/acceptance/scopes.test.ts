/**
 * Every operation of the document with every kind of token, on drops of the token, of its organisation and of another:
 * each cell is predicted from what the document says the operation needs.
 */
import { createHash, randomUUID } from 'node:crypto'
import { countTokens } from 'gpt-tokenizer'
import { beforeAll, describe, expect, test } from 'vitest'
import { apiFor, fileForm } from '../support/api.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { connectWithToken } from '../support/mcp-client.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

const PASSWORD = 'correct horse battery'
const SCOPES = ['read', 'publish', 'manage'] as const
type Scope = (typeof SCOPES)[number]

interface Operation {
  readonly operationId: string
  readonly security: readonly { readonly token?: readonly Scope[]; readonly session?: readonly string[] }[]
  readonly requestBody?: { readonly content: Record<string, { readonly example?: unknown }> }
}

interface Cell {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

interface Refusal {
  readonly error: string
  readonly detail: string
}

interface Token {
  readonly id: string
  readonly token: string
  readonly scopes: readonly Scope[] | null
  readonly sites: readonly string[] | null
  readonly expires_at: string | null
}

let stack: Stack
let owner: Account
let browser: FormBrowser
let cells: readonly Cell[]
let drops: { bound: string; beside: string; foreign: string }
const tokens = new Map<string, Token>()

const create = async (wish: Record<string, unknown>): Promise<Token> =>
  (await browser.api('/tokens', { json: { name: 'scoped', ...wish } })).json<Token>()

const hashOf = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex')

const newDrop = async (account: Account): Promise<string> => (await apiFor(stack, account).create()).json().id

beforeAll(async () => {
  stack = await sharedStack()
  owner = await stack.createAccount('business', { password: PASSWORD })
  const stranger = await stack.createAccount('business')
  browser = new FormBrowser(stack, '198.51.100.139')
  expect((await browser.send('/signin', { email: owner.email, password: PASSWORD })).status).toBe(303)
  drops = { bound: await newDrop(owner), beside: await newDrop(owner), foreign: await newDrop(stranger) }
  for (const scope of SCOPES) {
    tokens.set(scope, await create({ scopes: [scope] }))
    tokens.set(`${scope} of one drop`, await create({ scopes: [scope], sites: [drops.bound] }))
  }
  tokens.set('everything', await create({}))
  const document = (await stack.fetch('/api/v1/openapi.json')).json<{
    paths: Record<string, Record<string, Operation>>
  }>()
  cells = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method} ${path}`,
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )
})

const isOpen = ({ operation }: Cell): boolean => operation.security.length === 0
const scopeOf = ({ operation }: Cell): Scope | undefined =>
  operation.security.flatMap(({ token = [] }) => token).find((scope) => SCOPES.includes(scope))
/** The path names a drop, and then perhaps something of it. */
const isOfDrop = ({ path }: Cell): boolean => path.startsWith('/sites/{id}')

function suffices({ scopes, sites }: Token, cell: Cell): boolean {
  const needed = scopeOf(cell)
  if (scopes === null && sites === null) return true
  return needed !== undefined && SCOPES.indexOf(scopes![0]!) >= SCOPES.indexOf(needed)
}

function call({ method, path, operation }: Cell, token: Token, siteId: string, body?: string) {
  const json = operation.requestBody?.content['application/json']
  const text = body ?? (json ? JSON.stringify(json.example) : undefined)
  const address = path.replace('{id}', siteId).replaceAll(/\{\w+\}/g, 'unknown')
  return stack.fetch(`/api/v1${address}`, {
    method,
    token: token.token,
    ...(text === undefined || method === 'GET' ? {} : { body: text, headers: { 'content-type': 'application/json' } }),
  })
}

test('every operation that takes a credential names one scope, or the session', () => {
  const undecided = cells.filter((cell) => !isOpen(cell) && scopeOf(cell) === undefined)
  expect(undecided.every(({ operation }) => operation.security.some(({ session }) => session))).toBe(true)
  expect(cells.filter((cell) => scopeOf(cell) !== undefined).length).toBeGreaterThan(30)
  const ofPeople = cells.filter(({ path }) => /^\/(?:organisations|invitations|billing)/.test(path))
  expect(ofPeople.every(({ operation }) => operation.security.some(({ session }) => session))).toBe(true)
})

describe('a scope that does not suffice is refused before the body is looked at', () => {
  test.each(SCOPES.flatMap((scope) => [scope, `${scope} of one drop`]))('%s', async (name) => {
    const token = tokens.get(name)!
    const refused = cells.filter((cell) => !isOpen(cell) && !suffices(token, cell))
    const wrong = await Promise.all(
      refused.map(async (cell, index) => {
        const siteId = Object.values(drops)[index % 3]!
        const answer = await call(cell, token, siteId, '{ not json')
        const isRefused = answer.status === 403 && answer.json<Refusal>().error === 'insufficient_scope'
        return isRefused ? [] : [`${cell.name}: ${answer.status}`]
      }),
    )
    expect(wrong.flat()).toEqual([])
  })
})

/** These would end what the others are asked about, or the token that asks; the tests of deleting have them. */
const isDestructive = ({ method, path }: Cell): boolean => method === 'DELETE' && path === '/sites/{id}'

describe('a scope that suffices reaches the drops of the token and no others', () => {
  test.each(SCOPES.flatMap((scope) => [scope, `${scope} of one drop`]))('%s', async (name) => {
    const token = tokens.get(name)!
    const allowed = cells.filter((cell) => isOfDrop(cell) && suffices(token, cell))
    const asked = allowed.flatMap((cell) => Object.entries(drops).map(([kind, siteId]) => ({ cell, kind, siteId })))
    const wrong = await Promise.all(
      asked.map(async ({ cell, kind, siteId }) => {
        const isReached = kind === 'bound' || (kind === 'beside' && token.sites === null)
        if (isReached && isDestructive(cell)) return []
        const answer = await call(cell, token, siteId)
        const refusal = answer.status >= 400 ? answer.json<Refusal>() : undefined
        const isAbsent = answer.status === 404 && refusal?.detail.includes('no such drop') === true
        const isRefused = answer.status === 401 || refusal?.error === 'insufficient_scope' || answer.status >= 500
        const isPredicted = !isRefused && isAbsent !== isReached
        return isPredicted ? [] : [`${cell.name}, ${kind}: ${answer.status} ${refusal?.detail}`]
      }),
    )
    expect(wrong.flat()).toEqual([])
  })

  test('a deleted drop is one that the token manages', async () => {
    const fresh = await newDrop(owner)
    const bound = await create({ scopes: ['manage'], sites: [fresh] })
    for (const [name, status] of [
      ['publish', 403],
      ['manage of one drop', 404],
    ] as const)
      expect(
        (await stack.fetch(`/api/v1/sites/${fresh}`, { token: tokens.get(name)!.token, method: 'DELETE' })).status,
      ).toBe(status)
    expect((await stack.fetch(`/api/v1/sites/${fresh}`, { token: bound.token, method: 'DELETE' })).status).toBe(204)
  })
})

test('what only another drop has, a bound token sends itself: hashes tell it nothing of the others', async () => {
  const contents = { published: `published ${randomUUID()}`, sent: `sent ${randomUUID()}` }
  const listOf = (content: string) => [{ path: 'index.html', sha256: hashOf(content), size: content.length }]
  const { bound, beside } = drops
  const start = async (name: string, site: string, content: string) =>
    (
      await stack.fetch(`/api/v1/sites/${site}/uploads`, {
        token: tokens.get(name)!.token,
        json: { files: listOf(content) },
      })
    ).json<{ upload_id: string; missing: string[] }>()
  expect((await apiFor(stack, owner).upload(beside, fileForm('index.html', contents.published))).status).toBe(201)
  const { upload_id } = await start('publish', beside, contents.sent)
  const sent = await stack.fetch(`/api/v1/sites/${beside}/uploads/${upload_id}/blobs/${hashOf(contents.sent)}`, {
    method: 'PUT',
    token: tokens.get('publish')!.token,
    body: Buffer.from(contents.sent),
  })
  expect(sent.status).toBe(204)
  for (const content of Object.values(contents)) {
    expect((await start('publish of one drop', bound, content)).missing).toEqual([hashOf(content)])
    expect((await start('publish', bound, content)).missing).toEqual([])
  }
})

test('an unbound publish token makes drops, a bound one none; lists show what a token reaches', async () => {
  const made = await stack.fetch('/api/v1/sites', { token: tokens.get('publish')!.token, json: {} })
  expect(made.status).toBe(201)
  const refused = await stack.fetch('/api/v1/sites', { token: tokens.get('publish of one drop')!.token, json: {} })
  expect(refused.status).toBe(403)
  const idsOf = async (name: string): Promise<string[]> =>
    (await stack.fetch('/api/v1/sites', { token: tokens.get(name)!.token }))
      .json<{ id: string }[]>()
      .map(({ id }) => id)
  expect(await idsOf('read of one drop')).toEqual([drops.bound])
  expect(await idsOf('read')).toContain(drops.beside)
})

test('a token without scopes keeps everything, without an end', async () => {
  const { token, scopes, sites, expires_at } = tokens.get('everything')!
  expect({ scopes, sites, expires_at }).toEqual({ scopes: null, sites: null, expires_at: null })
  expect((await stack.fetch('/api/v1/organisations', { token, json: { name: 'By token' } })).status).toBe(201)
})

test.each([
  ['no scopes at all', { scopes: [] }, 400],
  ['an unknown scope', { scopes: ['admin'] }, 400],
  ['no drops', { scopes: ['read'], sites: [] }, 400],
  ['an unknown drop', { scopes: ['read'], sites: ['st_unknown'] }, 404],
  ['no time', { expires_in: 0 }, 400],
  ['half a second', { expires_in: 0.5 }, 400],
  ['more than ten years', { expires_in: 10 * 365 * 86_400 + 1 }, 400],
  ['ten years', { expires_in: 10 * 365 * 86_400 }, 201],
  ['a second', { expires_in: 1 }, 201],
])('a token with %s', async (_, wish, status) => {
  expect((await browser.api('/tokens', { json: { name: 'odd', ...wish } })).status).toBe(status)
})

test("another organisation's drop is unknown when a token is made", async () => {
  expect((await browser.api('/tokens', { json: { name: 'x', scopes: ['read'], sites: [drops.foreign] } })).status).toBe(
    404,
  )
})

test.each([
  ['read', ['service_list', 'service_read', 'service_search', 'service_threads']],
  [
    'publish',
    [
      'service_edit_files',
      'service_list',
      'service_promote',
      'service_publish',
      'service_read',
      'service_reply',
      'service_search',
      'service_threads',
      'service_upload',
    ],
  ],
  [
    'manage',
    [
      'service_delete',
      'service_domain',
      'service_edit_files',
      'service_list',
      'service_promote',
      'service_publish',
      'service_read',
      'service_reply',
      'service_search',
      'service_settings',
      'service_threads',
      'service_upload',
    ],
  ],
])('tools/list with the scope %s', async (scope, expected) => {
  const client = await connectWithToken(stack, tokens.get(scope)!.token, 'modern')
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name).toSorted()).toEqual(expected)
  expect(countTokens(JSON.stringify({ tools }))).toBeLessThanOrEqual(1800)
  const result = await client.callTool({ name: 'service_delete', arguments: { id: 'no-such-drop' } })
  const [said] = result.content as { text: string }[]
  expect(said!.text.startsWith(scope === 'manage' ? 'not_found' : 'insufficient_scope')).toBe(true)
})

describe('a publish says what is managed of a drop: at the first one with the scope publish, later with manage', () => {
  interface Drop {
    readonly id: string
    readonly slug: string
  }
  type Said = Readonly<Record<string, unknown>>
  /** Publishes and says something beside the content; undefined when it is done, else why not. */
  type Door = (drop: Drop, token: string, said: Said) => Promise<string | undefined>

  const refusalOf = (answer: Awaited<ReturnType<Stack['fetch']>>): string | undefined =>
    answer.status < 300 ? undefined : answer.json<Refusal>().error
  const byForm =
    (path: string, filename: string): Door =>
    async ({ id }, token, said) => {
      const body = path === 'upload' ? fileForm(filename, 'content') : new FormData()
      if (path !== 'upload') {
        body.append('files', new Blob(['content']), filename)
        body.append('paths', filename)
      }
      for (const [name, value] of Object.entries(said)) body.append(name, String(value))
      return refusalOf(await stack.fetch(`/api/v1/sites/${id}/${path}`, { token, method: 'POST', body }))
    }
  const byParts: Door = async ({ id }, token, said) => {
    const content = Buffer.from(`content ${randomUUID()}`)
    const sha256 = hashOf(content)
    const root = `/api/v1/sites/${id}/uploads`
    const json = { files: [{ path: 'index.html', sha256, size: content.length }], ...said }
    const { upload_id: upload } = (await stack.fetch(root, { token, json })).json<{ upload_id: string }>()
    await stack.fetch(`${root}/${upload}/blobs/${sha256}`, { token, method: 'PUT', body: content })
    return refusalOf(await stack.fetch(`${root}/${upload}/finish`, { token, method: 'POST' }))
  }
  const byTool =
    (name: string, sent: Said): Door =>
    async ({ slug }, token, said) => {
      const client = await connectWithToken(stack, token, 'modern')
      const result = await client.callTool({ name, arguments: { slug, replace: true, ...sent, ...said } })
      const [first] = result.content as { text: string }[]
      return result.isError === true ? first!.text.split(/\W/)[0] : undefined
    }
  const DOORS: Readonly<Record<string, { door: Door; says: Readonly<Record<string, Said>> }>> = (() => {
    const ofAll = {
      'the mode': { access_mode: 'viewers' },
      'a guest link': { guest_link: true },
      'an end': { expires_in: '7d' },
    }
    const inJson = { ...ofAll, viewers: { viewers: ['ada@example.com'], invite: false } }
    const inForms = { ...ofAll, viewers: { viewers: 'ada@example.com', invite: 'false' } }
    const inTools = { ...inJson, 'the name': { title: 'Another' }, 'a password': { password: 'open sesame' } }
    return {
      upload: { door: byForm('upload', 'a.html'), says: inForms },
      'upload-bundle': { door: byForm('upload-bundle', 'index.html'), says: inForms },
      uploads: { door: byParts, says: inJson },
      service_publish: { door: byTool('service_publish', { content: '<p>content' }), says: inTools },
      service_publish_files: {
        door: byTool('service_publish_files', { files: [{ path: 'index.html', content: 'content' }] }),
        says: inTools,
      },
    }
  })()
  const rows = Object.entries(DOORS).flatMap(([name, { door, says }]) =>
    Object.entries(says).map(([what, said]) => ({ name, what, door, said })),
  )
  const settingsOf = async ({ id }: Drop): Promise<unknown> => {
    const { name, access_mode, has_password, access_until } = (
      await stack.fetch(`/api/v1/sites/${id}`, { token: tokens.get('everything')!.token })
    ).json<Record<string, unknown>>()
    return { name, access_mode, has_password, access_until }
  }

  test.each(rows)('$name, $what', async ({ door, said }) => {
    const [publish, manage] = [tokens.get('publish')!.token, tokens.get('manage')!.token]
    const drop = (await apiFor(stack, owner).create()).json<Drop>()
    expect(await door(drop, publish, said)).toBeUndefined()
    const open = (await apiFor(stack, owner).create()).json<Drop>()
    expect(await door(open, publish, {})).toBeUndefined()
    const before = await settingsOf(open)
    expect(await settingsOf(drop)).not.toEqual(before)
    expect(await door(open, publish, said)).toBe('insufficient_scope')
    expect(await settingsOf(open)).toEqual(before)
    expect(await door(open, manage, said)).toBeUndefined()
    expect(await settingsOf(open)).not.toEqual(before)
  })
})
