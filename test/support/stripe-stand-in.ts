/**
 * A local stand-in for the few Stripe endpoints that the service uses, as strict about parameters as Stripe, with the
 * hosted checkout and the billing portal as pages, and signed webhooks that a test can hold back, drop, repeat or shuffle.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { keepIdleConnections } from './idle-connections.ts'
import { Ledger, Refusal, type LedgerEvent, type Thing } from './stripe-ledger.ts'

export interface SignedEvent {
  readonly type: string
  readonly body: string
  readonly signature: string
}

export interface StripeStandIn {
  readonly url: string
  readonly ledger: Ledger
  /** STRIPE_API_BASE, STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET for the service. */
  readonly env: Readonly<Record<string, string>>
  /** Events that no receiver has taken, oldest first. */
  readonly undelivered: LedgerEvent[]
  /** From now on events go there as they happen; anything but a 2xx is tried again. Undefined: they are kept. */
  deliverTo(receiver: ((event: SignedEvent) => Promise<number>) | undefined): void
  sign(event: LedgerEvent, options?: { at?: number; secret?: string }): SignedEvent
  /** Answers every call with 500 while true. */
  isFailing: boolean
  /** Calls that arrived, as `POST /v1/customers`. */
  readonly calls: string[]
  /** Presses the button of the hosted checkout page; resolves where that leads. */
  pay(checkoutUrl: string): Promise<string>
  stop(): Promise<void>
}

type Parameters = ReadonlyMap<string, string>

interface Endpoint {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: RegExp
  readonly required?: readonly RegExp[]
  readonly optional?: readonly RegExp[]
  answer(parameters: Parameters, id: string): Thing | { object: 'list'; data: Thing[]; has_more: false }
}

/** Together half a minute: a receiver on a busy machine may need some of it. */
const DELIVERY_TRIES = 34
const MAX_PAUSE_MS = 1000

export async function startStripeStandIn(nowMs: () => number = Date.now): Promise<StripeStandIn> {
  const secretKey = `sk_test_${randomBytes(8).toString('hex')}`
  const webhookSecret = `whsec_${randomBytes(8).toString('hex')}`
  const undelivered: LedgerEvent[] = []
  let receiver: ((event: SignedEvent) => Promise<number>) | undefined
  const ledger = new Ledger(nowMs, (event) => {
    if (receiver) void deliver(event, receiver)
    else undelivered.push(event)
  })
  const remembered = new Map<string, { request: string; status: number; body: unknown }>()

  function sign(event: LedgerEvent, { at = nowMs(), secret = webhookSecret } = {}): SignedEvent {
    const body = JSON.stringify({ ...event, object: 'event', api_version: '2026-10-28.endive', livemode: false })
    const t = Math.floor(at / 1000)
    const v1 = createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')
    return { type: event.type, body, signature: `t=${t},v1=${v1}` }
  }

  async function deliver(event: LedgerEvent, to: (event: SignedEvent) => Promise<number>): Promise<void> {
    for (let attempt = 0; attempt < DELIVERY_TRIES; attempt++) {
      const status = await to(sign(event)).catch(() => 0)
      if (status >= 200 && status < 300) return
      await new Promise((resolve) => setTimeout(resolve, Math.min(50 * 2 ** attempt, MAX_PAUSE_MS)))
    }
    undelivered.push(event)
  }

  const standIn: StripeStandIn = {
    url: '',
    ledger,
    env: {},
    undelivered,
    calls: [],
    isFailing: false,
    sign,
    deliverTo: (to) => void (receiver = to),
    async pay(checkoutUrl) {
      const response = await fetch(checkoutUrl, { method: 'POST', redirect: 'manual' })
      if (response.status !== 303)
        throw new Error(`the payment page answered ${response.status}: ${await response.text()}`)
      return response.headers.get('location')!
    },
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }

  function callApi(request: http.IncomingMessage, target: URL, body: string): { status: number; body: unknown } {
    standIn.calls.push(`${request.method} ${target.pathname}`)
    if (standIn.isFailing) throw new Refusal('Stripe is down.', { type: 'api_error', status: 500 })
    if (request.headers.authorization !== `Bearer ${secretKey}`)
      throw new Refusal('Invalid API Key provided.', { status: 401 })
    if (!request.headers['stripe-version']) throw new Refusal('The version is missing.')
    const key = request.headers['idempotency-key'] as string | undefined
    const known = key === undefined ? undefined : remembered.get(key)
    const wish = `${request.method} ${target.pathname}\n${body}`
    if (known && known.request !== wish)
      throw new Refusal('Keys for idempotent requests can only be used with the same parameters.', {
        type: 'idempotency_error',
      })
    if (known) return { status: known.status, body: known.body }
    const answer = { status: 200, body: structuredClone(answerOf(ledger, standIn.url, request.method!, target, body)) }
    if (key !== undefined && request.method === 'POST') remembered.set(key, { request: wish, ...answer })
    return answer
  }

  const server = http.createServer((request, response) => {
    void handle(request, response).catch((error: unknown) => {
      const refusal = error instanceof Refusal ? error : new Refusal(String(error), { type: 'api_error', status: 500 })
      response.writeHead(refusal.status, { 'content-type': 'application/json' }).end(JSON.stringify(refusal.body))
    })
  })

  async function handle(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const target = new URL(`${standIn.url}${request.url}`)
    const body = Buffer.concat(await request.toArray()).toString()
    if (target.pathname.startsWith('/v1/')) {
      const answer = callApi(request, target, body)
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body))
      return
    }
    const answer = hostedPage(ledger, request.method!, target.pathname, new URLSearchParams(body))
    if ('location' in answer) response.writeHead(303, { location: answer.location }).end()
    else response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(answer.html)
  }

  keepIdleConnections(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return Object.assign(standIn, {
    url,
    env: { STRIPE_API_BASE: url, STRIPE_SECRET_KEY: secretKey, STRIPE_WEBHOOK_SECRET: webhookSecret },
  })
}

function answerOf(ledger: Ledger, url: string, method: string, target: URL, body: string): unknown {
  for (const endpoint of endpoints(ledger, url)) {
    const match = endpoint.path.exec(target.pathname)
    if (!match || endpoint.method !== method) continue
    const parameters = new Map(method === 'GET' ? target.searchParams : new URLSearchParams(body))
    checkParameters(endpoint, parameters)
    return endpoint.answer(parameters, match[1] ?? '')
  }
  throw new Refusal(`Unrecognized request URL (${method}: ${target.pathname}).`, { status: 404 })
}

function checkParameters({ required = [], optional = [] }: Endpoint, parameters: Parameters): void {
  const names = [...parameters.keys()]
  const unknown = names.find((name) => ![...required, ...optional].some((pattern) => pattern.test(name)))
  if (unknown)
    throw new Refusal(`Received unknown parameter: ${unknown}`, { code: 'parameter_unknown', param: unknown })
  const missing = required.find((pattern) => !names.some((name) => pattern.test(name)))
  if (missing) throw new Refusal(`Missing required param: ${missing.source}`, { code: 'parameter_missing' })
  const empty = names.find((name) => parameters.get(name) === '')
  if (empty) throw new Refusal(`Invalid value for ${empty}: it is empty`, { param: empty })
}

const list = (data: Thing[]) => ({ object: 'list', data, has_more: false }) as const

function endpoints(ledger: Ledger, url: string): readonly Endpoint[] {
  return [
    {
      method: 'GET',
      path: /^\/v1\/products\/(\w+)$/,
      answer: (_, id) => ledger.find(ledger.products, id),
    },
    {
      method: 'POST',
      path: /^\/v1\/products$/,
      required: [/^name$/],
      optional: [/^id$/],
      answer: (given) =>
        ledger.add(ledger.products, {
          object: 'product',
          id: given.get('id') ?? ledger.newId('prod'),
          name: given.get('name'),
        }),
    },
    {
      method: 'GET',
      path: /^\/v1\/prices$/,
      optional: [/^lookup_keys\[\d+\]$/, /^active$/, /^limit$/],
      answer: (given) =>
        list(
          [...ledger.prices.values()].filter(
            (price) =>
              price['lookup_key'] === given.get('lookup_keys[0]') && String(price['active']) === given.get('active'),
          ),
        ),
    },
    {
      method: 'POST',
      path: /^\/v1\/prices$/,
      required: [/^product$/, /^currency$/, /^unit_amount$/, /^recurring\[interval\]$/],
      optional: [/^lookup_key$/, /^transfer_lookup_key$/, /^tax_behavior$/],
      answer(given) {
        ledger.find(ledger.products, given.get('product')!)
        return ledger.addPrice({
          id: ledger.newId('price'),
          product: given.get('product'),
          currency: given.get('currency'),
          unit_amount: Number(given.get('unit_amount')),
          recurring: { interval: given.get('recurring[interval]') },
          lookup_key: given.get('lookup_key') ?? null,
          transfer_lookup_key: given.get('transfer_lookup_key'),
        })
      },
    },
    {
      method: 'POST',
      path: /^\/v1\/customers$/,
      optional: [/^email$/, /^name$/, /^metadata\[org_id\]$/],
      answer: (given) =>
        ledger.add(ledger.customers, { object: 'customer', id: ledger.newId('cus'), email: given.get('email') }),
    },
    {
      method: 'POST',
      path: /^\/v1\/customers\/(\w+)$/,
      optional: [/^email$/, /^name$/],
      answer: (given, id) => Object.assign(ledger.find(ledger.customers, id), Object.fromEntries(given)),
    },
    {
      method: 'GET',
      path: /^\/v1\/customers\/(\w+)\/payment_methods$/,
      optional: [/^limit$/],
      answer: (_, id) => list(ledger.cardsOf(ledger.find(ledger.customers, id).id)),
    },
    {
      method: 'POST',
      path: /^\/v1\/payment_methods\/(\w+)\/detach$/,
      answer: (_, id) => Object.assign(ledger.find(ledger.paymentMethods, id), { customer: null }),
    },
    {
      method: 'POST',
      path: /^\/v1\/checkout\/sessions$/,
      required: [/^mode$/, /^success_url$/, /^line_items\[0\]\[price\]$/, /^line_items\[0\]\[quantity\]$/],
      optional: [
        /^customer$/,
        /^cancel_url$/,
        /^client_reference_id$/,
        /^automatic_tax\[enabled\]$/,
        /^tax_id_collection\[enabled\]$/,
        /^customer_update\[(address|name)\]$/,
        /^subscription_data\[metadata\]\[\w+\]$/,
        /^expires_at$/,
      ],
      answer: (given) => newSession(ledger, url, given),
    },
    {
      method: 'GET',
      path: /^\/v1\/checkout\/sessions\/(\w+)$/,
      answer: (_, id) => ledger.find(ledger.sessions, id),
    },
    {
      method: 'POST',
      path: /^\/v1\/checkout\/sessions\/(\w+)\/expire$/,
      answer: (_, id) => ledger.expire(ledger.find(ledger.sessions, id)),
    },
    {
      method: 'GET',
      path: /^\/v1\/subscriptions\/(\w+)$/,
      optional: [/^expand\[0\]$/],
      answer(given, id) {
        const subscription = ledger.find(ledger.subscriptions, id)
        if (given.get('expand[0]') !== 'latest_invoice') return subscription
        return { ...subscription, latest_invoice: ledger.invoices.get(subscription['latest_invoice']) ?? null }
      },
    },
    {
      method: 'DELETE',
      path: /^\/v1\/subscriptions\/(\w+)$/,
      answer(_, id) {
        const subscription = ledger.find(ledger.subscriptions, id)
        ledger.cancelNow(subscription)
        return subscription
      },
    },
    {
      method: 'GET',
      path: /^\/v1\/webhook_endpoints$/,
      optional: [/^limit$/],
      answer: () => list([...ledger.webhooks.values()]),
    },
    {
      method: 'POST',
      path: /^\/v1\/webhook_endpoints$/,
      required: [/^url$/, /^enabled_events\[\d\]$/],
      optional: [/^api_version$/, /^description$/],
      answer: (given) => newWebhook(ledger, given),
    },
    {
      method: 'POST',
      path: /^\/v1\/webhook_endpoints\/(\w+)$/,
      optional: [/^enabled_events\[\d\]$/],
      answer: (given, id) =>
        Object.assign(ledger.find(ledger.webhooks, id), { enabled_events: valuesOf(given, 'enabled_events') }),
    },
    {
      method: 'GET',
      path: /^\/v1\/billing_portal\/configurations$/,
      optional: [/^active$/, /^limit$/],
      answer: () => list([...ledger.configurations.values()]),
    },
    {
      method: 'POST',
      path: /^\/v1\/billing_portal\/configurations$/,
      required: [/^features\[subscription_cancel\]\[enabled\]$/],
      optional: [
        /^metadata\[\w+\]$/,
        /^features\[(customer_update|invoice_history|payment_method_update|subscription_update)\]\[enabled\]$/,
        /^features\[customer_update\]\[allowed_updates\]\[\d\]$/,
        /^features\[subscription_cancel\]\[mode\]$/,
        /^features\[subscription_update\]\[proration_behavior\]$/,
        /^features\[subscription_update\]\[default_allowed_updates\]\[0\]$/,
        /^features\[subscription_update\]\[products\]\[\d\]\[product\]$/,
        /^features\[subscription_update\]\[products\]\[\d\]\[prices\]\[\d\]$/,
      ],
      answer: (given) => newConfiguration(ledger, given),
    },
    {
      method: 'POST',
      path: /^\/v1\/billing_portal\/sessions$/,
      required: [/^customer$/],
      optional: [/^return_url$/, /^configuration$/],
      answer(given) {
        ledger.find(ledger.customers, given.get('customer')!, 'customer')
        if (given.has('configuration')) ledger.find(ledger.configurations, given.get('configuration')!)
        const id = ledger.newId('bps')
        return ledger.add(ledger.portals, { id, ...Object.fromEntries(given), url: `${url}/portal/${id}` })
      },
    },
  ]
}

function newSession(ledger: Ledger, url: string, given: Parameters): Thing {
  const price = ledger.find(ledger.prices, given.get('line_items[0][price]')!)
  if (given.get('mode') !== 'subscription' || !price['recurring']) throw new Refusal('mode must suit the price.')
  if (given.has('customer')) {
    ledger.find(ledger.customers, given.get('customer')!, 'customer')
    if (given.get('automatic_tax[enabled]') === 'true' && !given.has('customer_update[address]'))
      throw new Refusal('Automatic tax calculation in Checkout requires a valid address on the Customer.')
    if (given.get('tax_id_collection[enabled]') === 'true' && !given.has('customer_update[name]'))
      throw new Refusal('Tax ID collection requires updating business name on the customer.')
  }
  const id = ledger.newId('cs_test')
  const metadata = [...given].flatMap(([name, value]) => {
    const key = /^subscription_data\[metadata\]\[(\w+)\]$/.exec(name)?.[1]
    return key ? [[key, value] as const] : []
  })
  return ledger.add(ledger.sessions, {
    id,
    object: 'checkout.session',
    mode: 'subscription',
    status: 'open',
    payment_status: 'unpaid',
    customer: given.get('customer') ?? null,
    client_reference_id: given.get('client_reference_id') ?? null,
    subscription: null,
    url: `${url}/pay/${id}`,
    success_url: given.get('success_url'),
    price: price.id,
    subscription_metadata: Object.fromEntries(metadata),
    automatic_tax: { enabled: given.get('automatic_tax[enabled]') === 'true' },
    tax_id_collection: { enabled: given.get('tax_id_collection[enabled]') === 'true' },
  })
}

const valuesOf = (given: Parameters, field: string): string[] =>
  [...given].filter(([name]) => name.startsWith(`${field}[`)).map(([, value]) => value)

/** The secret is in the answer to the creation and in no other. */
function newWebhook(ledger: Ledger, given: Parameters): Thing {
  if (/localhost|127\.0\.0\.1/.test(given.get('url')!))
    throw new Refusal('Invalid URL: URL must be publicly accessible.', { param: 'url', code: 'url_invalid' })
  const endpoint = ledger.add(ledger.webhooks, {
    id: ledger.newId('we'),
    object: 'webhook_endpoint',
    status: 'enabled',
    url: given.get('url'),
    api_version: given.get('api_version') ?? null,
    enabled_events: valuesOf(given, 'enabled_events'),
  })
  return { ...endpoint, secret: `whsec_${endpoint.id}` }
}

function newConfiguration(ledger: Ledger, given: Parameters): Thing {
  const entries = [...given]
  const prices = entries.filter(([name]) => /\[prices\]/.test(name)).map(([, id]) => ledger.find(ledger.prices, id))
  // Stripe shows one price per product and interval; two currencies of one would be two.
  const kinds = prices.map((price) => `${price['product']} ${price['recurring'].interval}`)
  if (new Set(kinds).size < kinds.length) throw new Refusal('Prices of a product must differ in their interval.')
  const metadata = entries.flatMap(([name, value]) => {
    const key = /^metadata\[(\w+)\]$/.exec(name)?.[1]
    return key ? [[key, value] as const] : []
  })
  return ledger.add(ledger.configurations, {
    id: ledger.newId('bpc'),
    object: 'billing_portal.configuration',
    active: true,
    metadata: Object.fromEntries(metadata),
    prices: prices.map((price) => price.id),
  })
}

function hostedPage(
  ledger: Ledger,
  method: string,
  path: string,
  form: URLSearchParams,
): { location: string } | { html: string } {
  const [, kind, id = '', action] = path.split('/')
  if (kind === 'pay') {
    const session = ledger.find(ledger.sessions, id)
    if (method === 'POST') {
      ledger.complete(session)
      return { location: session['success_url'] }
    }
    return {
      html: document('Checkout', session['status'] === 'open' ? button('', 'Pay') : '<p>This checkout is closed.</p>'),
    }
  }
  if (kind !== 'portal') throw new Refusal('There is no such page.', { status: 404 })
  const portal = ledger.find(ledger.portals, id)
  const subscription = ledger.liveSubscriptionOf(portal['customer'])
  if (method === 'POST' && subscription) {
    actInPortal(ledger, subscription, action ?? '', form)
    return { location: `/portal/${id}` }
  }
  return { html: document('Billing portal', portalBody(ledger, portal, subscription)) }
}

/** The last three are not of Stripe's portal: they let a test move time and money. */
function actInPortal(ledger: Ledger, subscription: Thing, action: string, form: URLSearchParams): void {
  if (action === 'cancel') ledger.cancelAtPeriodEnd(subscription)
  else if (action === 'resume') ledger.resume(subscription)
  else if (action === 'change') ledger.changePrice(subscription, ledger.find(ledger.prices, form.get('price')!))
  else if (action === 'end-period') ledger.endPeriod(subscription)
  else if (action === 'fail-payment') ledger.failPayment(subscription)
  else if (action === 'pay-invoice') ledger.payInvoice(subscription)
  else throw new Refusal(`The portal cannot ${action}.`, { status: 404 })
}

function portalBody(ledger: Ledger, portal: Thing, subscription: Thing | undefined): string {
  const back = `<p><a href="${portal['return_url']}">Return to Dropway</a></p>`
  if (!subscription) return `<p>No subscription.</p>${back}`
  const to = (action: string) => `/portal/${portal.id}/${action}`
  const prices: string[] = ledger.configurations.get(portal['configuration'])?.['prices'] ?? []
  const choices = prices.map((price) => {
    const { lookup_key } = ledger.find(ledger.prices, price)
    return button(to('change'), `Change to ${lookup_key}`, `<input type="hidden" name="price" value="${price}">`)
  })
  return `<p>${subscription['items'].data[0].price.lookup_key}: ${subscription['status']}</p>${choices.join('')}
${subscription['cancel_at'] === null ? button(to('cancel'), 'Cancel plan') : button(to('resume'), "Don't cancel plan")}
<h2>Test controls</h2>${button(to('end-period'), 'End the period')}${button(to('fail-payment'), 'Fail the payment')}${button(to('pay-invoice'), 'Pay the invoice')}${back}`
}

function button(action: string, label: string, fields = ''): string {
  return `<form method="post" action="${action}">${fields}<button>${label}</button></form>`
}

function document(title: string, body: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1>${body}</html>`
}
