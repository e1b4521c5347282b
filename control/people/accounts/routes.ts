import type { Actor } from '../../ground/actor.ts'
import { z } from 'zod'
import { errors } from '../../../shared/contracts/errors.ts'
import { siteStates } from '../../../shared/contracts/route-record.ts'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import { described } from '../../ground/http/operations/described.ts'
import type { Route } from '../../ground/http/route.ts'
import type { Organisations } from '../organisations/organisations.ts'
import { tenantSchema, toTenant } from '../organisations/schemas.ts'

const expiringSchema = z.strictObject({
  id: z.string(),
  slug: z.string(),
  url: z.string(),
  state: z.enum(siteStates),
  expires_at: z.iso.datetime(),
})

const meSchema = z
  .strictObject({
    user: described(z.strictObject({ id: z.string(), email: z.string(), email_verified: z.boolean() }), 'You.', {
      id: 'usr_2b8q6v3n1s',
      email: 'you@example.com',
      email_verified: true,
    }),
    organisation: described(
      z.strictObject({ id: z.string(), name: z.string(), plan: z.string() }),
      'The organisation that this credential acts for.',
      { id: 'org_7c1m4x9d2k', name: 'Example Ltd', plan: 'business' },
    ),
    role: described(z.enum(['owner', 'admin', 'member']), 'Yours in it.', 'owner'),
    plan: described(z.string(), 'Its plan.', 'business'),
    country: described(z.string(), 'Which decides the currency.', 'DE'),
    currency: described(z.string(), 'Of its invoices.', 'eur'),
    organisations: described(z.array(tenantSchema), 'All that you belong to.', [
      {
        id: 'org_7c1m4x9d2k',
        name: 'Example Ltd',
        plan: 'business',
        role: 'owner',
        personal: false,
        visibility_policy: 'open',
      },
    ]),
    expiring: described(
      z.array(expiringSchema),
      'Drops with fewer than fourteen days left, or expired ones that can be brought back.',
      [],
    ),
  })
  .meta({ id: 'Account' })

interface AccountRoutesDependencies {
  readonly apiRoute: ApiRouteFactory
  readonly organisations: Pick<Organisations, 'list'>
  /** Drops whose end is near, or that can still be brought back. */
  expiring(actor: Actor): Promise<readonly z.input<typeof expiringSchema>[]>
}

export function accountRoutes({ apiRoute, organisations, expiring }: AccountRoutesDependencies): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/api/v1/me',
      access: 'verified',
      needs: 'read',
      summary: 'Who this credential belongs to, and the organisations to switch between',
      tag: 'Account',
      status: 200,
      output: meSchema,
      async run({ actor }) {
        const all = await organisations.list(actor)
        // A workflow acts for one organisation, and has no business with the others of its owner.
        const memberships = actor.via.kind === 'publisher' ? all.filter(({ id }) => id === actor.orgId) : all
        const tenant = memberships.find((membership) => membership.id === actor.orgId)
        if (!tenant) throw errors.unauthorized()
        return {
          user: { id: actor.userId, email: actor.email, email_verified: actor.emailVerified },
          organisation: { id: tenant.id, name: tenant.name, plan: tenant.plan },
          role: tenant.role,
          plan: tenant.plan,
          country: tenant.country,
          currency: tenant.currency,
          organisations: memberships.map((each) => toTenant(each)),
          expiring: (await expiring(actor)).map(({ id, slug, url, state, expires_at }) => ({
            id,
            slug,
            url,
            state,
            expires_at,
          })),
        }
      },
    }),
  ]
}
