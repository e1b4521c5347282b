import { z } from 'zod'
import { MAX_NAME_CHARS } from '../../../shared/contracts/limits.ts'
import { SCOPES } from '../../ground/actor.ts'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import { described } from '../../ground/http/operations/described.ts'
import type { Route } from '../../ground/http/route.ts'
import type { TokenRow } from './queries.ts'
import { MAX_TOKEN_LIFETIME_SECONDS, MAX_TOKEN_SITES, type Tokens } from './tokens.ts'

const tokenSchema = z.strictObject({
  id: described(z.string(), 'Id of the token.', 'tok_5k2n8s0d1q'),
  name: described(z.string(), 'What you called it.', 'CI'),
  hint: described(z.string(), 'Its last characters, to tell tokens apart.', '9f3a'),
  scopes: described(
    z.array(z.enum(SCOPES)).nullable(),
    'What it may be used for; null for everything that its account can do.',
    ['publish'],
  ),
  sites: described(z.array(z.string()).nullable(), 'The drops that it acts on; null for all.', ['st_4f9kq2m7x1']),
  created_at: described(z.iso.datetime(), 'When it was made.', '2026-11-15T09:00:00.000Z'),
  expires_at: described(z.iso.datetime().nullable(), 'When it ends; null when never.', '2027-02-13T09:00:00.000Z'),
  last_used_at: described(z.iso.datetime().nullable(), 'To the minute; null when never.', null),
  last_used_from: described(
    z.enum(['IPv4', 'IPv6']).nullable(),
    'The kind of address that used it last; null when never.',
    null,
  ),
})

const newTokenSchema = z.strictObject({
  name: described(z.string().trim().min(1).max(MAX_NAME_CHARS), 'What it is for.', 'CI'),
  scopes: described(
    z.array(z.enum(SCOPES)).min(1).max(SCOPES.length),
    'What it may be used for: read sees everything and changes nothing, publish also publishes and promotes, manage does all but people and billing. Without it, everything.',
    ['publish'],
  ).optional(),
  sites: described(
    z.array(z.string().min(1).max(100)).min(1).max(MAX_TOKEN_SITES),
    'Ids of the drops that it acts on, and no others; it makes none. Without it, all of them.',
    ['st_4f9kq2m7x1'],
  ).optional(),
  expires_in: described(
    z.int().min(1).max(MAX_TOKEN_LIFETIME_SECONDS),
    'Seconds until it ends, ten years at most. Without it, it has no end.',
    7_776_000,
  ).optional(),
})

function toToken(token: TokenRow): z.input<typeof tokenSchema> {
  return {
    id: token.id,
    name: token.name,
    hint: token.hint,
    scopes: token.scopes === null ? null : [...token.scopes],
    sites: token.sites === null ? null : [...token.sites],
    created_at: token.createdAt.toISOString(),
    expires_at: token.expiresAt?.toISOString() ?? null,
    last_used_at: token.lastUsedAt?.toISOString() ?? null,
    last_used_from: token.lastUsedFamily,
  }
}

const tag = 'Account'

export function tokenRoutes({ apiRoute, tokens }: { apiRoute: ApiRouteFactory; tokens: Tokens }): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/api/v1/tokens',
      access: 'verified',
      needs: 'read-people',
      summary: 'Your API tokens',
      tag,
      status: 200,
      output: z.array(tokenSchema),
      run: async ({ actor }) => (await tokens.list(actor)).map(toToken),
    }),

    apiRoute({
      method: 'POST',
      path: '/api/v1/tokens',
      access: 'verified',
      needs: 'session',
      summary: 'Create an API token; it is shown once (dashboard session only)',
      tag,
      body: newTokenSchema,
      status: 201,
      output: z.strictObject({
        ...tokenSchema.shape,
        token: described(z.string(), 'The token itself, shown this once.', 'dw_Yk3s…'),
      }),
      async run({ actor, body }) {
        const { expires_in: expiresInSeconds, ...wish } = body
        const { token, ...issued } = await tokens.create(actor, { ...wish, expiresInSeconds })
        return { ...toToken(issued), token }
      },
    }),

    apiRoute({
      method: 'DELETE',
      path: '/api/v1/tokens/:id',
      access: 'verified',
      needs: 'manage',
      summary: 'Revoke an API token at once; one that is for some drops revokes itself only',
      tag,
      status: 204,
      output: undefined,
      run: ({ actor, params }) => tokens.revoke(actor, params.id),
    }),
  ]
}
