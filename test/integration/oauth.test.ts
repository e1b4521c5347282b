/** The authorization server on a real Postgres, with a clock that the test moves. */
import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Actor } from '../../control/ground/actor.ts'
import { fetchPublic } from '../../control/ground/http/public-fetch.ts'
import { mcpRoutes } from '../../control/doors/mcp/routes.ts'
import { createOAuth, type OAuth } from '../../control/doors/oauth/oauth.ts'
import { DEVICE_GRANT, OAuthError, UntrustedRequest } from '../../control/doors/oauth/rules.ts'
import { REPEAT_GRACE_MS, type TokenReply } from '../../control/doors/oauth/tokens.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../shared/running/clock.ts'
import { silentLog } from '../../shared/running/log.ts'
import { BASE_URL, createAccountsFixture, fakeRequest, refusal } from '../support/accounts.ts'

const MCP = `${BASE_URL}/mcp`
const REDIRECT = 'https://client.example/callback'
const DOCUMENT = 'https://app.example/oauth/client.json'
const IP = '203.0.113.9'

let fixture: Awaited<ReturnType<typeof createAccountsFixture>>
let oauth: OAuth
let actor: Actor
/** What the "internet" holds, and how often it was asked. */
const documents = new Map<string, string>()
const fetched: string[] = []

beforeAll(async () => {
  fixture = await createAccountsFixture()
  actor = await fixture.newAccount()
  oauth = createOAuth({
    ...fixture,
    baseUrl: BASE_URL,
    readsClientDocuments: true,
    limiter: { consume: async () => {}, consumeAll: async () => {} },
    async fetchDocument(url) {
      fetched.push(url)
      const text = documents.get(url)
      if (text === undefined) throw new Error('answered 404')
      return Buffer.from(text)
    },
  })
})
afterAll(() => fixture.close())

async function outcome(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    if (error instanceof OAuthError) return error.code
    if (error instanceof UntrustedRequest) return `untrusted: ${error.message}`
    throw error
  }
  return 'accepted'
}

async function newGrant(who = actor, clientId?: string) {
  const id = clientId ?? (await oauth.register({ redirect_uris: [REDIRECT] }, IP)).client_id
  const verifier = randomBytes(32).toString('base64url')
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: id,
    redirect_uri: REDIRECT,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  const checked = await oauth.checkRequest(query, IP)
  if (!('request' in checked)) throw 'error' in checked ? checked.error : checked.unregistered
  const code = new URL(await oauth.allow(who, checked.request)).searchParams.get('code')!
  return {
    clientId: id,
    client: checked.request.client,
    code,
    exchange: () =>
      oauth.token(
        new URLSearchParams({ grant_type: 'authorization_code', client_id: id, code, code_verifier: verifier }),
      ),
    refresh: (token: string) =>
      oauth.token(new URLSearchParams({ grant_type: 'refresh_token', client_id: id, refresh_token: token })),
  }
}

const speaksFor = async ({ access_token }: TokenReply): Promise<string | undefined> =>
  (await oauth.actorOf(access_token, MCP, IP))?.userId

describe('time', () => {
  test('a code lives for a minute', async () => {
    const grant = await newGrant()
    fixture.advance(MINUTE_MS)
    expect(await outcome(grant.exchange())).toBe('invalid_grant')
  })

  test('an access token lives for an hour, and its refresh token outlives it', async () => {
    const grant = await newGrant()
    const tokens = await grant.exchange()
    fixture.advance(HOUR_MS - 1)
    expect(await speaksFor(tokens)).toBe(actor.userId)
    fixture.advance(1)
    expect(await speaksFor(tokens)).toBeUndefined()
    expect(await speaksFor(await grant.refresh(tokens.refresh_token))).toBe(actor.userId)
  })

  test('a refresh token expires after sixty days without use, and every use begins anew', async () => {
    const grant = await newGrant()
    const first = await grant.exchange()
    fixture.advance(59 * DAY_MS)
    const second = await grant.refresh(first.refresh_token)
    fixture.advance(59 * DAY_MS)
    await oauth.sweep()
    const third = await grant.refresh(second.refresh_token)
    fixture.advance(60 * DAY_MS)
    expect(await outcome(grant.refresh(third.refresh_token))).toBe('invalid_grant')
  })

  test('a registered client has only named itself: no host is verified', async () => {
    expect((await newGrant()).client.verifiedHost).toBeUndefined()
  })

  test('a registration never lapses: the program that comes back after a year is still known', async () => {
    const unused = (await oauth.register({ redirect_uris: [REDIRECT], client_name: 'Late' }, IP)).client_id
    fixture.advance(400 * DAY_MS)
    await oauth.sweep()
    expect(await speaksFor(await (await newGrant(actor, unused)).exchange())).toBe(actor.userId)
  })

  test('a registration of an earlier release works until no one uses it, then its client registers anew', async () => {
    const id = 'cli_01jc3m8q4r5s6t7v8w9x0y'
    await fixture.sql`insert into oauth_clients (id, name, redirect_uris, created_at)
      values (${id}, 'Earlier', ${[REDIRECT]}, ${new Date(fixture.clock.now())})`
    const used = await newGrant(actor, id)
    const tokens = await used.exchange()
    fixture.advance(50 * DAY_MS)
    await oauth.sweep()
    const later = await used.refresh(tokens.refresh_token)
    fixture.advance(91 * DAY_MS)
    await oauth.sweep()
    expect(await outcome(used.refresh(later.refresh_token))).toBe('invalid_client')
    expect(await outcome(newGrant(actor, id))).toMatch(/^untrusted: This client is not registered/)
  })

  test('a grant that nothing speaks for any more is deleted with the sweep', async () => {
    const grant = await newGrant()
    await grant.exchange()
    const count = async () =>
      Number((await fixture.sql`select count(*) from oauth_grants where client_id = ${grant.clientId}`)[0]!['count'])
    await oauth.sweep()
    expect(await count()).toBe(1)
    fixture.advance(61 * DAY_MS)
    await oauth.sweep()
    expect(await count()).toBe(0)
  })
})

describe('copies', () => {
  test('a code that is used twice ends everything that came from it', async () => {
    const grant = await newGrant()
    const tokens = await grant.exchange()
    expect(await outcome(grant.exchange())).toBe('invalid_grant')
    expect(await speaksFor(tokens)).toBeUndefined()
    expect(await outcome(grant.refresh(tokens.refresh_token))).toBe('invalid_grant')
  })

  test('of many exchanges at once at most one is answered, and none survives', async () => {
    const grant = await newGrant()
    const attempts = await Promise.allSettled(Array.from({ length: 5 }, () => grant.exchange()))
    const won = attempts.filter((attempt) => attempt.status === 'fulfilled')
    expect(won).toHaveLength(1)
    expect(await speaksFor(won[0]!.value)).toBeUndefined()
    expect(await outcome(grant.refresh(won[0]!.value.refresh_token))).toBe('invalid_grant')
  })

  test('of many refreshes at once all are answered with one successor, and the chain goes on', async () => {
    const grant = await newGrant()
    const first = await grant.exchange()
    const answers = await Promise.all(Array.from({ length: 5 }, () => grant.refresh(first.refresh_token)))
    expect(new Set(answers.map((answer) => answer.refresh_token)).size).toBe(1)
    expect(new Set(answers.map((answer) => answer.access_token)).size).toBe(5)
    for (const answer of answers) expect(await speaksFor(answer)).toBe(actor.userId)
    expect(await speaksFor(await grant.refresh(answers[0]!.refresh_token))).toBe(actor.userId)
  })

  test('a lost answer: the same refresh token is good again within the grace, and not after it', async () => {
    const grant = await newGrant()
    const first = await grant.exchange()
    const lost = await grant.refresh(first.refresh_token)
    fixture.advance(REPEAT_GRACE_MS)
    const again = await grant.refresh(first.refresh_token)
    expect(again.refresh_token).toBe(lost.refresh_token)
    fixture.advance(1)
    expect(await outcome(grant.refresh(first.refresh_token))).toBe('invalid_grant')
    for (const tokens of [first, lost, again]) expect(await speaksFor(tokens)).toBeUndefined()
    expect(await outcome(grant.refresh(again.refresh_token))).toBe('invalid_grant')
  })

  test('once the successor is used the answer was not lost: the older token ends the grant at once', async () => {
    const grant = await newGrant()
    const first = await grant.exchange()
    const second = await grant.refresh(first.refresh_token)
    const third = await grant.refresh(second.refresh_token)
    expect(await outcome(grant.refresh(first.refresh_token))).toBe('invalid_grant')
    expect(await speaksFor(third)).toBeUndefined()
    expect(await outcome(grant.refresh(third.refresh_token))).toBe('invalid_grant')
  })

  test('two holders of one refresh token are found out at the next refresh, in either order', async () => {
    const grant = await newGrant()
    const first = await grant.exchange()
    const [owner, thief] = [await grant.refresh(first.refresh_token), await grant.refresh(first.refresh_token)]
    fixture.advance(HOUR_MS)
    const stolen = await grant.refresh(thief.refresh_token)
    fixture.advance(REPEAT_GRACE_MS + 1)
    expect(await outcome(grant.refresh(owner.refresh_token))).toBe('invalid_grant')
    expect(await speaksFor(stolen)).toBeUndefined()
  })

  test('requests under way go on with the old access token while another process refreshes', async () => {
    const grant = await newGrant()
    const first = await grant.exchange()
    await grant.refresh(first.refresh_token)
    expect(await speaksFor(first)).toBe(actor.userId)
  })
})

test.each([
  ['mcp', 'step_up_required'],
  ['cli', 'step_up_required'],
  ['manage', 'step_up_required'],
  ['mcp manage', 'step_up_required'],
  ['publish', 'accepted'],
  ['mcp read', 'accepted'],
])('a session that was left open and gives away %s: %s', async (scope, expected) => {
  const leftOpen: Actor = { ...actor, via: { kind: 'session', sessionId: 'ses_open', needsProof: true } }
  const redirect = { redirect_uris: [REDIRECT], grant_types: ['authorization_code', DEVICE_GRANT] }
  const { client_id } = await oauth.register(redirect, IP)
  const query = { response_type: 'code', client_id, scope, code_challenge: 'c'.repeat(43) }
  const checked = await oauth.checkRequest(new URLSearchParams({ ...query, code_challenge_method: 'S256' }), IP)
  if (!('request' in checked)) throw new Error('refused')
  expect(await refusal(oauth.allow(leftOpen, checked.request))).toBe(expected)
  const { user_code } = await oauth.device.authorize(new URLSearchParams({ client_id, scope }), IP)
  expect(await refusal(oauth.device.decide(leftOpen, user_code, 'allow'))).toBe(expected)
  expect(await refusal(oauth.device.decide(leftOpen, user_code, 'deny'))).toBe('accepted')
})

describe('a device', () => {
  async function newDevice() {
    const { client_id } = await oauth.register({ grant_types: [DEVICE_GRANT] }, IP)
    const { device_code, user_code } = await oauth.device.authorize(new URLSearchParams({ client_id }), IP)
    const form = new URLSearchParams({ grant_type: DEVICE_GRANT, client_id, device_code })
    return { device_code, user_code, poll: () => oauth.token(form) }
  }

  test('its code lives for ten minutes, for the person and for the program', async () => {
    const [inTime, late] = [await newDevice(), await newDevice()]
    fixture.advance(10 * MINUTE_MS - 1)
    expect(await oauth.device.decide(actor, inTime.user_code, 'allow')).toBe(true)
    expect(await speaksFor(await inTime.poll())).toBe(actor.userId)
    fixture.advance(1)
    expect(await oauth.device.find(actor, late.user_code)).toBeUndefined()
    expect(await oauth.device.decide(actor, late.user_code, 'allow')).toBe(false)
    expect(await outcome(late.poll())).toBe('expired_token')
  })

  test('that asks too often is slowed down, more each time, and goes on when it keeps the pace', async () => {
    const device = await newDevice()
    const heard: string[] = []
    for (const seconds of [0, 5, 1, 5, 9, 15, 19]) {
      fixture.advance(seconds * 1000)
      heard.push(await outcome(device.poll()))
    }
    const [pending, slow] = ['authorization_pending', 'slow_down']
    expect(heard).toEqual([pending, pending, slow, slow, slow, slow, slow])
    fixture.advance(35_000)
    expect(await outcome(device.poll())).toBe(pending)
  })

  test('whose code comes again within the grace hears the same chain; later it ends the grant', async () => {
    const device = await newDevice()
    await oauth.device.decide(actor, device.user_code, 'allow')
    // An allowed grant without tokens yet is not swept away.
    await oauth.sweep()
    const [first, again] = [await device.poll(), await device.poll()]
    expect(again.refresh_token).toBe(first.refresh_token)
    expect([await speaksFor(first), await speaksFor(again)]).toEqual([actor.userId, actor.userId])
    fixture.advance(REPEAT_GRACE_MS + 1)
    expect(await outcome(device.poll())).toBe('invalid_grant')
    expect(await speaksFor(first)).toBeUndefined()
  })

  test('is not let in by an account without a verified address, nor decided twice', async () => {
    const device = await newDevice()
    const unverified = { ...actor, emailVerified: false }
    expect(await refusal(oauth.device.decide(unverified, device.user_code, 'allow'))).toBe('email_not_verified')
    const decisions = await Promise.all(
      (['allow', 'deny'] as const).map((decision) => oauth.device.decide(actor, device.user_code, decision)),
    )
    expect(decisions.filter(Boolean)).toHaveLength(1)
  })
})

describe('who a token speaks for', () => {
  test('one resource alone, and an access token alone', async () => {
    const { access_token, refresh_token } = await (await newGrant()).exchange()
    expect(await oauth.actorOf(access_token, `${BASE_URL}/api/v1`, IP)).toBeUndefined()
    expect(await oauth.actorOf(refresh_token, MCP, IP)).toBeUndefined()
    expect(await oauth.actorOf(access_token, MCP, IP)).toMatchObject({
      userId: actor.userId,
      orgId: actor.orgId,
      via: { kind: 'oauth', scopes: ['mcp'] },
    })
  })

  test('no one once the membership has ended', async () => {
    const member = await fixture.newAccount()
    const tokens = await (await newGrant(member)).exchange()
    expect(await speaksFor(tokens)).toBe(member.userId)
    await fixture.sql`delete from memberships where user_id = ${member.userId}`
    expect(await speaksFor(tokens)).toBeUndefined()
  })

  test('no one after the person was removed, also when invited again; other organisations go on', async () => {
    const { organisations } = fixture
    const member = await fixture.newAccount()
    const { id } = await organisations.create(actor, 'Acme')
    const join = async () => {
      await organisations.invite(actor, id, { email: member.email, role: 'member' })
      fixture.advance(1)
      await organisations.accept(member, (await fixture.mailsTo(member.email)).at(-1)!.token)
    }
    await join()
    const inside = await newGrant({ ...member, orgId: id })
    const [tokens, atHome] = [await inside.exchange(), await (await newGrant(member)).exchange()]
    await organisations.removeMember(actor, id, member.userId)
    await join()
    expect([await speaksFor(tokens), await speaksFor(atHome)]).toEqual([undefined, member.userId])
    expect(await outcome(inside.refresh(tokens.refresh_token))).toBe('invalid_grant')
  })

  test('an account whose e-mail is not verified allows nothing', async () => {
    const { client_id } = await oauth.register({ redirect_uris: [REDIRECT] }, IP)
    const client = { id: client_id, name: 'c', redirect_uris: [REDIRECT] }
    const request = { client, redirectUri: REDIRECT, state: undefined, challenge: '', resource: MCP, scopes: ['mcp'] }
    expect(await refusal(oauth.allow({ ...actor, emailVerified: false }, request as never))).toBe('email_not_verified')
  })

  test('someone else cannot revoke a grant, its owner can, and other grants stay', async () => {
    const [kept, ended] = [await (await newGrant()).exchange(), await (await newGrant()).exchange()]
    const stranger = await fixture.newAccount()
    const found = await oauth.actorOf(ended.access_token, MCP, IP)
    const grantId = found?.via.kind === 'oauth' ? found.via.grantId : ''
    expect(await refusal(oauth.revokeGrant(stranger, grantId))).toBe('not_found')
    expect((await oauth.listGrants(actor)).map((grant) => grant.id)).toContain(grantId)
    await oauth.revokeGrant(actor, grantId)
    expect((await oauth.listGrants(actor)).map((grant) => grant.id)).not.toContain(grantId)
    expect([await speaksFor(ended), await speaksFor(kept)]).toEqual([undefined, actor.userId])
  })

  test('no one once the person has ended all connected apps, as a password reset does; others go on', async () => {
    const [person, other] = [await fixture.newAccount(), await fixture.newAccount()]
    const [ended, kept] = [await (await newGrant(person)).exchange(), await (await newGrant(other)).exchange()]
    const waiting = await newGrant(person)
    await oauth.endGrantsOf(fixture.sql, person.userId, new Date(fixture.clock.now()))
    expect([await speaksFor(ended), await speaksFor(kept)]).toEqual([undefined, other.userId])
    expect(await outcome(waiting.exchange())).toBe('invalid_grant')
    expect(await outcome(waiting.refresh(ended.refresh_token!))).toBe('invalid_grant')
  })

  test('a token without the scope of the MCP server is told which one it lacks', async () => {
    const { access_token } = await (await newGrant()).exchange()
    await fixture.sql`update oauth_grants set scopes = '{}' where user_id = ${actor.userId}`
    const routes = mcpRoutes({
      services: {} as never,
      anonymous: {} as never,
      limiter: {} as never,
      config: { baseUrl: BASE_URL } as never,
      clock: fixture.clock,
      access: fixture.access,
      oauth,
      baseUrl: BASE_URL,
      log: silentLog,
    })
    const post = routes.find((route) => route.method === 'POST' && route.path === '/mcp')!
    const reply = await post.handle(fakeRequest({ headers: { authorization: `Bearer ${access_token}` } }))
    expect(reply.status).toBe(403)
    expect(reply.headers?.['www-authenticate']).toMatch(/^Bearer error="insufficient_scope", .*scope="mcp"$/)
  })
})

test('no table holds a code or a token as it is', async () => {
  const grant = await newGrant()
  const { access_token, refresh_token } = await grant.exchange()
  const { client_id } = await oauth.register({ grant_types: [DEVICE_GRANT] }, IP)
  const { device_code, user_code } = await oauth.device.authorize(new URLSearchParams({ client_id }), IP)
  const shortCode = user_code.replace('-', '')
  const tables = await fixture.sql<{ name: string }[]>`
    select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`
  for (const { name } of tables) {
    const rows = JSON.stringify(await fixture.sql`select * from ${fixture.sql(name)}`)
    for (const secret of [grant.code, access_token, refresh_token, device_code, user_code, shortCode])
      expect(rows, name).not.toContain(secret)
  }
})

describe('a client that describes itself', () => {
  const describeAs = (changes: Record<string, unknown>): void =>
    void documents.set(DOCUMENT, JSON.stringify({ client_id: DOCUMENT, redirect_uris: [REDIRECT], ...changes }))

  test('a document that is missing, is no JSON or names another client is not believed', async () => {
    expect(await outcome(newGrant(actor, DOCUMENT))).toMatch(
      /^untrusted: The client's metadata document could not be read: answered 404\. .*it can register here instead\.$/,
    )
    for (const changes of [{ client_id: 'https://other.example/client.json' }, { redirect_uris: ['javascript:1'] }]) {
      describeAs(changes)
      expect(await outcome(newGrant(actor, DOCUMENT))).toMatch(/does not describe this client/)
    }
    documents.set(DOCUMENT, '<html>')
    expect(await outcome(newGrant(actor, DOCUMENT))).toMatch(/does not describe this client/)
  })

  test('one on this computer whose document cannot be read may be told so, and registers instead', async () => {
    documents.delete(DOCUMENT)
    const query = new URLSearchParams({
      client_id: DOCUMENT,
      redirect_uri: 'http://127.0.0.1:4000/callback',
      state: 's',
    })
    expect(await oauth.checkRequest(query, IP)).toMatchObject({
      unregistered: { code: 'invalid_client', message: expect.stringContaining('could not be read') },
      redirectUri: 'http://127.0.0.1:4000/callback',
      state: 's',
    })
  })

  test('is not asked where documents are off: it has to register', async () => {
    describeAs({})
    fetched.length = 0
    const closed = createOAuth({
      ...fixture,
      baseUrl: BASE_URL,
      readsClientDocuments: false,
      limiter: { consume: async () => {}, consumeAll: async () => {} },
      fetchDocument: () => expect.fail('a document was fetched'),
    })
    const query = new URLSearchParams({ client_id: DOCUMENT, redirect_uri: REDIRECT })
    await expect(closed.checkRequest(query, IP)).rejects.toThrow('not registered')
    expect(fetched).toEqual([])
  })

  test('gets tokens as any other, and is read once for both steps', async () => {
    describeAs({ client_name: 'Editor' })
    fetched.length = 0
    const tokens = await (await newGrant(actor, DOCUMENT)).exchange()
    expect(await speaksFor(tokens)).toBe(actor.userId)
    expect((await newGrant(actor, DOCUMENT)).client.verifiedHost).toBe('app.example')
    expect(fetched).toEqual([DOCUMENT])
  })
})

describe('fetching a document of a stranger', () => {
  const limits = { maxBytes: 1000, timeoutMs: 60_000 }
  test.each([
    'https://127.0.0.1/client.json',
    'https://localhost/client.json',
    'https://10.1.2.3/client.json',
    'https://169.254.169.254/latest/meta-data',
    'https://192.168.0.1/',
    'https://[::1]/client.json',
    'https://[::ffff:127.0.0.1]/client.json',
    'https://[fd00::1]/client.json',
    'https://2130706433/client.json',
    'https://0x7f.1/client.json',
  ])('%s is refused as not public', (url) =>
    expect(fetchPublic(url, limits)).rejects.toThrow(/is not a public address/),
  )
  test('plain http is refused', () =>
    expect(fetchPublic('http://example.com/client.json', limits)).rejects.toThrow(/only https/))
})
