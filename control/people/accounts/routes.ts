import { z } from 'zod'
import { nearEnd } from '../../../shared/clock-notice.ts'
import type { Clock } from '../../../shared/clock.ts'
import { errors } from '../../../shared/errors.ts'
import { MAX_NAME_CHARS } from '../../../shared/limits.ts'
import { siteStates } from '../../../shared/route-record.ts'
import { recordAudit } from '../audit/audit.ts'
import { transaction, type Pool } from '../../ground/database/sql.ts'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import type { Route } from '../../ground/http/route.ts'
import type { Organisations } from '../organisations/organisations.ts'
import { tenantSchema, toTenant } from '../organisations/representation.ts'
import type { Sites } from '../../drops/sites/sites.ts'
import { issueToken, listTokens, revokeToken } from '../access/tokens.ts'

const meSchema = z.strictObject({
  user: z.strictObject({ id: z.string(), email: z.string(), email_verified: z.boolean() }),
  /** The organisation that this credential acts for. */
  organisation: z.strictObject({ id: z.string(), name: z.string(), plan: z.string() }),
  role: z.enum(['owner', 'admin', 'member']),
  plan: z.string(),
  country: z.string(),
  currency: z.string(),
  organisations: z.array(tenantSchema),
  /** Drops with fewer than fourteen days left, or expired ones that can be brought back. */
  expiring: z.array(
    z.strictObject({
      id: z.string(),
      slug: z.string(),
      url: z.string(),
      state: z.enum(siteStates),
      expires_at: z.iso.datetime(),
    }),
  ),
})

const tokenSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  /** The last characters, to tell tokens apart. */
  hint: z.string(),
  created_at: z.iso.datetime(),
  last_used_at: z.iso.datetime().nullable(),
})

const newTokenSchema = z.strictObject({ name: z.string().trim().min(1).max(MAX_NAME_CHARS) })

interface Deps {
  readonly sql: Pool
  readonly apiRoute: ApiRouteFactory
  readonly organisations: Pick<Organisations, 'list'>
  readonly sites: Pick<Sites, 'list'>
  readonly clock: Clock
}

export function accountRoutes({ sql, apiRoute, organisations, sites, clock }: Deps): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/api/v1/me',
      access: 'verified',
      summary: 'Who this credential belongs to, and the organisations to switch between',
      tag: 'Account',
      status: 200,
      output: meSchema,
      async run({ actor }) {
        const memberships = await organisations.list(actor)
        const tenant = memberships.find((membership) => membership.id === actor.orgId)
        if (!tenant) throw errors.unauthorized()
        return {
          user: { id: actor.userId, email: actor.email, email_verified: actor.emailVerified },
          organisation: { id: tenant.id, name: tenant.name, plan: tenant.plan },
          role: tenant.role,
          plan: tenant.plan,
          country: tenant.country,
          currency: tenant.currency,
          organisations: memberships.map(toTenant),
          expiring: nearEnd(await sites.list(actor), clock.now()).map(({ id, slug, url, state, expires_at }) => ({
            id,
            slug,
            url,
            state,
            expires_at: expires_at!,
          })),
        }
      },
    }),

    apiRoute({
      method: 'GET',
      path: '/api/v1/tokens',
      access: 'verified',
      summary: 'Your API tokens',
      tag: 'Account',
      status: 200,
      output: z.array(tokenSchema),
      async run({ actor }) {
        const tokens = await listTokens(sql, actor)
        return tokens.map(({ id, name, hint, createdAt, lastUsedAt }) => ({
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
      tag: 'Account',
      body: newTokenSchema,
      status: 201,
      output: z.strictObject({ ...tokenSchema.shape, token: z.string() }),
      async run({ actor, body }) {
        // A leaked token must not be able to outlive its revocation by making another.
        if (actor.via.kind !== 'session')
          throw errors.forbidden('Tokens are created in the dashboard, not with a token.')
        const issued = await transaction(sql, async (locked) => {
          const created = await issueToken(locked, actor, body.name)
          await recordAudit(locked, {
            orgId: actor.orgId,
            actor,
            action: 'token.created',
            subject: created.id,
            detail: { name: created.name },
          })
          return created
        })
        const { id, name, hint, token } = issued
        return { id, name, hint, created_at: issued.createdAt.toISOString(), last_used_at: null, token }
      },
    }),

    apiRoute({
      method: 'DELETE',
      path: '/api/v1/tokens/:id',
      access: 'verified',
      summary: 'Revoke an API token at once',
      tag: 'Account',
      status: 204,
      output: undefined,
      async run({ actor, params }) {
        await transaction(sql, async (locked) => {
          const { name } = await revokeToken(locked, actor, params.id)
          await recordAudit(locked, {
            orgId: actor.orgId,
            actor,
            action: 'token.revoked',
            subject: params.id,
            detail: { name },
          })
        })
      },
    }),
  ]
}
