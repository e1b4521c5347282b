import { z } from 'zod'
import type { ApiRouteFactory } from '../../ground/http/api.ts'
import type { Request, Route } from '../../ground/http/route.ts'
import type { Organisations } from './organisations.ts'
import { invitationSchema, memberSchema, tenantSchema, toInvitation, toMember, toTenant } from './representation.ts'
import { GIVABLE_ROLES } from './rules.ts'

const nameSchema = z.strictObject({ name: z.string() })
const givableRole = z.enum(GIVABLE_ROLES)
const tag = 'Organisation'

const orgId = (request: Request): string => request.params['id']!
const userId = (request: Request): string => request.params['user_id']!

export function organisationRoutes({
  apiRoute,
  organisations,
}: {
  apiRoute: ApiRouteFactory
  organisations: Organisations
}): Route[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/api/v1/organisations',
      access: 'verified',
      summary: 'The organisations that you belong to',
      tag,
      status: 200,
      output: z.array(tenantSchema),
      run: async ({ actor }) => (await organisations.list(actor)).map(toTenant),
    }),
    apiRoute({
      method: 'POST',
      path: '/api/v1/organisations',
      access: 'verified',
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
      summary: 'Rename an organisation',
      tag,
      body: nameSchema,
      status: 200,
      output: tenantSchema,
      run: async ({ actor, request, body }) => toTenant(await organisations.rename(actor, orgId(request), body.name)),
    }),
    apiRoute({
      method: 'DELETE',
      path: '/api/v1/organisations/:id',
      access: 'verified',
      summary: 'Delete an organisation and its drops',
      tag,
      status: 204,
      output: undefined,
      run: async ({ actor, request }) => organisations.remove(actor, orgId(request)),
    }),
    apiRoute({
      method: 'POST',
      path: '/api/v1/organisations/:id/switch',
      access: 'verified',
      summary: 'Act for this organisation from now on (dashboard session)',
      tag,
      status: 200,
      output: tenantSchema,
      run: async ({ actor, request }) => toTenant(await organisations.switchTo(actor, orgId(request))),
    }),
    apiRoute({
      method: 'POST',
      path: '/api/v1/organisations/:id/transfer',
      access: 'verified',
      summary: 'Make another member the owner',
      tag,
      body: z.strictObject({ user_id: z.string() }),
      status: 204,
      output: undefined,
      run: async ({ actor, request, body }) => organisations.transfer(actor, orgId(request), body.user_id),
    }),
    apiRoute({
      method: 'GET',
      path: '/api/v1/organisations/:id/members',
      access: 'verified',
      summary: 'Who belongs to an organisation',
      tag,
      status: 200,
      output: z.array(memberSchema),
      run: async ({ actor, request }) => (await organisations.listMembers(actor, orgId(request))).map(toMember),
    }),
    apiRoute({
      method: 'PATCH',
      path: '/api/v1/organisations/:id/members/:user_id',
      access: 'verified',
      summary: "Change a member's role",
      tag,
      body: z.strictObject({ role: givableRole }),
      status: 200,
      output: memberSchema,
      run: async ({ actor, request, body }) =>
        toMember(await organisations.changeRole(actor, orgId(request), userId(request), body.role)),
    }),
    apiRoute({
      method: 'DELETE',
      path: '/api/v1/organisations/:id/members/:user_id',
      access: 'verified',
      summary: 'Remove a member, or leave',
      tag,
      status: 204,
      output: undefined,
      run: async ({ actor, request }) => organisations.removeMember(actor, orgId(request), userId(request)),
    }),
    apiRoute({
      method: 'GET',
      path: '/api/v1/organisations/:id/invitations',
      access: 'verified',
      summary: 'Open invitations',
      tag,
      status: 200,
      output: z.array(invitationSchema),
      run: async ({ actor, request }) => (await organisations.listInvitations(actor, orgId(request))).map(toInvitation),
    }),
    apiRoute({
      method: 'POST',
      path: '/api/v1/organisations/:id/invitations',
      access: 'verified',
      summary: 'Invite somebody by mail',
      tag,
      body: z.strictObject({ email: z.string(), role: givableRole.default('member') }),
      status: 201,
      output: invitationSchema,
      run: async ({ actor, request, body }) => toInvitation(await organisations.invite(actor, orgId(request), body)),
    }),
    apiRoute({
      method: 'DELETE',
      path: '/api/v1/organisations/:id/invitations/:invitation_id',
      access: 'verified',
      summary: 'Withdraw an invitation',
      tag,
      status: 204,
      output: undefined,
      run: async ({ actor, request }) =>
        organisations.revokeInvitation(actor, orgId(request), request.params['invitation_id']!),
    }),
    apiRoute({
      method: 'POST',
      path: '/api/v1/invitations/accept',
      access: 'verified',
      summary: 'Accept an invitation with the token of its link',
      tag,
      body: z.strictObject({ token: z.string() }),
      status: 200,
      output: tenantSchema,
      run: async ({ actor, body }) => toTenant(await organisations.accept(actor, body.token)),
    }),
  ]
}
