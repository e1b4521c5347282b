/** `/account/webhooks`: which addresses are told what happens, and what became of each message. */
import { seeOther } from '../../../ground/http/reply.ts'
import type { Route } from '../../../ground/http/route.ts'
import { parse } from '../../../ground/http/api.ts'
import { newWebhookSchema } from '../../../drops/webhooks/schemas.ts'
import type { AccountRequest } from '../frame/callers.ts'
import { flashOf } from '../frame/flash.ts'
import type { Handlers } from '../frame/handlers.ts'
import type { DashboardServices } from '../frame/services.ts'
import { accountPage } from './account-view.ts'
import { webhookBody, webhooksBody, type IssuedSecret } from './webhook-view.ts'

const LIST = '/account/webhooks'
const ONE = `${LIST}/:id` as const

export function webhookPageRoutes({ webhooks, clock }: DashboardServices, handlers: Handlers): Route[] {
  const { accountPage: page, accountForm: form } = handlers

  async function showList({ viewer, actor, request }: AccountRequest): Promise<ReturnType<typeof accountPage>> {
    const body = webhooksBody(viewer, { webhooks: await webhooks.list(actor), now: clock.now() })
    return accountPage('/webhooks', body, flashOf(request))
  }

  async function showOne(
    { viewer, actor, request }: AccountRequest,
    id: string,
    issued?: IssuedSecret,
  ): Promise<ReturnType<typeof accountPage>> {
    const webhook = await webhooks.get(actor, id)
    const deliveries = await webhooks.deliveries(actor, id)
    return accountPage('/webhooks', webhookBody(viewer, { webhook, deliveries, issued, now: clock.now() }), {
      scripts: ['copy'],
      ...(request.method === 'GET' ? flashOf(request) : {}),
    })
  }

  return [
    page(LIST, (asked) => showList(asked)),
    // Not redirected: the secret is shown in this one answer and kept nowhere in the clear.
    form(LIST, { on: LIST, verified: true }, async (asked) => {
      const wanted = parse(newWebhookSchema, {
        url: (asked.form.get('url') ?? '').trim(),
        events: asked.form.getAll('events'),
        description: (asked.form.get('description') ?? '').trim(),
      })
      const { id, secret } = await webhooks.create(asked.actor, wanted)
      return { ...(await showOne(asked, id, { secret, isNew: true })), status: 201 }
    }),
    page(ONE, (asked) => showOne(asked, asked.params.id)),
    form(`${ONE}/rotate`, { on: ONE, verified: true }, async (asked) => {
      const { id, secret } = await webhooks.rotate(asked.actor, asked.params.id)
      return showOne(asked, id, { secret, isNew: false })
    }),
    form(`${ONE}/test`, { on: ONE, verified: true }, async ({ actor, params }) => {
      await webhooks.test(actor, params.id)
      return seeOther(`${LIST}/${params.id}?done=sent`)
    }),
    form(`${ONE}/redeliver`, { on: ONE, verified: true }, async ({ actor, params, form: sent }) => {
      await webhooks.redeliver(actor, params.id, sent.get('delivery') ?? '')
      return seeOther(`${LIST}/${params.id}?done=sent`)
    }),
    form(`${ONE}/delete`, { on: ONE, verified: true }, async ({ actor, params }) => {
      await webhooks.delete(actor, params.id)
      return seeOther(`${LIST}?done=removed`)
    }),
  ]
}
