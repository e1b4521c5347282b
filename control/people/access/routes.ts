import { z } from 'zod'
import { MAX_NAME_CHARS } from '../../../shared/contracts/limits.ts'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import { described } from '../../ground/http/operations/described.ts'
import type { Route } from '../../ground/http/route.ts'
import type { Tokens } from './tokens.ts'

const tokenSchema = z.strictObject({
  id: described(z.string(), 'Id of the token.', 'tok_5k2n8s0d1q'),
  name: described(z.string(), 'What you called it.', 'CI'),
  hint: described(z.string(), 'Its last characters, to tell tokens apart.', '9f3a'),
  created_at: described(z.iso.datetime(), 'When it was made.', '2026-11-15T09:00:00.000Z'),
  last_used_at: described(z.iso.datetime().nullable(), 'To the minute; null when never.', null),
})

const newTokenSchema = z.strictObject({
  name: described(z.string().trim().min(1).max(MAX_NAME_CHARS), 'What it is for.', 'CI'),
})

const tag = 'Account'

export function tokenRoutes({ apiRoute, tokens }: { apiRoute: ApiRouteFactory; tokens: Tokens }): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/api/v1/tokens',
      access: 'verified',
      summary: 'Your API tokens',
      tag,
      status: 200,
      output: z.array(tokenSchema),
      async run({ actor }) {
        return (await tokens.list(actor)).map(({ id, name, hint, createdAt, lastUsedAt }) => ({
          id,
          name,
          hint,
          created_at: createdAt.toISOString(),
          last_used_at: lastUsedAt?.toISOString() ?? null,
        }))
      },
    }),

    apiRoute({
      method: 'POST',
      path: '/api/v1/tokens',
      access: 'verified',
      sessionOnly: true,
      summary: 'Create an API token; it is shown once (dashboard session only)',
      tag,
      body: newTokenSchema,
      status: 201,
      output: z.strictObject({
        ...tokenSchema.shape,
        token: described(z.string(), 'The token itself, shown this once.', 'dw_Yk3s…'),
      }),
      async run({ actor, body }) {
        const { id, name, hint, token, createdAt } = await tokens.create(actor, body.name)
        return { id, name, hint, created_at: createdAt.toISOString(), last_used_at: null, token }
      },
    }),

    apiRoute({
      method: 'DELETE',
      path: '/api/v1/tokens/:id',
      access: 'verified',
      summary: 'Revoke an API token at once',
      tag,
      status: 204,
      output: undefined,
      run: ({ actor, params }) => tokens.revoke(actor, params.id),
    }),
  ]
}
