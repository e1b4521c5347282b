import { z } from 'zod'
import { MAX_NAME_CHARS } from '../../../shared/limits.ts'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import type { Route } from '../../ground/http/route.ts'
import type { Tokens } from './tokens.ts'

const tokenSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  /** The last characters, to tell tokens apart. */
  hint: z.string(),
  created_at: z.iso.datetime(),
  last_used_at: z.iso.datetime().nullable(),
})

const newTokenSchema = z.strictObject({ name: z.string().trim().min(1).max(MAX_NAME_CHARS) })

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
      summary: 'Create an API token; it is shown once (dashboard session only)',
      tag,
      body: newTokenSchema,
      status: 201,
      output: z.strictObject({ ...tokenSchema.shape, token: z.string() }),
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
