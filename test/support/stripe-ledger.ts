/** What a Stripe account holds and how it changes: the objects behind the stand-in, and the events they give rise to. */

export type Thing = Record<string, any> & { id: string } // oxlint-disable-line typescript/no-explicit-any -- as loose as Stripe's JSON

export interface LedgerEvent {
  readonly id: string
  readonly type: string
  readonly data: { readonly object: Thing }
}

const MONTH_SECONDS = 30 * 86_400

export class Refusal extends Error {
  readonly body: Record<string, unknown>
  readonly status: number
  constructor(
    message: string,
    {
      code,
      param,
      type = 'invalid_request_error',
      status = 400,
    }: Partial<Record<'code' | 'param' | 'type', string>> & { status?: number } = {},
  ) {
    super(message)
    this.status = status
    this.body = { error: { type, code, param, message } }
  }
}

export class Ledger {
  readonly products = new Map<string, Thing>()
  readonly prices = new Map<string, Thing>()
  readonly customers = new Map<string, Thing>()
  readonly sessions = new Map<string, Thing>()
  readonly subscriptions = new Map<string, Thing>()
  readonly invoices = new Map<string, Thing>()
  readonly configurations = new Map<string, Thing>()
  readonly portals = new Map<string, Thing>()
  readonly webhooks = new Map<string, Thing>()
  readonly paymentMethods = new Map<string, Thing>()
  readonly #now: () => number
  readonly #onEvent: (event: LedgerEvent) => void
  #count = 0

  constructor(nowMs: () => number, onEvent: (event: LedgerEvent) => void) {
    this.#now = () => Math.floor(nowMs() / 1000)
    this.#onEvent = onEvent
  }

  newId(prefix: string): string {
    return `${prefix}_${String(++this.#count).padStart(6, '0')}`
  }

  /** The one that is asked for, or Stripe's refusal: 404 for the object of an address, 400 for one that a field names. */
  find(things: ReadonlyMap<string, Thing>, id: string, param = 'id'): Thing {
    const thing = things.get(id)
    if (!thing)
      throw new Refusal(`No such object: '${id}'`, {
        code: 'resource_missing',
        param,
        status: param === 'id' ? 404 : 400,
      })
    return thing
  }

  add(things: Map<string, Thing>, thing: Thing): Thing {
    if (things.has(thing.id)) throw new Refusal(`'${thing.id}' already exists.`, { code: 'resource_already_exists' })
    things.set(thing.id, thing)
    return thing
  }

  addPrice({ lookup_key, transfer_lookup_key, ...price }: Thing): Thing {
    const holder = [...this.prices.values()].find((other) => other['lookup_key'] === lookup_key)
    if (holder && transfer_lookup_key !== 'true')
      throw new Refusal(`A price already uses the lookup key ${lookup_key}.`)
    if (holder) holder['lookup_key'] = null
    return this.add(this.prices, { ...price, object: 'price', active: true, type: 'recurring', lookup_key } as Thing)
  }

  /** A plan as it was sold before this service's prices existed. */
  addOldPrice(lookupKey: string, product: string, amount: number): Thing {
    if (!this.products.has(product)) this.add(this.products, { id: product, object: 'product' })
    return this.addPrice({
      id: this.newId('price'),
      product,
      lookup_key: lookupKey,
      currency: 'usd',
      unit_amount: amount,
      recurring: { interval: 'month' },
    })
  }

  subscribe(customer: string, price: Thing, metadata: Record<string, string> = {}): Thing {
    const id = this.newId('sub')
    const start = this.#now()
    const subscription = this.add(this.subscriptions, {
      id,
      object: 'subscription',
      customer,
      status: 'incomplete',
      cancel_at: null,
      cancel_at_period_end: false,
      metadata,
      latest_invoice: null,
      items: {
        object: 'list',
        data: [{ id: this.newId('si'), price, quantity: 1, current_period_start: start, current_period_end: start }],
      },
    })
    this.emit('customer.subscription.created', subscription)
    this.#startPeriod(subscription)
    this.payInvoice(subscription)
    return subscription
  }

  #startPeriod(subscription: Thing): void {
    const item = subscription['items'].data[0]
    item.current_period_start = this.#now()
    item.current_period_end = this.#now() + MONTH_SECONDS * (item.price.recurring.interval === 'year' ? 12 : 1)
    subscription['latest_invoice'] = this.#newInvoice(subscription, item.price.unit_amount).id
  }

  #newInvoice(subscription: Thing, amount: number): Thing {
    const item = subscription['items'].data[0]
    const id = this.newId('in')
    return this.add(this.invoices, {
      id,
      object: 'invoice',
      customer: subscription['customer'],
      status: 'open',
      currency: item.price.currency,
      amount_due: amount,
      amount_paid: 0,
      created: this.#now(),
      period_end: this.#now(),
      lines: { object: 'list', data: [{ period: { start: item.current_period_start, end: item.current_period_end } }] },
      status_transitions: { paid_at: null },
      hosted_invoice_url: `https://invoice.stripe.test/${id}`,
      parent: { type: 'subscription_details', subscription_details: { subscription: subscription.id } },
    })
  }

  payInvoice(subscription: Thing): void {
    const invoice = this.invoices.get(subscription['latest_invoice'])!
    Object.assign(invoice, {
      status: 'paid',
      amount_paid: invoice['amount_due'],
      status_transitions: { paid_at: this.#now() },
    })
    subscription['status'] = 'active'
    this.emit('invoice.paid', invoice)
    this.emit('customer.subscription.updated', subscription)
  }

  /** The card is charged for the next period and refuses. */
  failPayment(subscription: Thing): void {
    this.#startPeriod(subscription)
    subscription['status'] = 'past_due'
    this.emit('invoice.payment_failed', this.invoices.get(subscription['latest_invoice'])!)
    this.emit('customer.subscription.updated', subscription)
  }

  changePrice(subscription: Thing, price: Thing): void {
    subscription['items'].data[0].price = price
    subscription['latest_invoice'] = this.#newInvoice(subscription, price['unit_amount']).id
    this.payInvoice(subscription)
  }

  /** As the portal does it for subscriptions in flexible billing mode: the flag stays false. */
  cancelAtPeriodEnd(subscription: Thing): void {
    subscription['cancel_at'] = subscription['items'].data[0].current_period_end
    this.emit('customer.subscription.updated', subscription)
  }

  resume(subscription: Thing): void {
    subscription['cancel_at'] = null
    this.emit('customer.subscription.updated', subscription)
  }

  /** The period is over: a cancelled subscription ends, another one renews. */
  endPeriod(subscription: Thing): void {
    if (subscription['cancel_at'] === null) {
      this.#startPeriod(subscription)
      this.payInvoice(subscription)
    } else this.cancelNow(subscription)
  }

  cancelNow(subscription: Thing): void {
    if (subscription['status'] === 'canceled')
      throw new Refusal('It is canceled already.', { code: 'resource_missing' })
    subscription['status'] = 'canceled'
    this.emit('customer.subscription.deleted', subscription)
  }

  /** A means of payment that the customer entered at the checkout or in the portal. */
  addCard(customer: string): Thing {
    return this.add(this.paymentMethods, { id: this.newId('pm'), object: 'payment_method', type: 'card', customer })
  }

  cardsOf(customer: string): Thing[] {
    return [...this.paymentMethods.values()].filter((method) => method['customer'] === customer)
  }

  /** As Stripe does it: what the customer subscribed to ends at once, and an open checkout with it. */
  deleteCustomer(id: string): void {
    for (const subscription of this.subscriptions.values())
      if (subscription['customer'] === id && subscription['status'] !== 'canceled') this.cancelNow(subscription)
    for (const session of this.sessions.values())
      if (session['customer'] === id && session['status'] === 'open') this.expire(session)
    this.customers.delete(id)
  }

  /** Someone pays at the hosted page. */
  complete(session: Thing): void {
    if (session['status'] !== 'open') throw new Refusal('This checkout is closed.')
    const price = this.find(this.prices, session['price'])
    this.addCard(session['customer'])
    const subscription = this.subscribe(session['customer'], price, session['subscription_metadata'])
    Object.assign(session, { status: 'complete', payment_status: 'paid', subscription: subscription.id, url: null })
    this.emit('checkout.session.completed', session)
  }

  expire(session: Thing): Thing {
    if (session['status'] !== 'open')
      throw new Refusal(`Only Checkout Sessions with a status in ["open"] can be expired. It is ${session['status']}.`)
    return Object.assign(session, { status: 'expired', url: null })
  }

  liveSubscriptionOf(customer: string): Thing | undefined {
    return [...this.subscriptions.values()].find(
      (subscription) => subscription['customer'] === customer && subscription['status'] !== 'canceled',
    )
  }

  /** Events carry the object as it is at that moment, whenever they arrive. */
  emit(type: string, object: Thing): void {
    this.#onEvent({ id: this.newId('evt'), type, data: { object: structuredClone(object) } })
  }
}
