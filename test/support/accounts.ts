/** Accounts, organisations and the mail outbox on a real Postgres, with a clock that the test moves. */
import { Readable } from 'node:stream'
import { createAccess } from '../../control/people/access/access.ts'
import { createPasskeys } from '../../control/people/factors/passkeys.ts'
import { createNewcomers } from '../../control/people/newcomers/newcomers.ts'
import { createFactors } from '../../control/people/factors/factors.ts'
import { createAccounts } from '../../control/people/accounts/accounts.ts'
import type { Actor } from '../../control/ground/actor.ts'
import type { AccountHooks, SignedIn, Circumstances } from '../../control/people/accounts/contract.ts'
import { createTokens } from '../../control/people/access/tokens.ts'
import { SESSION_COOKIE } from '../../control/people/access/sessions.ts'
import { createApiRoutes } from '../../control/ground/http/api.ts'
import type { Request, Route } from '../../control/ground/http/route.ts'
import { createEnqueueMail, sealContext } from '../../control/ground/mail/mail.ts'
import type { RenderedMail } from '../../control/ground/mail/letters/templates.ts'
import { createOrganisations } from '../../control/people/organisations/organisations.ts'
import { DAY_MS } from '../../shared/running/clock.ts'
import { ApiError } from '../../shared/contracts/errors.ts'
import { silentLog, type Log } from '../../shared/running/log.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'
import { createTestDatabase } from './postgres.ts'

export const BASE_URL = 'https://dropway.test'
export const PERSONAL_DATA_KEPT_MS = 30 * 86_400_000
export const PASSWORD = 'correct horse battery'

export const VISIT: Circumstances = {
  ip: '203.0.113.7',
  userAgent: 'Browser/1',
  acceptLanguage: 'de-AT,de;q=0.9',
  geoCountry: undefined,
  anonymousId: undefined,
  sessionSecret: undefined,
}

/** What a hook was called with, in order. */
type HookCall = [name: keyof AccountHooks | 'onOwnerChanged', subject: string]

export interface SentMail extends RenderedMail {
  readonly to: string
  readonly template: string
  /** Token of the link in it. */
  readonly token: string
}

export type AccountsFixture = Awaited<ReturnType<typeof createAccountsFixture>>

export async function createAccountsFixture(log: Log = silentLog) {
  const database = await createTestDatabase()
  const { sql } = database
  const secrets = createSecrets('a secret key for tests, 32 chars or more')
  let nowMs = Date.parse('2026-03-01T12:00:00Z')
  const clock = { now: () => nowMs }
  const hookCalls: HookCall[] = []
  const hooks = {
    onSignIn: async (_: unknown, userId: string) => void hookCalls.push(['onSignIn', userId]),
    onVerified: async (_: unknown, userId: string) => void hookCalls.push(['onVerified', userId]),
    onOrganisationDeleted: async (_: unknown, orgId: string) => void hookCalls.push(['onOrganisationDeleted', orgId]),
    async onOwnerChanged(_: unknown, orgId: string) {
      hookCalls.push(['onOwnerChanged', orgId])
      return { bill: undefined }
    },
    claim: async (_: unknown, { anonymousId }: { anonymousId: string }) => hookCalls.push(['claim', anonymousId]),
    onMemberLeft: async (_: unknown, userId: string) => void hookCalls.push(['onMemberLeft', userId]),
    onAccountClosed: async (_: unknown, userId: string) => void hookCalls.push(['onAccountClosed', userId]),
    onMemberBack: async () => {},
    endConnectedApps: async (_: unknown, userId: string) => void hookCalls.push(['endConnectedApps', userId]),
    propagate: async () => void hookCalls.push(['propagate', '']),
  }
  const enqueueMail = createEnqueueMail({ secrets, clock })
  const factors = createFactors({ sql, clock, baseUrl: BASE_URL, secrets, enqueueMail, hooks })
  const passkeys = createPasskeys({ sql, clock, baseUrl: BASE_URL, serviceName: 'Dropway', factors, hooks })
  const accounts = createAccounts({
    sql,
    clock,
    log,
    baseUrl: BASE_URL,
    secrets,
    enqueueMail,
    hooks,
    factors,
    passkeys,
    passwordSignIn: true,
    newcomers: createNewcomers({ sql, clock, baseUrl: BASE_URL, secrets, enqueueMail, policy: { kind: 'open' } }),
    personalDataKeptMs: PERSONAL_DATA_KEPT_MS,
    settings: { unverifiedLifetimeMs: 90 * DAY_MS, unverifiedWarningsMs: [30 * DAY_MS, 7 * DAY_MS] },
    dropUrl: (slug) => `https://${slug}.dropway.test`,
    geoHeader: 'x-country',
    anonymousIdOf: () => undefined,
  })
  const organisations = createOrganisations({ sql, clock, baseUrl: BASE_URL, enqueueMail, hooks })
  const access = createAccess({ sql, clock, log, baseUrl: BASE_URL })
  const tokens = createTokens({ sql, clock, baseUrl: BASE_URL, enqueueMail })

  async function mailsTo(to: string): Promise<SentMail[]> {
    const rows = await sql<{ id: string; template: string; sealed: string }[]>`
      select id, template, sealed from mails where recipient = ${to} order by created_at, id`
    return rows.map(({ id, template, sealed }) => {
      const mail = JSON.parse(secrets.open(sealed, sealContext(id)).toString()) as RenderedMail
      return { ...mail, to, template, token: /[?]token=([\w-]+)/.exec(mail.text)?.[1] ?? '' }
    })
  }

  const cookies = new Map<string, string>()
  async function actorOf(signedIn: Pick<SignedIn, 'setCookie'>): Promise<Actor> {
    const secret = secretOf(signedIn)
    const actor = (await access.sessionActor(fakeRequest({ cookies: { [SESSION_COOKIE]: secret } })))!
    if (actor.via.kind === 'session') cookies.set(actor.via.sessionId, secret)
    return actor
  }

  /** The same session as it is by now. */
  async function refreshed({ via }: Actor): Promise<Actor> {
    const secret = via.kind === 'session' ? cookies.get(via.sessionId) : undefined
    return (await access.sessionActor(fakeRequest({ cookies: { [SESSION_COOKIE]: secret ?? '' } })))!
  }

  let people = 0
  /** A new, verified account with a session. */
  async function newAccount(email = `person${++people}@example.com`): Promise<Actor> {
    const signedIn = await accounts.signUp({ email, password: PASSWORD }, VISIT)
    const [mail] = await mailsTo(email)
    await accounts.verifyEmail(mail!.token)
    return actorOf(signedIn)
  }

  return {
    database,
    sql,
    secrets,
    clock,
    hookCalls,
    hooks,
    enqueueMail,
    accounts,
    organisations,
    factors,
    passkeys,
    access,
    tokens,
    mailsTo,
    actorOf,
    refreshed,
    newAccount,
    apiRoute: createApiRoutes(access.authenticate),
    advance: (ms: number) => void (nowMs += ms),
    close: () => database.close(),
  }
}

/** The value of the cookie that a reply sets. */
export function secretOf({ setCookie }: { setCookie: string }): string {
  return /=([^;]*)/.exec(setCookie)![1]!
}

interface FakeRequest {
  method?: string
  path?: string
  headers?: Record<string, string>
  cookies?: Record<string, string>
  params?: Record<string, string>
  body?: unknown
  ip?: string
}

export function fakeRequest({
  method = 'GET',
  path = '/',
  headers = {},
  cookies = {},
  params = {},
  body,
  ip = VISIT.ip,
}: FakeRequest): Request {
  const text = body === undefined ? '' : JSON.stringify(body)
  const all = { ...headers, ...(body === undefined ? {} : { 'content-length': String(text.length) }) }
  return {
    method,
    path: path.split('?')[0]!,
    query: new URLSearchParams(path.split('?')[1] ?? ''),
    params,
    header: (name) => new Map(Object.entries(all)).get(name),
    cookie: (name) => new Map(Object.entries(cookies)).get(name),
    ip,
    signal: new AbortController().signal,
    json: async () => body,
    form: async () => new URLSearchParams(),
    text: async () => text,
    bytes: async () => Buffer.from(text),
    stream: () => Readable.from([text]),
    hold() {},
    multipart: async () => {},
  }
}

/** Calls the one route of that method and pattern; errors become replies, as control/ground/http makes them. */
export async function callRoute(
  routes: readonly Route[],
  method: string,
  pattern: string,
  request: Omit<FakeRequest, 'method'>,
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts the shape right after
): Promise<{ status: number; body: any }> {
  const route = routes.find((candidate) => candidate.method === method && candidate.path === pattern)
  if (!route) throw new Error(`no route ${method} ${pattern}`)
  try {
    const reply = await route.handle(fakeRequest({ ...request, method }))
    return { status: reply.status, body: typeof reply.body === 'string' ? JSON.parse(reply.body) : undefined }
  } catch (error) {
    if (error instanceof ApiError) return { status: error.status, body: error.toBody() }
    throw error
  }
}

/** The error code that a call is refused with. */
export async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    if (error instanceof ApiError) return error.code
    throw error
  }
  return 'accepted'
}
