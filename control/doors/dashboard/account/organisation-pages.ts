/** `/account/organisation`. */
import { may, type Actor } from '../../../ground/actor.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import type { Html } from '../../../../shared/pages/html.ts'
import { safeNext } from '../../../../shared/http/safe-next.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import type { Route } from '../../../ground/http/route.ts'
import {
  GIVABLE_ROLES,
  VISIBILITY_POLICIES,
  type GivableRole,
  type VisibilityPolicy,
} from '../../../people/organisations/rules.ts'
import { flashOf, saying } from '../frame/flash.ts'
import type { AccountRequest } from '../frame/callers.ts'
import type { AccountFormRequest, Handlers } from '../frame/handlers.ts'
import type { Page } from '../frame/layout.ts'
import type { DashboardServices } from '../frame/services.ts'
import { accountPage } from './account-view.ts'
import {
  leaveBody,
  organisationBody,
  removeMemberBody,
  transferBody,
  type Member,
  type Membership,
} from './organisation-view.ts'

const HOME = '/account/organisation'

export function organisationRoutes({ organisations, billing, clock }: DashboardServices, handlers: Handlers): Route[] {
  async function currentOf(actor: Actor): Promise<Membership> {
    const current = (await organisations.list(actor)).find((entry) => entry.id === actor.orgId)
    if (!current) throw errors.notFound('organisation')
    return current
  }

  async function show(
    { request, viewer, actor }: AccountRequest,
    options: Pick<Page, 'flash' | 'status'>,
  ): Promise<Page> {
    const [all, members, invitations, ending] = await Promise.all([
      organisations.list(actor),
      organisations.listMembers(actor, actor.orgId),
      may(actor.role, 'manage_members') ? organisations.listInvitations(actor, actor.orgId) : [],
      may(actor.role, 'delete') ? billing.subscriptionsOf([actor.orgId]) : [],
    ])
    const current = all.find((entry) => entry.id === actor.orgId)
    if (!current) throw errors.notFound('organisation')
    return accountPage(
      '/organisation',
      organisationBody(viewer, {
        current,
        all,
        created: all.find(({ id }) => id !== actor.orgId && id === request.query.get('created')),
        members,
        invitations,
        ending,
        stillPublic: await organisations.stillPublic(current),
        userId: actor.userId,
        now: clock.now(),
      }),
      options,
    )
  }

  /** One change, then back to the page. */
  const change = (name: string, done: string, act: (asked: AccountFormRequest) => Promise<unknown>): Route =>
    handlers.accountForm(`${HOME}/${name}`, { on: HOME, verified: true }, async (asked) => {
      await act(asked)
      return seeOther(`${HOME}?done=${done}`)
    })

  /** A change of a member that asks first, on a page of its own. */
  function asking(
    name: string,
    done: string,
    ask: (asked: AccountRequest, about: { current: Membership; member: Member }) => Promise<Html> | Html,
    act: (asked: AccountFormRequest, userId: string) => Promise<unknown>,
  ): Route[] {
    const path = `${HOME}/${name}`
    return [
      handlers.accountPage(path, async (asked) => {
        const { actor, request } = asked
        const members = await organisations.listMembers(actor, actor.orgId)
        const member = members.find(({ userId }) => userId === request.query.get('user'))
        if (!member) return seeOther(HOME)
        return accountPage('/organisation', await ask(asked, { current: await currentOf(actor), member }))
      }),
      handlers.accountForm(path, { on: path, keeps: ['user'], verified: true }, async (asked) => {
        await act(asked, asked.form.get('user') ?? '')
        return seeOther(`${HOME}?done=${done}`)
      }),
    ]
  }

  return [
    handlers.accountPage(HOME, (asked) => show(asked, flashOf(asked.request))),
    handlers.accountForm(`${HOME}/switch`, { on: HOME, verified: false }, async ({ actor, form }) => {
      await organisations.switchTo(actor, form.get('org') ?? '')
      return seeOther(saying(safeNext(form.get('next'), HOME), 'switched'))
    }),
    handlers.accountForm(`${HOME}/create`, { on: HOME, verified: true }, async ({ actor, form }) => {
      const { id } = await organisations.create(actor, form.get('name') ?? '')
      return seeOther(`${HOME}?created=${id}`)
    }),
    change('rename', 'done', ({ actor, form }) => organisations.rename(actor, actor.orgId, form.get('name') ?? '')),
    change('policy', 'done', ({ actor, form }) =>
      organisations.change(actor, actor.orgId, { visibilityPolicy: policyOf(form) }),
    ),
    change('second-factor', 'done', ({ actor, form }) =>
      organisations.requireSecondFactor(actor, actor.orgId, form.has('required')),
    ),
    change('invite', 'invited', ({ actor, form }) =>
      organisations.invite(actor, actor.orgId, { email: form.get('email') ?? '', role: roleOf(form) }),
    ),
    change('uninvite', 'removed', ({ actor, form }) =>
      organisations.revokeInvitation(actor, actor.orgId, form.get('id') ?? ''),
    ),
    change('role', 'done', ({ actor, form }) =>
      organisations.changeRole(actor, actor.orgId, form.get('user') ?? '', roleOf(form)),
    ),
    ...asking(
      'remove',
      'removed',
      ({ viewer }, about) => removeMemberBody(viewer, about),
      ({ actor }, userId) => organisations.removeMember(actor, actor.orgId, userId),
    ),
    ...leaveRoutes(organisations, handlers),
    ...asking(
      'transfer',
      'transferred',
      async ({ viewer, actor }, about) =>
        transferBody(viewer, { ...about, ending: await billing.subscriptionsOf([actor.orgId]) }),
      ({ actor }, userId) => organisations.transfer(actor, actor.orgId, userId),
    ),
    change('delete', 'done', async ({ actor, form }) => {
      if (form.get('confirm')?.trim() !== (await currentOf(actor)).name)
        throw errors.invalidRequest('confirm: type the name of the organisation exactly to delete it.')
      await organisations.remove(actor, actor.orgId)
    }),
  ]
}

/** Routes of leaving an organisation, whichever the person acts for. */
function leaveRoutes(organisations: DashboardServices['organisations'], handlers: Handlers): Route[] {
  const path = `${HOME}/leave`
  return [
    handlers.accountPage(path, async ({ viewer, actor, request }) => {
      const left = (await organisations.list(actor)).find(({ id }) => id === request.query.get('org'))
      return left ? accountPage('/organisation', leaveBody(viewer, left)) : seeOther(HOME)
    }),
    handlers.accountForm(path, { on: path, keeps: ['org'], verified: true }, async ({ actor, form }) => {
      await organisations.removeMember(actor, form.get('org') ?? '', actor.userId)
      return seeOther(`${HOME}?done=removed`)
    }),
  ]
}

function policyOf(form: URLSearchParams): VisibilityPolicy {
  const policy = VISIBILITY_POLICIES.find((candidate) => candidate === form.get('visibility_policy'))
  if (!policy) throw errors.invalidRequest('visibility_policy: choose one.')
  return policy
}

function roleOf(form: URLSearchParams): GivableRole {
  const role = GIVABLE_ROLES.find((candidate) => candidate === form.get('role'))
  if (!role) throw errors.invalidRequest('role: choose a role.')
  return role
}
