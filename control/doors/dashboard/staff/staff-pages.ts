/** `/staff`: for accounts marked staff; everyone else finds nothing here. */
import { errors } from '../../../../shared/contracts/errors.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import type { Route } from '../../../ground/http/route.ts'
import { flashOf } from '../frame/flash.ts'
import type { Handlers } from '../frame/handlers.ts'
import type { DashboardServices } from '../frame/services.ts'
import { staffPage } from './staff-view.ts'

export function staffRoutes({ trust, clock }: DashboardServices, handlers: Handlers): Route[] {
  const staffForm = (path: string, act: Parameters<Handlers['accountForm']>[2]): Route =>
    handlers.accountForm(path, { on: '/staff', keeps: ['q'], verified: true }, async (asked) => {
      if (!asked.actor.isStaff) throw errors.notFound('page')
      return act(asked)
    })

  return [
    handlers.accountPage('/staff', async ({ request, viewer, actor }) => {
      if (!actor.isStaff) throw errors.notFound('page')
      const search = (request.query.get('q') ?? '').trim()
      const [queue, found] = await Promise.all([trust.openQueue(actor), trust.search(actor, search)])
      return { ...staffPage(viewer, { queue, search, found, now: clock.now() }), ...flashOf(request) }
    }),
    staffForm('/staff/takedown', async ({ actor, form }) => {
      const reason = (form.get('reason') ?? '').trim()
      if (reason === '') throw errors.invalidRequest('reason: give one, the owner is told.')
      await trust.takedown(actor, form.get('slug') ?? '', reason)
      return seeOther('/staff?done=done')
    }),
    staffForm('/staff/restore', async ({ actor, form }) => {
      await trust.restore(actor, form.get('slug') ?? '')
      return seeOther('/staff?done=done')
    }),
    staffForm('/staff/dismiss', async ({ actor, form }) => {
      await trust.dismiss(actor, form.get('id') ?? '')
      return seeOther('/staff?done=done')
    }),
  ]
}
