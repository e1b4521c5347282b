/** An instance that people sign in to with OpenID Connect, its provider, and the browser of a person who does. */
import { afterAll, afterEach, beforeAll } from 'vitest'
import { noteAdmission, subjectOf } from '../../control/drops/viewers/lists.ts'
import { allRoutes } from '../../control/composition/routes.ts'
import { createDashboard } from '../../control/doors/dashboard/dashboard.ts'
import { createHttpServer } from '../../control/ground/http/server/server.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { silentLog } from '../../shared/running/log.ts'
import { PASSWORD } from './accounts.ts'
import { composeServices, type ComposedServices } from './composed-services.ts'
import { startOpenIdStandIn, type OpenIdStandIn, type StandInPerson } from './openid-stand-in.ts'

export const BASE_URL = 'https://localhost:8443'
export const ADA = { sub: 'ada', email: 'ada@example.com', email_verified: true, groups: ['staff'] }

let people = 0
/** Somebody whom nobody has seen here yet. */
export const somebody = () => {
  const name = `person-${++people}`
  return { ...ADA, sub: name, email: `${name}@example.org` }
}

export interface ProvidedInstance extends ComposedServices {
  readonly url: string
  close(): Promise<void>
}

async function openInstance(provider: OpenIdStandIn, env: Record<string, string>): Promise<ProvidedInstance> {
  const composed = await composeServices({
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: provider.clientId,
    OIDC_CLIENT_SECRET: provider.clientSecret,
    OIDC_NAME: 'Acme',
    ...env,
  })
  const { services } = composed
  const routes = allRoutes(services, createDashboard(services))
  const server = createHttpServer({ routes, log: silentLog, clock: systemClock, trustedProxies: [] })
  const port = await server.listen(0, '127.0.0.1')
  return {
    ...composed,
    url: `http://127.0.0.1:${port}`,
    async close() {
      await server.close(0)
      await composed.close()
    },
  }
}

/** For a test file. What a test opens is closed after it; `shared` is for tests that need no settings, with own people. */
export function useProvider() {
  const open: { close(): Promise<void> }[] = []
  const shared = {} as { provider: OpenIdStandIn; instance: ProvidedInstance }
  beforeAll(async () => {
    shared.provider = await startOpenIdStandIn()
    shared.instance = await openInstance(shared.provider, {})
  })
  afterAll(async () => {
    await shared.instance.close()
    await shared.provider.stop()
  })
  afterEach(async () => {
    shared.provider.lie({})
    for (const each of open.splice(0)) await each.close()
  })
  return {
    shared,
    async startProvider(): Promise<OpenIdStandIn> {
      const provider = await startOpenIdStandIn()
      open.push({ close: () => provider.stop() })
      return provider
    },
    async openInstance(provider: OpenIdStandIn, env: Record<string, string> = {}): Promise<ProvidedInstance> {
      const instance = await openInstance(provider, env)
      open.push(instance)
      return instance
    },
  }
}

/** A browser: it keeps cookies of the service, and follows redirects where it is told to. */
export function openBrowser({ url }: Pick<ProvidedInstance, 'url'>) {
  const jar = new Map<string, string>()
  async function get(address: string, init: RequestInit = {}): Promise<Response> {
    const own = address.startsWith(BASE_URL) ? url + address.slice(BASE_URL.length) : address
    const isOurs = own.startsWith(url)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(own, {
      redirect: 'manual',
      ...init,
      headers: isOurs ? { cookie, ...init.headers } : {},
    })
    if (isOurs)
      for (const line of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
        if (value === '') jar.delete(name)
        else jar.set(name, value)
      }
    return response
  }
  return {
    jar,
    get,
    /** From the button to where it ends: the answer of our callback. */
    async signIn(query = ''): Promise<Response> {
      const away = await get(`${url}/signin/oidc${query}`)
      if (away.status !== 303) return away
      const back = await get(away.headers.get('location')!)
      return get(back.headers.get('location')!)
    },
    get isIn(): boolean {
      return jar.has('__Host-dropway_session')
    },
    async isWelcome(): Promise<boolean> {
      return (await get(`${url}/account`)).status === 200
    },
  }
}

/** Asks the provider after everyone, `first` before the others. */
export async function recheckAll({ sql, services }: ProvidedInstance, first = ''): Promise<void> {
  await sql`update provider_identities set checked_at = case when subject = ${first} then 'epoch'::timestamptz
    else '2000-01-01'::timestamptz end`
  await services.providerSignIn!.recheck(new AbortController().signal)
}

/** What the provider does when one of its sessions ends. */
export const logOut = ({ url }: Pick<ProvidedInstance, 'url'>, token: string): Promise<Response> =>
  fetch(`${url}/signin/oidc/logout`, { method: 'POST', body: new URLSearchParams({ logout_token: token }) })

const CIRCUMSTANCES = {
  ip: '203.0.113.7',
  userAgent: '',
  acceptLanguage: undefined,
  geoCountry: undefined,
  anonymousId: undefined,
  sessionSecret: undefined,
}

/** A person of the provider who also has a password and a token, and can open a private drop as a member. */
export async function manySided({ provider, instance }: { provider: OpenIdStandIn; instance: ProvidedInstance }) {
  const { services, sql } = instance
  const ada = somebody()
  const account = { email: ada.email, password: PASSWORD, verified: true }
  const { userId, orgId } = await services.accounts.createAccount(account)
  const { token } = await services.tokens.createFor({ userId, orgId, emailVerified: true }, { name: 'ci' })
  return {
    provider,
    instance,
    sql,
    ada,
    userId,
    orgId,
    withPassword: () => services.accounts.signIn({ email: ada.email, password: PASSWORD }, CIRCUMSTANCES),
    async sessionOf({ setCookie }: { setCookie: string }): Promise<boolean> {
      const browser = openBrowser(instance)
      browser.jar.set('__Host-dropway_session', /=([^;]*)/.exec(setCookie)![1]!)
      return browser.isWelcome()
    },
    hasToken: async () => (await services.access.tokenActor(token, '::1')) !== undefined,
    /** Resolves to the browser in which they are in. */
    async comeByProvider(who: StandInPerson = ada) {
      provider.signIn(who)
      const browser = openBrowser(instance)
      await browser.signIn()
      return browser
    },
    async leave(who: StandInPerson = ada): Promise<void> {
      provider.remove(who.sub)
      await recheckAll(instance)
    },
    /** A drop of a team that they belong to, which they have opened. */
    async openPrivateDrop() {
      const team = await instance.newTeam(await instance.newActor('plus'), 'plus')
      await sql`insert into memberships (org_id, user_id, role, created_at)
        values (${team.orgId}, ${userId}, 'member', '2026-01-01')`
      const { site } = await instance.publishPage(team, 'Ours')
      await services.sites.patch(team, site.id, { access_mode: 'viewers' })
      const subject = await subjectOf(sql, site.id, ada.email)
      await noteAdmission(sql, site.id, subject!, new Date(Date.now() + 86_400_000))
      return {
        site,
        subject: subject!,
        /** Whose admissions have ended, as edges read it. */
        ended: async () => (await instance.routeOf(site.slug)).viewers?.ended.map(([who]) => who),
      }
    },
  }
}
