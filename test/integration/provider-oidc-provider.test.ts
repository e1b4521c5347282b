/** Signing in with a certified implementation of OpenID Connect that others wrote: npm's `oidc-provider`. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Provider } from 'oidc-provider'
import { allRoutes } from '../../control/composition/routes.ts'
import { createDashboard } from '../../control/doors/dashboard/dashboard.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'
import { startServer } from '../support/http-server.ts'
import { keepIdleConnections } from '../support/idle-connections.ts'

const BASE_URL = 'https://localhost:8443'
let composed: ComposedServices
let provider: Provider
const server = createServer((request, response) => void handle(request, response))
let handle: ReturnType<Provider['callback']>

beforeAll(async () => {
  keepIdleConnections(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'dropway',
        client_secret: 'a secret of the client',
        redirect_uris: [`${BASE_URL}/signin/oidc/callback`],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
    scopes: ['openid', 'email', 'profile', 'groups', 'offline_access'],
    features: { devInteractions: { enabled: false } },
    cookies: { keys: ['a key for cookies'] },
    issueRefreshToken: () => true,
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, groups: ['staff'] }),
    }),
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
  })
  const callback = provider.callback()
  handle = async (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return callback(request, response)
    // A person who signs in and agrees to everything.
    const { params } = await provider.interactionDetails(request, response)
    const grant = new provider.Grant({ accountId: 'grace', clientId: String(params['client_id']) })
    grant.addOIDCScope(String(params['scope']))
    const result = { login: { accountId: 'grace' }, consent: { grantId: await grant.save() } }
    await provider.interactionFinished(request, response, result)
  }
  composed = await composeServices({
    OIDC_ISSUER: issuer,
    OIDC_CLIENT_ID: 'dropway',
    OIDC_CLIENT_SECRET: 'a secret of the client',
    OIDC_GROUPS: 'staff=admin',
    OIDC_RECHECK: '1ms',
  })
})

afterAll(async () => {
  await composed.close()
  server.closeAllConnections()
  server.close()
})

test('signs in, is asked after, and is out when the grant is gone', async () => {
  const { services, sql } = composed
  const { url } = await startServer([...allRoutes(services, createDashboard(services))])
  const jars = new Map<string, Map<string, string>>()
  async function get(address: string): Promise<Response> {
    const target = address.startsWith(BASE_URL) ? url + address.slice(BASE_URL.length) : address
    const { origin } = new URL(target)
    const jar = jars.get(origin) ?? new Map<string, string>()
    jars.set(origin, jar)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(target, { redirect: 'manual', headers: { cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      jar.set(name, value)
    }
    return response
  }
  let response = await get(`${url}/signin/oidc`)
  let at = url
  while (!response.headers.get('location')?.startsWith('/sites') && response.status < 400) {
    at = new URL(response.headers.get('location')!, at).href
    response = await get(at)
  }
  expect([response.status, response.headers.get('location')]).toEqual([303, '/sites'])
  expect((await get(`${url}/account`)).status).toBe(200)
  const [person] = await sql<{ email: string; roles: number }[]>`
    select u.email, (select count(*)::int from memberships m where m.user_id = u.id) as roles from users u`
  expect(person).toEqual({ email: 'grace@example.com', roles: 2 })
  const recheck = () => services.providerSignIn!.recheck(new AbortController().signal)
  await recheck()
  await recheck()
  expect((await get(`${url}/account`)).status).toBe(200)
  await sql`update provider_identities set checked_at = checked_at - interval '1 hour'`
  await forgetGrants()
  await recheck()
  expect((await get(`${url}/account`)).status).toBe(303)
})

/** As an administrator would end them. */
async function forgetGrants(): Promise<void> {
  const sealed = await composed.sql<
    { id: string; sealed_grant: string }[]
  >`select id, sealed_grant from provider_identities`
  for (const row of sealed) {
    const grant = JSON.parse(
      composed.services.secrets.open(row.sealed_grant, `provider grant ${row.id}`).toString(),
    ) as { refreshToken: string }
    const token = await provider.RefreshToken.find(grant.refreshToken)
    const given = token?.grantId === undefined ? undefined : await provider.Grant.find(token.grantId)
    await token?.destroy()
    await given?.destroy()
  }
}
