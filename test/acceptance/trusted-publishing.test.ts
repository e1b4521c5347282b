/** Workflows publish with the tokens of their forges: what is taken, what is refused and why, without a secret anywhere. */
import { SignJWT, UnsecuredJWT, generateKeyPair, type JWTPayload } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nextAddress } from '../support/addresses.ts'
import { apiFor, fileForm } from '../support/api.ts'
import type { Answer } from '../support/client.ts'
import { PASSWORD } from '../support/dashboard-visitor.ts'
import { FormBrowser } from '../support/form-browser.ts'
import type { IssuerName } from '../support/issuer-stand-in.ts'
import { connectWithToken } from '../support/mcp-client.ts'
import type { Account } from '../support/stack.ts'
import { startTrustedWorld, type TrustedWorld } from '../support/trusted-world.ts'

let world: TrustedWorld
let stack: TrustedWorld['stack']
let issuer: TrustedWorld['issuer']
let owner: TrustedWorld['owner']
let siteId: string
let slug: string
let trust: TrustedWorld['trust']
let claimsOf: TrustedWorld['claimsOf']

beforeAll(async () => {
  world = await startTrustedWorld()
  ;({ stack, issuer, owner, siteId, slug, trust, claimsOf } = world)
  // Before any of them is named in a refusal: one for each issuer that is asked below.
  for (const name of ['good', 'slow', 'huge', 'redirecting', 'broken', 'impostor', 'elsewhere'] as const)
    expect((await trust(name)).status).toBe(201)
})
afterAll(() => world.stop())

const exchange = (token: string, more: Record<string, string> = {}): Promise<Answer> =>
  stack.fetch('/oauth/token', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      subject_token: token,
      site: slug,
      ...more,
    }).toString(),
  })

async function lastRefusal(): Promise<unknown> {
  const { entries } = (await stack.fetch('/api/v1/audit-log?limit=1', { token: owner.token })).json<{
    entries: { action: string; subject: string; detail: { reason?: string } }[]
  }>()
  const [entry] = entries
  return entry?.action === 'publisher.refused' && entry.subject === siteId ? entry.detail.reason : entry?.action
}

type Forgery = () => Promise<string> | string
const altered =
  (change: JWTPayload): Forgery =>
  () =>
    issuer.sign({ ...claimsOf(), ...change })
const at = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds
const from =
  (name: IssuerName): Forgery =>
  () =>
    issuer.sign(claimsOf(name))
const tampered = (token: string, part: 0 | 1 | 2, text: string): string =>
  token.split('.').toSpliced(part, 1, text).join('.')
const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

const FORGERIES: Readonly<Record<string, readonly [reason: string, forge: Forgery]>> = {
  'alg none': ['algorithm', () => new UnsecuredJWT(claimsOf()).encode()],
  'alg none with a signature': [
    'algorithm',
    async () => tampered(await issuer.sign(claimsOf()), 0, encoded({ alg: 'none', kid: 'key-1' })),
  ],
  'HS256 with the public key': [
    'algorithm',
    () =>
      new SignJWT(claimsOf())
        .setProtectedHeader({ alg: 'HS256', kid: 'key-1' })
        .sign(new TextEncoder().encode(issuer.publicModulus())),
  ],
  'another key with the known kid': [
    'signature',
    async () => issuer.sign(claimsOf(), { key: (await generateKeyPair('RS256')).privateKey }),
  ],
  'an unknown kid': ['unknown_key', () => issuer.sign(claimsOf(), { kid: 'key-9' })],
  'another key with an unknown kid': [
    'unknown_key',
    async () => issuer.sign(claimsOf(), { kid: 'x', key: (await generateKeyPair('RS256')).privateKey }),
  ],
  'an algorithm that the key is not for': [
    'unknown_key',
    async () => issuer.sign(claimsOf(), { alg: 'ES256', key: (await generateKeyPair('ES256')).privateKey }),
  ],
  'claims that were changed after signing': [
    'signature',
    async () => tampered(await issuer.sign(claimsOf()), 1, encoded({ ...claimsOf(), actor: 'eve' })),
  ],
  'a signature that was cut': ['signature', async () => (await issuer.sign(claimsOf())).slice(0, -12)],
  'another audience': ['audience', altered({ aud: 'https://elsewhere.example' })],
  'the audience with a slash': ['audience', () => issuer.sign({ ...claimsOf(), aud: `${stack.baseUrl}/` })],
  'two audiences': ['audience', () => issuer.sign({ ...claimsOf(), aud: [stack.baseUrl, 'https://other.example'] })],
  'no audience': ['audience', altered({ aud: undefined })],
  'expired ten minutes ago': [
    'expired',
    () => issuer.sign({ ...claimsOf(), iat: at(-900), nbf: at(-900), exp: at(-600) }),
  ],
  'good in ten minutes': ['not_yet_valid', () => issuer.sign({ ...claimsOf(), nbf: at(600), exp: at(900) })],
  'issued in ten minutes': ['not_yet_valid', () => issuer.sign({ ...claimsOf(), iat: at(600), exp: at(900) })],
  'no end': ['expired', altered({ exp: undefined })],
  'no jti': ['no_jti', altered({ jti: undefined })],
  'an empty jti': ['no_jti', altered({ jti: '' })],
  'another repository': ['repository', altered({ repository: 'octo/other' })],
  'a repository of another owner': ['repository', altered({ repository: 'eve/site', repository_owner_id: '8' })],
  'another repository id with the same name': ['repository_id', altered({ repository_id: '102' })],
  'no repository id': ['repository_id', altered({ repository_id: undefined })],
  'another owner id with the same name': ['owner_id', altered({ repository_owner_id: '8' })],
  'no owner id': ['owner_id', altered({ repository_owner_id: undefined })],
  'another branch': ['ref', altered({ ref: 'refs/heads/dev' })],
  'a tag of that name': ['ref', altered({ ref: 'refs/tags/main' })],
  'a bare branch name': ['ref', altered({ ref: 'main' })],
  'a pull request': ['fork', altered({ event_name: 'pull_request', ref: 'refs/pull/3/merge' })],
  'a pull request in the target’s context': ['fork', altered({ event_name: 'pull_request_target' })],
  'another workflow': ['workflow', altered({ workflow_ref: 'octo/site/.github/workflows/evil.yml@refs/heads/main' })],
  'a workflow that only ends alike': [
    'workflow',
    altered({ workflow_ref: 'octo/site/.github/workflows/not-deploy.yml@refs/heads/main' }),
  ],
  'another environment': ['environment', altered({ environment: 'staging' })],
  'no environment': ['environment', altered({ environment: undefined })],
  'an issuer that no publisher names': ['issuer', from('other')],
  'an issuer look-alike': ['issuer', () => issuer.sign({ ...claimsOf(), iss: `${issuer.issuer('good')}/` })],
  'an issuer that the operator does not know': ['issuer', from('plain')],
  'no issuer': ['issuer', altered({ iss: undefined })],
  'an issuer whose discovery names another': ['keys_unavailable', from('impostor')],
  'keys that never come': ['keys_unavailable', from('slow')],
  'keys without end': ['keys_unavailable', from('huge')],
  'keys behind a redirect': ['keys_unavailable', from('redirecting')],
  'keys that are none': ['keys_unavailable', from('broken')],
  'keys at a private address elsewhere': ['keys_unavailable', from('elsewhere')],
}

describe('refused alike, and with its reason in the audit log', () => {
  test.each(Object.entries(FORGERIES))('%s', async (_, [reason, forge]) => {
    const answer = await exchange(await forge())
    expect(answer.status).toBe(400)
    expect(answer.json()).toEqual({
      error: 'invalid_grant',
      error_description: 'The token was not accepted for this drop.',
    })
    expect(await lastRefusal()).toBe(reason)
  })

  test('the same token twice', async () => {
    const token = await issuer.sign(claimsOf())
    expect((await exchange(token)).status).toBe(200)
    expect((await exchange(token)).json()).toMatchObject({ error: 'invalid_grant' })
    expect(await lastRefusal()).toBe('replay')
  })

  test.each([
    ['no token at all', 'malformed', 'not-a-token'],
    ['a huge token', 'oversized', `x.${'y'.repeat(20_000)}.z`],
  ])('%s is no request', async (_, reason, token) => {
    expect((await exchange(token)).json()).toMatchObject({ error: 'invalid_request' })
    expect(await lastRefusal()).toBe(reason)
  })

  test('a token without end is not read', async () => {
    expect((await exchange('x'.repeat(200_000))).status).toBe(413)
  })

  test.each([
    ['an unknown drop', { site: 'no-such-drop-at-all' }, 'invalid_grant'],
    ['another kind of token', { subject_token_type: 'urn:ietf:params:oauth:token-type:saml2' }, 'invalid_request'],
    ['no drop', { site: '' }, 'invalid_request'],
    ['more than publishing', { scope: 'manage' }, 'invalid_scope'],
  ])('%s', async (_, more, error) => {
    expect((await exchange(await issuer.sign(claimsOf()), more)).json()).toMatchObject({ error })
  })
})

describe('taken', () => {
  test('for a quarter of an hour, to publish to this drop alone; version, log and page say where from', async () => {
    const reply = (await exchange(await issuer.sign(claimsOf()))).json<{ access_token: string }>()
    expect(reply).toEqual({
      access_token: expect.stringMatching(/^dwp_/),
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: 900,
      scope: 'publish',
    })
    const workflow = { token: reply.access_token }
    const upload = (id: string) =>
      stack.fetch(`/api/v1/sites/${id}/upload`, { ...workflow, method: 'POST', body: fileForm('a.html', 'from CI') })
    expect((await upload(siteId)).status).toBe(201)
    const beside: string = (await apiFor(stack, owner).create()).json().id
    expect((await upload(beside)).status).toBe(404)
    expect((await stack.fetch('/api/v1/sites', { ...workflow, json: {} })).status).toBe(403)
    expect((await stack.fetch(`/api/v1/sites/${siteId}`, { ...workflow, method: 'DELETE' })).status).toBe(403)
    const source = {
      provider: 'github',
      repository: 'octo/site',
      workflow: 'deploy.yml',
      commit: 'abc123abc123abc123abc123abc123abc123abcd',
      actor: 'ada',
    }
    const [version] = (await stack.fetch(`/api/v1/sites/${siteId}/versions`, owner)).json<object[]>()
    expect(version).toMatchObject({ source, created_by: null })
    const { entries } = (await stack.fetch('/api/v1/audit-log?limit=5', owner)).json<{
      entries: { action: string; actor: string; detail: object }[]
    }>()
    expect(entries.find(({ action }) => action === 'site.published')).toMatchObject({
      actor: 'workflow of octo/site',
      detail: { via: 'publisher', workflow: 'deploy.yml', commit: source.commit, actor: 'ada' },
    })
  })

  test('an ID token too, and the drop by its id', async () => {
    const asked = { site: siteId, subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' }
    expect((await exchange(await issuer.sign(claimsOf()), asked)).json()).toMatchObject({ scope: 'publish' })
  })

  test('a removed publisher ends what it was given', async () => {
    const { id } = (await trust('other', { repository_id: undefined, owner_id: undefined })).json<{ id: string }>()
    const { access_token: token } = (await exchange(await issuer.sign(claimsOf('other')))).json<{
      access_token: string
    }>()
    expect((await stack.fetch(`/api/v1/sites/${siteId}`, { token })).status).toBe(200)
    // The first use has pinned what the names stood for.
    const renamed = await issuer.sign({ ...claimsOf('other'), repository_id: '999' })
    expect((await exchange(renamed)).status).toBe(400)
    expect(await lastRefusal()).toBe('repository_id')
    const removed = await stack.fetch(`/api/v1/sites/${siteId}/publishers/${id}`, { ...owner, method: 'DELETE' })
    expect(removed.status).toBe(204)
    expect((await stack.fetch(`/api/v1/sites/${siteId}`, { token })).status).toBe(401)
  })

  test('any OpenID issuer of the operator’s choice: by its subject and the named claims', async () => {
    const oidc = { provider: 'oidc', repository: 'build:site', claims: { team: 'web' }, workflow: undefined }
    expect((await trust('other', { ...oidc, branch: undefined, environment: undefined })).status).toBe(201)
    const claims = { ...claimsOf('other'), sub: 'build:site', team: 'web' }
    expect((await exchange(await issuer.sign(claims))).status).toBe(200)
    expect((await exchange(await issuer.sign({ ...claims, jti: '2', team: 'ops' }))).status).toBe(400)
    expect(await lastRefusal()).toBe('claims')
    expect((await exchange(await issuer.sign({ ...claims, jti: '3', sub: 'build:other' }))).status).toBe(400)
    expect(await lastRefusal()).toBe('subject')
  })
})

/** What publishing to a preview takes: everything else is refused to a pull request's token. */
const OF_PREVIEW = [
  'get /sites',
  'get /sites/{id}',
  'post /sites/{id}/upload',
  'post /sites/{id}/upload-bundle',
  'post /sites/{id}/uploads',
  'get /sites/{id}/uploads/{upload_id}',
  'post /sites/{id}/uploads/{upload_id}/blobs',
  'get /sites/{id}/uploads/{upload_id}/blobs/{sha256}',
  'put /sites/{id}/uploads/{upload_id}/blobs/{sha256}',
  'post /sites/{id}/uploads/{upload_id}/finish',
  'delete /sites/{id}/previews/{name}',
]

describe('pull requests, also from forks, where the owner lets them in', () => {
  let drop: { id: string; slug: string }
  const proposal = (number: number, more: JWTPayload = {}): Promise<string> =>
    issuer.sign({
      ...claimsOf('other'),
      event_name: 'pull_request',
      ref: `refs/pull/${number}/merge`,
      base_ref: 'main',
      environment: undefined,
      ...more,
    })
  const tokenOf = async (number: number): Promise<string> =>
    (await exchange(await proposal(number), { site: drop.slug })).json<{ access_token: string }>().access_token
  const upload = (token: string, fields: Record<string, string>) => {
    const body = fileForm('a.html', 'proposed')
    for (const [name, value] of Object.entries(fields)) body.append(name, value)
    return stack.fetch(`/api/v1/sites/${drop.id}/upload`, { token, method: 'POST', body })
  }

  beforeAll(async () => {
    drop = (await apiFor(stack, owner).create()).json()
    const workflow = { provider: 'github', issuer: issuer.issuer('other'), repository: 'octo/site', branch: 'main' }
    const added = await stack.fetch(`/api/v1/sites/${drop.id}/publishers`, {
      token: owner.token,
      json: { ...workflow, pull_requests: true },
    })
    expect(added.json()).toMatchObject({ pull_requests: true })
  })

  test('each reaches a preview of its own, and nothing else', async () => {
    const reply = await exchange(await proposal(12), { site: drop.slug })
    expect(reply.json()).toMatchObject({ scope: 'publish', preview: 'pr-12', expires_in: 900 })
    const token = reply.json<{ access_token: string }>().access_token
    const published = await upload(token, { preview: 'pr-12' })
    expect(published.status).toBe(201)
    expect(published.json<{ preview_url: string }>().preview_url).toContain(`pr-12--${drop.slug}`)
    const refused: Record<string, string>[] = [
      {},
      { preview: 'pr-13' },
      { preview: 'pr-12', access_mode: 'viewers' },
      { preview: 'pr-12', resolves: 'th_1' },
    ]
    for (const fields of refused) expect((await upload(token, fields)).status, JSON.stringify(fields)).toBe(403)
    expect((await stack.fetch(`/api/v1/sites/${drop.id}/previews/pr-13`, { token, method: 'DELETE' })).status).toBe(403)
    expect((await stack.fetch(`/api/v1/sites/${drop.id}/previews/pr-12`, { token, method: 'DELETE' })).status).toBe(204)
    expect((await stack.fetch(`/api/v1/sites/${drop.id}`, owner)).json()).toMatchObject({ live_version_id: null })
  })

  test('every other operation is refused before its body is looked at', async () => {
    const token = await tokenOf(14)
    const { paths } = (await stack.fetch('/api/v1/openapi.json')).json<{
      paths: Record<string, Record<string, { security: readonly unknown[] }>>
    }>()
    const operations = Object.entries(paths).flatMap(([place, methods]) =>
      Object.entries(methods).map(([method, { security }]) => ({
        name: `${method} ${place}`,
        method,
        place,
        security,
      })),
    )
    const closed = operations.filter(({ name, security }) => security.length > 0 && !OF_PREVIEW.includes(name))
    expect(operations.filter(({ name }) => OF_PREVIEW.includes(name))).toHaveLength(OF_PREVIEW.length)
    expect(closed.length).toBeGreaterThan(50)
    const open = await Promise.all(
      closed.map(async ({ name, method, place }) => {
        const address = place.replace('{id}', drop.id).replaceAll(/\{\w+\}/g, 'unknown')
        const body = method === 'get' ? {} : { body: '{ not json', headers: { 'content-type': 'application/json' } }
        const answer = await stack.fetch(`/api/v1${address}`, { token, method: method.toUpperCase(), ...body })
        return answer.status === 403 ? [] : [`${name}: ${answer.status}`]
      }),
    )
    expect(open.flat()).toEqual([])
  })

  test.each([
    ['the preview of another pull request', 'preview', { preview: 'pr-1' }, {}],
    ['a preview of another name', 'preview', { preview: 'staging' }, {}],
    ['for another branch', 'ref', {}, { base_ref: 'dev' }],
    ['of a copy of the repository', 'repository_id', {}, { repository_id: '102' }],
    [
      'in the context of its target, without a number',
      'preview',
      {},
      { event_name: 'pull_request_target', ref: 'refs/heads/main' },
    ],
  ])('%s is refused', async (_, reason, asked, claims) => {
    const refused = await exchange(await proposal(12, claims), { site: drop.slug, ...asked })
    expect(refused.json()).toMatchObject({ error: 'invalid_grant' })
    const [entry] = (await stack.fetch('/api/v1/audit-log?limit=1', owner)).json<{
      entries: { subject: string; detail: object }[]
    }>().entries
    expect(entry).toMatchObject({ subject: drop.id, detail: { reason } })
  })

  test('what is no name of a preview is no request', async () => {
    expect((await exchange(await proposal(12), { site: drop.slug, preview: '../x' })).json()).toMatchObject({
      error: 'invalid_request',
    })
  })
})

test.each([
  ['an issuer that the operator does not trust', { issuer: 'https://evil.example' }, 400],
  ['an issuer that is only like one', { issuer: 'https://gitlab.com' }, 400],
  ['a provider without an issuer', { provider: 'oidc', issuer: undefined }, 400],
  ['a repository without an owner', { repository: 'site' }, 400],
  ['a path instead of a workflow', { workflow: '.github/workflows/deploy.yml' }, 400],
  ['an unknown provider', { provider: 'svn' }, 400],
])('%s is refused when it is registered', async (_, wish, status) => {
  expect((await trust('good', wish)).status).toBe(status)
})

interface Trusted {
  readonly provider: string
  readonly repository: string
  readonly branch: string | null
  readonly environment: string | null
  readonly pull_requests: boolean
}

const trustsOf = async (account: Account, id: string): Promise<Trusted[]> =>
  (await stack.fetch(`/api/v1/sites/${id}/publishers`, account)).json<Trusted[]>()

describe('trusted from elsewhere than the API', () => {
  test('an assistant says the list as a whole', async () => {
    const { id } = (await apiFor(stack, owner).create()).json<{ id: string }>()
    const trusts = () => trustsOf(owner, id)
    const client = await connectWithToken(stack, owner.token, 'modern')
    const settings = async (publishers: readonly string[]) =>
      client.callTool({ name: 'service_settings', arguments: { id, publishers } })
    const said = ['github:octo/site@main', 'gitlab:group/sub/site']
    expect((await settings(said)).structuredContent).toMatchObject({ publishers: said })
    expect(await trusts()).toMatchObject([
      { provider: 'github', repository: 'octo/site', branch: 'main', pull_requests: false },
      { provider: 'gitlab', repository: 'group/sub/site', branch: null },
    ])
    const [kept] = await trusts()
    // Said again, it is the same trust, with what the first exchange has pinned; what is left out ends.
    expect((await settings(said.slice(0, 1))).structuredContent).toMatchObject({ publishers: said.slice(0, 1) })
    expect(await trusts()).toEqual([kept])
    for (const line of ['octo/site', 'svn:octo/site', 'github:octo', 'oidc:build']) {
      expect(await settings([line]), line).toMatchObject({ isError: true })
      expect(await trusts(), line).toEqual([kept])
    }
    await settings([])
    expect(await trusts()).toEqual([])
    await client.close()
  })

  test('the form lets pull requests in when its box is ticked, and only then', async () => {
    const person = await stack.createAccount('free', { password: PASSWORD })
    const { id } = (await apiFor(stack, person).create()).json<{ id: string }>()
    const page = new FormBrowser(stack, nextAddress())
    await page.send('/signin', { email: person.email, password: PASSWORD })
    const fill = (fields: Record<string, string>) =>
      page.send(`/sites/${id}/settings`, { provider: 'github', ...fields }, `/sites/${id}/publishers`)
    const [open, closed] = [
      { repository: 'octo/open', pull_requests: 'on' },
      { repository: 'octo/closed', branch: '' },
    ]
    for (const fields of [open, closed])
      expect((await fill(fields)).header('location')).toContain('done=workflow-trusted')
    expect(await trustsOf(person, id)).toMatchObject([
      { repository: 'octo/open', pull_requests: true, branch: null },
      { repository: 'octo/closed', pull_requests: false, branch: null },
    ])
    const shown = (await page.open(`/sites/${id}/settings`)).text().replaceAll(/\s+/g, ' ')
    expect(shown.match(/octo\/\w+<\/strong> <p class="small soft"> github( · pull requests to previews)?/g)).toEqual([
      expect.stringContaining('pull requests'),
      expect.not.stringContaining('pull requests'),
    ])
    // What was ticked stays ticked in a form that comes back.
    const refused = await fill({ ...open, repository: 'octo' })
    expect(refused.status).toBe(400)
    expect(refused.text()).toMatch(/name="pull_requests"[^>]* checked/)
    expect(await trustsOf(person, id)).toHaveLength(2)
  })
})
