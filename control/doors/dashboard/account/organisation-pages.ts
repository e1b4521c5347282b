/** `/account/organisation`. */
import { may } from '../../../ground/actor.ts'
import { errors } from '../../../../shared/errors.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import type { Route } from '../../../ground/http/route.ts'
import { GIVABLE_ROLES, type GivableRole } from '../../../people/organisations/rules.ts'
import { flashOf } from '../frame/flash.ts'
import { orShow, problemText, type AccountFormRequest, type AccountRequest, type Handlers } from '../frame/handlers.ts'
import type { Page } from '../frame/layout.ts'
import type { DashboardServices } from '../frame/services.ts'
import { accountPage } from './account-view.ts'
import { organisationBody } from './organisation-view.ts'

const HOME = '/account/organisation'

export function organisationRoutes({ organisations, billing, clock }: DashboardServices, handlers: Handlers): Route[] {
  async function show({ viewer, actor }: AccountRequest, options: Pick<Page, 'flash' | 'status'>): Promise<Page> {
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
      organisationBody(viewer, { current, all, members, invitations, ending, userId: actor.userId, now: clock.now() }),
      options,
    )
  }

  /** One change, then back to the page; a refusal is said there. */
  const change = (name: string, done: string, act: (asked: AccountFormRequest) => Promise<unknown>): Route =>
    handlers.accountForm(`${HOME}/${name}`, { verified: name !== 'switch' }, (asked) =>
      orShow(
        async () => {
          await act(asked)
          return seeOther(`${HOME}?done=${done}`)
        },
        (problem) => show(asked, { flash: { tone: 'bad', text: problemText(problem) }, status: problem.status }),
      ),
    )

  return [
    handlers.accountPage(HOME, (asked) => show(asked, flashOf(asked.request))),
    change('switch', 'switched', ({ actor, form }) => organisations.switchTo(actor, form.get('org') ?? '')),
    change('create', 'switched', async ({ actor, form }) => {
      const created = await organisations.create(actor, form.get('name') ?? '')
      await organisations.switchTo(actor, created.id)
    }),
    change('rename', 'done', ({ actor, form }) => organisations.rename(actor, actor.orgId, form.get('name') ?? '')),
    change('invite', 'invited', ({ actor, form }) =>
      organisations.invite(actor, actor.orgId, { email: form.get('email') ?? '', role: roleOf(form) }),
    ),
    change('uninvite', 'removed', ({ actor, form }) =>
      organisations.revokeInvitation(actor, actor.orgId, form.get('id') ?? ''),
    ),
    change('role', 'done', ({ actor, form }) =>
      organisations.changeRole(actor, actor.orgId, form.get('user') ?? '', roleOf(form)),
    ),
    change('remove', 'removed', ({ actor, form }) =>
      organisations.removeMember(actor, actor.orgId, form.get('user') ?? ''),
    ),
    change('transfer', 'done', ({ actor, form }) => organisations.transfer(actor, actor.orgId, form.get('user') ?? '')),
    change('delete', 'done', async ({ actor, form }) => {
      const current = (await organisations.list(actor)).find((entry) => entry.id === actor.orgId)
      if (!current || form.get('confirm')?.trim() !== current.name)
        throw errors.invalidRequest('Type the name of the organisation exactly to delete it.')
      await organisations.remove(actor, actor.orgId)
    }),
  ]
}

function roleOf(form: URLSearchParams): GivableRole {
  const role = GIVABLE_ROLES.find((candidate) => candidate === form.get('role'))
  if (!role) throw errors.invalidRequest('Choose a role.')
  return role
}
