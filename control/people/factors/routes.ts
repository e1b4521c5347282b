/** REST: /api/v1/passkeys… and signing in with one. The same paths without the prefix are for the pages' own scripts. */
import { z } from 'zod'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import { MAX_NAME_CHARS } from '../../../shared/contracts/limits.ts'
import { WithHeaders, type ApiRouteFactory } from '../../ground/http/api.ts'
import type { RateLimiter } from '../../ground/http/limits/rate-limit.ts'
import { described } from '../../ground/http/operations/described.ts'
import type { Request, Route } from '../../ground/http/route.ts'
import type { PasskeyEntry, Passkeys } from './passkeys.ts'

const PREFIX = '/api/v1'
const tag = 'Account'
/** An office that signs in at nine. */
const SIGN_INS = { points: 100, windowSeconds: 60 }

const passkeySchema = z.strictObject({
  id: described(z.string(), 'Id of the passkey.', 'Yk3sQ0d9'),
  name: described(z.string(), 'What you called it.', 'Phone'),
  created_at: described(z.iso.datetime(), 'When it was added.', '2026-11-15T09:00:00.000Z'),
  last_used_at: described(z.iso.datetime().nullable(), 'The last sign-in with it; null when never.', null),
})

const credentialSchema = described(
  z.looseObject({ id: z.string().max(2000), response: z.looseObject({}) }),
  "The browser's answer, as PublicKeyCredential.toJSON() writes it.",
  { id: 'Yk3sQ0d9', rawId: 'Yk3sQ0d9', type: 'public-key', response: {}, clientExtensionResults: {} },
)
const optionsSchema = z.looseObject({ challenge: described(z.string(), 'What the browser signs.', 'q8Zt4w') })

const toPasskey = ({ id, name, createdAt, lastUsedAt }: PasskeyEntry): z.input<typeof passkeySchema> => ({
  id,
  name,
  created_at: createdAt.toISOString(),
  last_used_at: lastUsedAt?.toISOString() ?? null,
})

interface PasskeyRoutesDependencies {
  readonly apiRoute: ApiRouteFactory
  readonly passkeys: Passkeys
  /** Begins a session for whoever the passkey belongs to. */
  signIn(credential: unknown, request: Request): Promise<{ email: string; setCookie: string }>
  readonly limiter: RateLimiter
}

export function passkeyRoutes(deps: PasskeyRoutesDependencies): Route[] {
  const routes = [...ownRoutes(deps), proofRoute(deps), ...signInRoutes(deps)]
  const plain = routes.map(({ method, path, handle }): Route => ({ method, path: path.replace(PREFIX, ''), handle }))
  return [...routes, ...plain]
}

function ownRoutes({ apiRoute, passkeys }: PasskeyRoutesDependencies): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: `${PREFIX}/passkeys`,
      access: 'verified',
      needs: 'session',
      tag,
      summary: 'Your passkeys (dashboard session only)',
      status: 200,
      output: z.array(passkeySchema),
      run: async ({ actor }) => (await passkeys.list(actor.userId)).map(toPasskey),
    }),
    apiRoute({
      method: 'POST',
      path: `${PREFIX}/passkeys/options`,
      access: 'verified',
      needs: 'session',
      tag,
      summary: 'What a browser needs to make a passkey (dashboard session only)',
      status: 200,
      output: optionsSchema,
      run: async ({ actor }) => ({ ...(await passkeys.creationOptions(actor)) }),
    }),
    apiRoute({
      method: 'POST',
      path: `${PREFIX}/passkeys`,
      access: 'verified',
      needs: 'session',
      tag,
      summary: 'Add a passkey (dashboard session only)',
      body: z.strictObject({
        name: described(z.string().max(MAX_NAME_CHARS), 'To tell it apart.', 'Phone'),
        credential: credentialSchema,
      }),
      status: 201,
      output: passkeySchema,
      run: async ({ actor, body }) => toPasskey(await passkeys.add(actor, body)),
    }),
    apiRoute({
      method: 'DELETE',
      path: `${PREFIX}/passkeys/:id`,
      access: 'verified',
      needs: 'session',
      tag,
      summary: 'Remove a passkey (dashboard session only)',
      status: 204,
      output: undefined,
      run: ({ actor, params }) => passkeys.remove(actor, params.id),
    }),
  ]
}

function proofRoute({ apiRoute, passkeys, limiter }: PasskeyRoutesDependencies): Route {
  return apiRoute({
    method: 'POST',
    path: `${PREFIX}/passkeys/proof`,
    access: 'verified',
    needs: 'session',
    tag,
    summary: 'Show a passkey before what reaches far; ask for it with /signin/passkey/options (dashboard session only)',
    body: z.strictObject({ credential: credentialSchema }),
    status: 204,
    output: undefined,
    admit: ({ ip }) => limiter.consume('passkey-sign-in', limitKeyOfIp(ip), SIGN_INS),
    run: ({ actor, body }) => passkeys.prove(actor, body.credential),
  })
}

function signInRoutes({ apiRoute, passkeys, signIn, limiter }: PasskeyRoutesDependencies): Route[] {
  return [
    apiRoute({
      method: 'POST',
      path: `${PREFIX}/signin/passkey/options`,
      access: 'public',
      needs: 'nothing',
      tag,
      summary: 'What a browser needs to sign in with a passkey',
      status: 200,
      output: optionsSchema,
      admit: ({ ip }) => limiter.consume('passkey-options', limitKeyOfIp(ip), SIGN_INS),
      run: async () => ({ ...(await passkeys.requestOptions()) }),
    }),
    apiRoute({
      method: 'POST',
      path: `${PREFIX}/signin/passkey`,
      access: 'public',
      needs: 'nothing',
      tag,
      summary: 'Sign in with a passkey; the answer sets the cookie of a session',
      body: z.strictObject({ credential: credentialSchema }),
      status: 200,
      output: z.strictObject({ email: described(z.string(), 'Whose it is.', 'you@example.com') }),
      admit: ({ ip }) => limiter.consume('passkey-sign-in', limitKeyOfIp(ip), SIGN_INS),
      async run({ body, request }) {
        const signedIn = await signIn(body.credential, request)
        return new WithHeaders({ email: signedIn.email }, { 'set-cookie': signedIn.setCookie })
      },
    }),
  ]
}
