/** How long the keys of an issuer are believed, by a clock that the test moves. */
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { beforeEach, expect, test } from 'vitest'
import { createIssuerKeys, type IssuerKeys } from '../../../control/drops/publishers/issuer-keys.ts'
import { judgeRun, type TrustedWorkflow } from '../../../control/drops/publishers/rules.ts'

const ISSUER = 'https://forge.example'
const AUDIENCE = 'https://dropway.example'

let nowMs: number
let fetches: number
let isDown: boolean
let published: Awaited<ReturnType<typeof newKey>>
let keys: IssuerKeys

async function newKey(kid: string) {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'ES256' } }
}

beforeEach(async () => {
  nowMs = Date.UTC(2026, 0, 1)
  fetches = 0
  isDown = false
  published = await newKey('first')
  keys = createIssuerKeys({
    clock: { now: () => nowMs },
    async fetch(_, url) {
      if (isDown) throw new Error('down')
      if (url.endsWith('/keys')) fetches++
      const body = url.endsWith('/keys') ? { keys: [published.jwk] } : { issuer: ISSUER, jwks_uri: `${ISSUER}/keys` }
      return Buffer.from(JSON.stringify(body))
    },
  })
})

const signed = (key: typeof published): Promise<string> =>
  new SignJWT({ iss: ISSUER, aud: AUDIENCE, exp: nowMs / 1000 + 300, nbf: nowMs / 1000 - 1 })
    .setProtectedHeader({ alg: 'ES256', kid: key.kid })
    .sign(key.privateKey)

const outcomeOf = async (token: string): Promise<string> => {
  const outcome = await keys.verify(token, { issuer: ISSUER, audience: AUDIENCE })
  return 'reason' in outcome ? outcome.reason : 'good'
}

test('a rotated key: the new one is found after thirty seconds, the withdrawn one refused from then on', async () => {
  const first = published
  expect(await outcomeOf(await signed(first))).toBe('good')
  published = await newKey('second')
  expect(await outcomeOf(await signed(published))).toBe('unknown_key')
  expect(await outcomeOf(await signed(first))).toBe('good')
  expect(fetches).toBe(1)
  nowMs += 30_000
  expect(await outcomeOf(await signed(published))).toBe('good')
  expect(await outcomeOf(await signed(first))).toBe('unknown_key')
  expect(fetches).toBe(2)
})

test('unknown keys do not make us ask an issuer more often than every thirty seconds', async () => {
  await outcomeOf(await signed(published))
  const stranger = await newKey('stranger')
  for (let attempt = 0; attempt < 20; attempt++) expect(await outcomeOf(await signed(stranger))).toBe('unknown_key')
  expect(fetches).toBe(1)
})

test('an issuer that is away is not believed, and asked again by the next', async () => {
  isDown = true
  const token = await signed(published)
  expect(await outcomeOf(token)).toBe('keys_unavailable')
  isDown = false
  expect(await outcomeOf(token)).toBe('good')
})

test('callers at the same time share one request', async () => {
  const token = await signed(published)
  expect(await Promise.all([outcomeOf(token), outcomeOf(token), outcomeOf(token)])).toEqual(['good', 'good', 'good'])
  expect(fetches).toBe(1)
})

const trusted: TrustedWorkflow = {
  provider: 'gitlab',
  issuer: 'https://gitlab.com',
  repository: 'Group/Sub/Site',
  workflow: '.gitlab-ci.yml',
  branch: 'main',
  environment: null,
  repositoryId: null,
  ownerId: null,
  claims: {},
  pullRequests: false,
}

const run = {
  project_path: 'group/sub/site',
  project_id: 42,
  namespace_id: '7',
  ref: 'main',
  ref_type: 'branch',
  ci_config_ref_uri: 'gitlab.com/group/sub/site//.gitlab-ci.yml@refs/heads/main',
  pipeline_source: 'push',
  sha: 'ABC1234',
  user_login: 'ada',
}

test.each([
  ['a run on the branch', {}, 'trusted'],
  ['a tag with the name of the branch', { ref_type: 'tag' }, 'ref'],
  ['a merge request', { pipeline_source: 'merge_request_event' }, 'fork'],
  ["a fork's project", { project_path: 'eve/site', project_id: 43 }, 'repository'],
  ['another file', { ci_config_ref_uri: 'gitlab.com/group/sub/site//other.yml@refs/heads/main' }, 'workflow'],
  ['no id', { project_id: undefined }, 'repository_id'],
  ['an id that is no text', { project_id: { id: 42 } }, 'repository_id'],
])('GitLab: %s', (_, change, expected) => {
  const judgement = judgeRun(trusted, { ...run, ...change }, null)
  expect(judgement.kind === 'trusted' ? 'trusted' : judgement.reason).toBe(expected)
})

test('what is kept of a run is bounded, and a commit is one or nothing', () => {
  const judgement = judgeRun(trusted, { ...run, user_login: 'x'.repeat(1000), sha: '<script>' }, null)
  expect(judgement).toMatchObject({
    run: { actor: 'x'.repeat(200), commit: '' },
    ids: { repositoryId: '42', ownerId: '7' },
  })
})
