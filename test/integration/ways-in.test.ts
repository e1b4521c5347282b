/** SIGNUP and ANONYMOUS hold at every door: every route of the control plane, with everything that a stranger can bring. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allRoutes } from '../../control/composition/routes.ts'
import { createDashboard } from '../../control/doors/dashboard/dashboard.ts'
import type { Route } from '../../control/ground/http/route.ts'
import type { Actor } from '../../control/ground/actor.ts'
import { createNewcomers } from '../../control/people/newcomers/newcomers.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'
import { PASSWORD } from '../support/accounts.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'
import { belongings, tryEvery, type Attempt, type Door } from '../support/every-door.ts'
import { startServer } from '../support/http-server.ts'

const ORIGIN = 'https://localhost:8443'
const NEWCOMER = 'newcomer@example.com'

interface Instance extends ComposedServices {
  readonly owner: Actor
  readonly routes: readonly Route[]
  /** Of an organisation that has invited the newcomer. */
  readonly invitation: string
}

async function openInstance(env: Record<string, string>): Promise<Instance> {
  const composed = await composeServices(env)
  const { services } = composed
  const owner = await composed.newActor('plus')
  const team = await composed.newTeam(owner)
  await services.organisations.invite(team, team.orgId, { email: NEWCOMER, role: 'admin' })
  const [mail] = await composed.mailsTo(NEWCOMER)
  const invitation = /token=([\w-]+)/.exec(mail?.text ?? '')?.[1] ?? ''
  return { ...composed, owner, routes: allRoutes(services, createDashboard(services)), invitation }
}

/** Every route with nothing, in a browser of ours, with an invitation, and with credentials of nobody. */
async function tryAllDoors(instance: Instance, routes: readonly Route[]): Promise<Attempt[]> {
  const { url } = await startServer([...routes])
  const page = await fetch(`${url}/signin`)
  const csrf = /name="csrf" value="([^"]+)"/.exec(await page.text())?.[1] ?? ''
  const cookie = page.headers
    .getSetCookie()
    .map((each) => each.split(';')[0])
    .join('; ')
  const site = await instance.publishPage(instance.owner, 'Theirs')
  const stranger = {
    url,
    origin: ORIGIN,
    params: { id: site.site.id, slug: site.site.slug, name: 'cv', org: instance.owner.orgId, provider: 'x' },
    fields: {
      csrf,
      email: NEWCOMER,
      username: NEWCOMER,
      password: PASSWORD,
      current_password: PASSWORD,
      new_password: PASSWORD,
      country: 'DE',
      next: '/sites',
      code: '123456',
      pending: 'x',
      text: '# Hello',
      markdown: '# Hello',
      title: 'Hello',
      name: 'Hello',
      user_code: 'BCDF-GHJK',
      decision: 'allow',
      client_id: 'x',
      grant_type: 'authorization_code',
      role: 'admin',
    },
  }
  const doors: Door[] = [
    { name: 'with nothing' },
    { name: 'in a browser of ours', headers: { cookie } },
    { name: 'with an invitation', headers: { cookie }, fields: { token: instance.invitation } },
    {
      name: 'with credentials of nobody',
      headers: {
        cookie: `${cookie}; __Host-dropway_session=${'a'.repeat(43)}`,
        authorization: `Bearer dw_${'a'.repeat(40)}`,
      },
    },
  ]
  const attempts: Attempt[] = []
  for (const door of doors) attempts.push(...(await tryEvery(routes, door, stranger)))
  return attempts
}

describe('a closed instance', () => {
  let instance: Instance
  beforeAll(async () => {
    instance = await openInstance({ SIGNUP: 'closed', ANONYMOUS: 'off' })
  })
  afterAll(() => instance.close())

  test('every route × every door: nobody comes in, and nothing is published', async () => {
    await instance.publishPage(instance.owner, 'Theirs')
    const before = await belongings(instance.sql)
    const attempts = await tryAllDoors(instance, instance.routes)
    expect(attempts.filter(({ hasSession }) => hasSession)).toEqual([])
    expect(attempts.filter(({ status }) => status === 500)).toEqual([])
    // One drop is the owner's, which the walk itself has published.
    expect(await belongings(instance.sql)).toEqual({
      ...before,
      sites: before.sites + 1,
      versions: before.versions + 1,
    })
    expect(attempts.length).toBeGreaterThan(1000)
  })

  test('the refusals say which switch it was', async () => {
    const { url } = await startServer([...instance.routes])
    const drop = await fetch(`${url}/api/v1/drops-md`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ markdown: '# Hello' }),
    })
    expect([drop.status, ((await drop.json()) as { error: string }).error]).toEqual([403, 'anonymous_off'])
    expect((await fetch(`${url}/preview`)).status).toBe(403)
    const assistant = await fetch(`${url}/mcp/anonymous`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    })
    expect([assistant.status, await assistant.text()]).toEqual([403, expect.stringMatching(/anonymous_off.*\/mcp/s)])
    const front = await (await fetch(`${url}/`)).text()
    expect(front).not.toMatch(/<form[^>]*action="\/drop/)
    expect(front).not.toContain('href="/signup')
    const signUp = await fetch(`${url}/signup`)
    expect([signUp.status, await signUp.text()]).toEqual([403, expect.stringContaining('Sign-up is closed')])
  })
})

describe('the walk can fail', () => {
  test('an open instance lets the same stranger in, and publish', async () => {
    const instance = await openInstance({})
    try {
      const doors = new Set(['/signin', '/signup', '/api/v1/drops-md', '/api/v1/drops'])
      const before = await belongings(instance.sql)
      const attempts = await tryAllDoors(
        instance,
        instance.routes.filter(({ path }) => doors.has(path)),
      )
      expect(attempts.some(({ hasSession }) => hasSession)).toBe(true)
      const after = await belongings(instance.sql)
      expect(after.users).toBeGreaterThan(before.users)
      expect(after.sites).toBeGreaterThan(before.sites + 1)
    } finally {
      await instance.close()
    }
  })
})

describe('an account by invitation', () => {
  let instance: Instance
  beforeAll(async () => {
    instance = await openInstance({ SIGNUP: 'invited' })
  })
  afterAll(() => instance.close())

  const circumstances = {
    ip: '203.0.113.7',
    userAgent: 'Firefox/1',
    acceptLanguage: undefined,
    geoCountry: undefined,
    anonymousId: undefined,
    sessionSecret: undefined,
  }
  const signUp = (email: string, token?: string) =>
    instance.services.accounts.signUp({ email, password: PASSWORD, country: 'DE', token }, circumstances)

  test('a stranger is refused, and so is another address with the same link', async () => {
    await expect(signUp('stranger@example.com')).rejects.toMatchObject({ status: 403, code: 'sign_up_closed' })
    await expect(signUp('stranger@example.com', instance.invitation)).rejects.toMatchObject({ code: 'sign_up_closed' })
    await expect(signUp(NEWCOMER)).rejects.toMatchObject({ code: 'sign_up_closed' })
  })

  test('the invited address gets one account, verified by the link', async () => {
    expect(await signUp(NEWCOMER, instance.invitation)).toMatchObject({ emailVerified: true })
    await expect(signUp(NEWCOMER, instance.invitation)).rejects.toMatchObject({ status: 409, code: 'email_taken' })
  })

  test('a link of the operator works once, for its address, also for two who race', async () => {
    const { link } = await instance.services.newcomers.invite('Ada@Example.com')
    const token = new URL(link).searchParams.get('token')!
    expect(await instance.services.newcomers.peek(token)).toEqual({ email: 'ada@example.com' })
    await expect(signUp('eve@example.com', token)).rejects.toMatchObject({ code: 'sign_up_closed' })
    const outcomes = await Promise.allSettled([signUp('ada@example.com', token), signUp('ada@example.com', token)])
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await instance.services.newcomers.peek(token)).toBeUndefined()
    expect((await instance.mailsTo('ada@example.com')).map(({ template }) => template)).toContain('sign_up_invitation')
  })

  test('a second link to an address replaces the first', async () => {
    const { newcomers } = instance.services
    const first = new URL((await newcomers.invite('bob@example.com')).link).searchParams.get('token')!
    await newcomers.invite('bob@example.com')
    await expect(signUp('bob@example.com', first)).rejects.toMatchObject({ code: 'sign_up_closed' })
  })
})

describe('the first owner', () => {
  test('one link, the same at each start, for one account that runs the service; none once there is anyone', async () => {
    const composed = await composeServices({ SIGNUP: 'closed' })
    try {
      const { newcomers, accounts } = composed.services
      const [link, again] = await Promise.all([newcomers.ownerLink(), newcomers.ownerLink()])
      expect(link).toBe(again)
      const token = new URL(link!).searchParams.get('token')!
      const from = { ip: '203.0.113.7', userAgent: '', acceptLanguage: undefined, geoCountry: undefined }
      const circumstances = { ...from, anonymousId: undefined, sessionSecret: undefined }
      const signUp = (email: string) => accounts.signUp({ email, password: PASSWORD, token }, circumstances)
      const outcomes = await Promise.allSettled([signUp('first@example.com'), signUp('second@example.com')])
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      const people = await composed.sql<{ verified: boolean; staff: boolean }[]>`
        select email_verified_at is not null as verified, is_staff as staff from users`
      expect([...people]).toEqual([{ verified: true, staff: true }])
      expect(await newcomers.ownerLink()).toBeUndefined()
      await expect(signUp('third@example.com')).rejects.toMatchObject({ code: 'sign_up_closed' })
    } finally {
      await composed.close()
    }
  })

  test('the link works after a change of SECRET_KEY; an account of the operator’s making ends it too', async () => {
    const composed = await composeServices({ SIGNUP: 'closed' })
    try {
      const { newcomers } = composed.services
      const former = createNewcomers({
        ...composed.services,
        baseUrl: ORIGIN,
        policy: { kind: 'closed' },
        clock: systemClock,
        secrets: createSecrets('the key before, of at least thirty-two characters'),
      })
      const before = new URL((await former.ownerLink())!).searchParams.get('token')!
      expect(await former.peek(before)).toBeDefined()
      const token = new URL((await newcomers.ownerLink())!).searchParams.get('token')!
      expect(await newcomers.peek(token)).toBeDefined()
      await composed.newActor()
      expect(await newcomers.ownerLink()).toBeUndefined()
      expect(await newcomers.peek(token)).toBeUndefined()
      await expect(newcomers.admit(composed.sql, { email: 'x@example.com', token })).rejects.toMatchObject({
        code: 'sign_up_closed',
      })
    } finally {
      await composed.close()
    }
  })
})

describe('an instance for one domain', () => {
  test('others are refused at the form and at a change of address', async () => {
    const composed = await composeServices({ SIGNUP: '@example.com' })
    try {
      const { accounts } = composed.services
      const from = { ip: '203.0.113.7', userAgent: '', acceptLanguage: undefined, geoCountry: undefined }
      const circumstances = { ...from, anonymousId: undefined, sessionSecret: undefined }
      const signUp = (email: string) => accounts.signUp({ email, password: PASSWORD }, circumstances)
      await expect(signUp('a@sub.example.com')).rejects.toMatchObject({ code: 'sign_up_closed' })
      expect(await signUp('a@EXAMPLE.com')).toMatchObject({ emailVerified: false })
      const actor = await composed.newActor('free', false)
      await expect(
        accounts.requestEmailChange(actor, { newEmail: 'a@evil.test', password: PASSWORD }),
      ).rejects.toMatchObject({ status: 403, code: 'sign_up_closed' })
    } finally {
      await composed.close()
    }
  })
})
