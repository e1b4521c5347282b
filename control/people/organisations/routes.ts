import { z } from 'zod'
import type { Actor } from '../../ground/actor.ts'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import { described } from '../../ground/http/operations/described.ts'
import type { Route } from '../../ground/http/route.ts'
import type { Organisations } from './organisations.ts'
import type { MembershipRow } from './queries.ts'
import { invitationSchema, memberSchema, tenantSchema, toInvitation, toMember, toTenant } from './schemas.ts'
import { GIVABLE_ROLES, VISIBILITY_POLICIES } from './rules.ts'

const nameSchema = z.strictObject({ name: described(z.string(), 'Its name.', 'Example Ltd') })
const changeSchema = z
  .strictObject({
    name: described(z.string(), 'Its name.', 'Example Ltd').optional(),
    visibility_policy: described(z.enum(VISIBILITY_POLICIES), 'Whether its drops may be public.').optional(),
    require_second_factor: described(z.boolean(), 'Members need a second factor to act for it.').optional(),
  })
  .refine((body) => Object.keys(body).length > 0, 'Send name, visibility_policy or require_second_factor.')
const givableRole = z.enum(GIVABLE_ROLES)
const tag = 'Organisation'

interface OrganisationRoutesDependencies {
  apiRoute: ApiRouteFactory
  organisations: Organisations
}

export function organisationRoutes(deps: OrganisationRoutesDependencies): Route[] {
  return [...wholeRoutes(deps), ...memberRoutes(deps), ...invitationRoutes(deps)]
}

/** Routes of an organisation as a whole. */
function wholeRoutes({ apiRoute, organisations }: OrganisationRoutesDependencies): Route[] {
  /** The second factor is the owner's word; the rest is one change. */
  async function change(actor: Actor, orgId: string, wanted: z.output<typeof changeSchema>): Promise<MembershipRow> {
    const { name, visibility_policy: visibilityPolicy, require_second_factor: isRequired } = wanted
    const asked =
      isRequired === undefined ? undefined : await organisations.requireSecondFactor(actor, orgId, isRequired)
    if (asked && name === undefined && visibilityPolicy === undefined) return asked
    return organisations.change(actor, orgId, { name, visibilityPolicy })
  }

  return [
    apiRoute({
      method: 'GET',
      path: '/api/v1/organisations',
      access: 'verified',
      needs: 'read-people',
      summary: 'The organisations that you belong to',
      tag,
      status: 200,
      output: z.array(tenantSchema),
      async run({ actor }) {
        const all = await organisations.list(actor)
        return Promise.all(all.map(async (each) => toTenant(each, await organisations.stillPublic(each))))
      },
    }),
    apiRoute({
      method: 'POST',
      path: '/api/v1/organisations',
      access: 'verified',
      needs: 'people',
      summary: 'Create an organisation',
      tag,
      body: nameSchema,
      status: 201,
      output: tenantSchema,
      run: async ({ actor, body }) => toTenant(await organisations.create(actor, body.name)),
    }),
    apiRoute({
      method: 'PATCH',
      path: '/api/v1/organisations/:id',
      access: 'verified',
      needs: 'people',
      summary: 'Rename an organisation, say whether its drops may be public, or ask its members for a second factor',
      tag,
      body: changeSchema,
      status: 200,
      output: tenantSchema,
      async run({ actor, params, body }) {
        const changed = await change(actor, params.id, body)
        return toTenant(changed, await organisations.stillPublic(changed))
      },
    }),
    apiRoute({
      method: 'DELETE',
      path: '/api/v1/organisations/:id',
      access: 'verified',
      needs: 'people',
      summary: 'Delete an organisation and its drops',
      tag,
      status: 204,
      output: undefined,
      run: async ({ actor, params }) => organisations.remove(actor, params.id),
    }),
    apiRoute({
      method: 'POST',
      path: '/api/v1/organisations/:id/switch',
      access: 'verified',
      needs: 'session',
      summary: 'Act for this organisation from now on (dashboard session only)',
      tag,
      status: 200,
      output: tenantSchema,
      run: async ({ actor, params }) => toTenant(await organisations.switchTo(actor, params.id)),
    }),
  ]
}

/** Routes of those who belong to it. */
function memberRoutes({ apiRoute, organisations }: OrganisationRoutesDependencies): Route[] {
  return [
    apiRoute({
      method: 'POST',
      path: '/api/v1/organisations/:id/transfer',
      access: 'verified',
      needs: 'people',
      summary: 'Make another member the owner',
      tag,
      body: z.strictObject({ user_id: described(z.string(), 'Id of a member.', 'usr_2b8q6v3n1s') }),
      status: 204,
      output: undefined,
      run: async ({ actor, params, body }) => organisations.transfer(actor, params.id, body.user_id),
    }),
    apiRoute({
      method: 'GET',
      path: '/api/v1/organisations/:id/members',
      access: 'verified',
      needs: 'read-people',
      summary: 'Who belongs to an organisation',
      tag,
      status: 200,
      output: z.array(memberSchema),
      run: async ({ actor, params }) => (await organisations.listMembers(actor, params.id)).map(toMember),
    }),
    apiRoute({
      method: 'PATCH',
      path: '/api/v1/organisations/:id/members/:user_id',
      access: 'verified',
      needs: 'people',
      summary: "Change a member's role",
      tag,
      body: z.strictObject({ role: described(givableRole, 'What they may do from now on.', 'admin') }),
      status: 200,
      output: memberSchema,
      run: async ({ actor, params, body }) =>
        toMember(await organisations.changeRole(actor, params.id, params.user_id, body.role)),
    }),
    apiRoute({
      method: 'DELETE',
      path: '/api/v1/organisations/:id/members/:user_id',
      access: 'verified',
      needs: 'people',
      summary: 'Remove a member, or leave',
      tag,
      status: 204,
      output: undefined,
      run: async ({ actor, params }) => organisations.removeMember(actor, params.id, params.user_id),
    }),
  ]
}

/** Routes of those who are asked to join. */
function invitationRoutes({ apiRoute, organisations }: OrganisationRoutesDependencies): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/api/v1/organisations/:id/invitations',
      access: 'verified',
      needs: 'read-people',
      summary: 'Open invitations',
      tag,
      status: 200,
      output: z.array(invitationSchema),
      run: async ({ actor, params }) => (await organisations.listInvitations(actor, params.id)).map(toInvitation),
    }),
    apiRoute({
      method: 'POST',
      path: '/api/v1/organisations/:id/invitations',
      access: 'verified',
      needs: 'people',
      summary: 'Invite a person by mail',
      tag,
      body: z.strictObject({
        email: described(z.string(), 'Whom to invite.', 'ada@example.com'),
        role: described(givableRole.default('member'), 'What they will be.', 'member'),
      }),
      status: 201,
      output: invitationSchema,
      run: async ({ actor, params, body }) => toInvitation(await organisations.invite(actor, params.id, body)),
    }),
    apiRoute({
      method: 'DELETE',
      path: '/api/v1/organisations/:id/invitations/:invitation_id',
      access: 'verified',
      needs: 'people',
      summary: 'Withdraw an invitation',
      tag,
      status: 204,
      output: undefined,
      run: async ({ actor, params }) => organisations.revokeInvitation(actor, params.id, params.invitation_id),
    }),
    apiRoute({
      method: 'POST',
      path: '/api/v1/invitations/accept',
      access: 'verified',
      needs: 'people',
      summary: 'Accept an invitation with the token of its link',
      tag,
      body: z.strictObject({ token: described(z.string(), 'From the link in the mail.', 'k3s9d0f2') }),
      status: 200,
      output: tenantSchema,
      run: async ({ actor, body }) => toTenant(await organisations.accept(actor, body.token)),
    }),
  ]
}
