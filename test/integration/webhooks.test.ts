/** Webhooks on a real Postgres, with a receiver that fails on cue: at least once, in order per drop, signed. */
import { mkdtemp, rm } from 'node:fs/promises'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import tls from 'node:tls'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openLocalCa } from '../../certs/local/local-ca.ts'
import { transaction } from '../../control/ground/database/sql.ts'
import { createWebhookCourier } from '../../control/drops/webhooks/courier.ts'
import { claimDelivery } from '../../control/drops/webhooks/queries.ts'
import { DAY_MS, SECOND_MS, systemClock } from '../../shared/running/clock.ts'
import { silentLog } from '../../shared/running/log.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

interface Received {
  readonly id: string
  readonly type: string
  readonly headers: Record<string, string>
  readonly body: string
}

let world: ComposedServices
let folder: string
let receiver: https.Server
let url: string
let trusted: readonly string[]
let movedMs = 0
/** It stands still unless it is moved. Those who check signatures believe what was signed within five minutes. */
const begunMs = systemClock.now()
const clock = { now: () => begunMs + movedMs }
const received: Received[] = []
/** Messages whose sender did not wait for the answer. */
const abandoned: Received[] = []
/** What the receiver answers to a message; 200 unless told otherwise. */
let answerTo: (message: Received) => number | Promise<number> = () => 200

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-webhooks-'))
  const ca = openLocalCa(folder, systemClock)
  const { cert, key } = ca.mint(['localhost'])
  trusted = tls.getCACertificates('default')
  tls.setDefaultCACertificates([...trusted, ca.rootPem])
  receiver = https.createServer({ cert, key }, (request, response) => {
    void text(request).then(async (body) => {
      const headers = request.headers as Record<string, string>
      const message = { id: headers['webhook-id']!, type: JSON.parse(body).type as string, headers, body }
      received.push(message)
      response.once('close', () => response.writableFinished || abandoned.push(message))
      const status = await answerTo(message)
      response.writeHead(status, status === 302 ? { location: `${url}/elsewhere` } : {}).end(`answer ${status}`)
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  url = `https://localhost:${(receiver.address() as AddressInfo).port}/hook`
  world = await composeServices({ ALLOW_PRIVATE_ADDRESSES: 'yes' }, clock)
})
afterAll(async () => {
  await world?.close()
  receiver?.close()
  tls.setDefaultCACertificates(trusted)
  await rm(folder, { recursive: true, force: true })
})
beforeEach(() => {
  received.length = 0
  answerTo = () => 200
})

const ALL = ['drop.published', 'drop.promoted', 'drop.deleted', 'drop.access_changed', 'preview.published'] as const

async function newHook(plan: 'free' | 'plus' = 'plus') {
  const actor = await world.newActor(plan)
  const hook = await world.services.webhooks.create(actor, { url, events: [...ALL] })
  return { actor, hook }
}

/** Sends what is due now; retries become due as the clock is moved. */
async function deliver(): Promise<string[]> {
  const before = received.length
  await world.services.webhookCourier.deliverDue()
  return received.slice(before).map(({ type }) => type)
}

test('tells each event of a drop in order, signed as Standard Webhooks says', async () => {
  const { actor, hook } = await newHook()
  expect(hook.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  const { site, version } = await world.publishPage(actor, 'one', 'told-drop')
  await world.publishPage(actor, 'two', 'told-drop')
  await world.services.versions.promote(actor, site.id, version.version_id)
  const page = { kind: 'text', format: 'html', content: '<title>x</title>' } as const
  await world.services.quickPublish.publish(actor, { content: page, slug: 'told-drop', preview: 'pr-1' })
  await world.services.sites.patch(actor, site.id, { password: 'sesame open' })
  await world.services.sites.delete(actor, site.id)
  expect(await deliver()).toEqual([
    'drop.published',
    'drop.published',
    'drop.promoted',
    'preview.published',
    'drop.access_changed',
    'drop.deleted',
  ])
  const [first] = received
  const verified = new Webhook(hook.secret).verify(first!.body, first!.headers)
  expect(verified).toEqual({
    type: 'drop.published',
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    data: { site_id: site.id, slug: 'told-drop', version_id: version.version_id, version_number: 1 },
  })
  expect(await deliver()).toEqual([])
})

test('threads are told when they are opened, answered and resolved, also by the publish that mends them', async () => {
  const actor = await world.newActor('plus')
  const { services } = world
  const hook = await services.webhooks.create(actor, {
    url,
    events: ['thread.opened', 'thread.replied', 'thread.resolved'],
  })
  const { site } = await world.publishPage(actor, 'one', 'discussed-drop')
  const reviewer = await services.reviewers.member(actor, site.id)
  const thread = await services.review.open(reviewer, { page: '/', body: 'Words that stay here.' })
  await services.review.reply(reviewer, thread.id, { body: 'Indeed.' })
  await services.review.change(reviewer, thread.id, { state: 'resolved' })
  await services.review.change(reviewer, thread.id, { state: 'open' })
  const content = { kind: 'text', format: 'html', content: '<title>two</title>' } as const
  await services.quickPublish.publish(actor, { content, slug: 'discussed-drop', resolves: [thread.id] })
  expect(await deliver()).toEqual(['thread.opened', 'thread.replied', 'thread.resolved', 'thread.resolved'])
  const told = received.map(({ body, headers }) => new Webhook(hook.secret).verify(body, headers))
  expect(told).toMatchObject([
    { data: { site_id: site.id, slug: 'discussed-drop', thread_id: thread.id } },
    { data: { thread_id: thread.id } },
    { data: { thread_id: thread.id } },
    { data: { thread_id: thread.id, version_number: 2 } },
  ])
  // Ids, and no word of what was said: a receiver asks for it with a credential.
  expect(received.map(({ body }) => body).join()).not.toContain('Words that stay here.')
})

test('a refused publish tells nothing', async () => {
  const { actor } = await newHook()
  await world.publishPage(actor, 'one', 'refused-drop')
  await deliver()
  const page = { kind: 'text', format: 'html', content: '<title>x</title>' } as const
  const refused = world.services.quickPublish.publish(actor, { content: page, slug: 'refused-drop', ifVersion: 7 })
  await expect(refused).rejects.toThrow()
  expect(await deliver()).toEqual([])
})

test('a failure holds back its own drop and hook only, and is tried again after 1 s, 5 s, 30 s', async () => {
  const { actor, hook } = await newHook()
  const other = await newHook()
  const { site } = await world.publishPage(actor, 'one', 'failing-drop')
  await world.publishPage(actor, 'two', 'failing-drop')
  await world.publishPage(actor, 'one', 'fine-drop')
  await world.publishPage(other.actor, 'one', 'neighbour')
  answerTo = ({ body }) => (body.includes(site.id) ? 500 : 200)
  await deliver()
  const slugs = () => received.map(({ body }) => (JSON.parse(body) as { data: { slug: string } }).data.slug)
  expect(slugs().toSorted()).toEqual(['failing-drop', 'fine-drop', 'neighbour'])
  for (const seconds of [1, 5, 30]) {
    expect(await deliver()).toEqual([])
    movedMs += seconds * SECOND_MS + 10
    expect(await deliver()).toEqual(['drop.published'])
  }
  const listed = await world.services.webhooks.deliveries(actor, hook.id)
  expect(listed.at(-1)).toMatchObject({ state: 'waiting', attempts: 4, status: 500, answer: 'answer 500' })
  answerTo = () => 200
  movedMs += DAY_MS
  await deliver()
  const ids = received.filter(({ body }) => body.includes(site.id)).map(({ id }) => id)
  expect(new Set(ids.slice(0, -1)).size).toBe(1)
  expect(new Set(ids).size).toBe(2)
})

test('a receiver that does not answer holds back nobody else', async () => {
  const [slow, quick] = [await newHook(), await newHook()]
  const released = Promise.withResolvers<number>()
  const slowSite = await world.publishPage(slow.actor, 'one', 'slow-receiver')
  answerTo = ({ body }) => (body.includes(slowSite.site.id) ? released.promise : 200)
  const courier = world.services.webhookCourier
  courier.start()
  try {
    await expect.poll(() => received.map(({ body }) => body.includes(slowSite.site.id))).toEqual([true])
    const { site } = await world.publishPage(quick.actor, 'one', 'quick-receiver')
    await expect.poll(() => received.filter(({ body }) => body.includes(site.id))).toHaveLength(1)
    expect(abandoned).toEqual([])
  } finally {
    released.resolve(200)
    await courier.stop()
  }
})

test('what becomes due while the last claim is answered is sent too', async () => {
  const { actor } = await newHook()
  for (const title of ['one', 'two']) await world.publishPage(actor, title, 'late-claim')
  const [asked, noted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const sent: string[] = []
  let claims = 0
  // The second claim finds the first message under way. Its answer is read when that has arrived and all is noted.
  const sql = new Proxy(world.sql, {
    apply(target, self, args: unknown[]) {
      const statement: unknown = Reflect.apply(target, self, args)
      const text = String(args[0])
      if (text.includes('set failing_since = null')) return answered(statement, () => setImmediate(noted.resolve))
      if (!text.includes('d set claimed_until') || ++claims !== 2) return statement
      return answered(statement, asked.resolve).then((rows) => noted.promise.then(() => rows))
    },
  })
  const answered = async (statement: unknown, note: () => void): Promise<unknown> => {
    const rows = await statement
    note()
    return rows
  }
  const sender = {
    async send(_url: string, _headers: unknown, body: string) {
      sent.push(body)
      await asked.promise
      return { status: 200, answer: '' }
    },
  }
  const { secrets } = world.services
  const config = { baseUrl: 'https://dropway.test', look: { name: 'Dropway' } }
  const enqueueMail = () => expect.fail('nothing failed')
  const courier = createWebhookCourier({ sql, clock, log: silentLog, secrets, sender, enqueueMail, config })
  expect(await courier.deliverDue()).toBe(2)
  expect(sent).toHaveLength(2)
})

test('a redirect is a failure and is not followed', async () => {
  const { actor, hook } = await newHook()
  answerTo = () => 302
  await world.publishPage(actor, 'one', 'redirected-drop')
  expect(await deliver()).toEqual(['drop.published'])
  const [listed] = await world.services.webhooks.deliveries(actor, hook.id)
  expect(listed).toMatchObject({ state: 'waiting', status: 302, error: expect.stringContaining('redirect') })
  await world.services.webhooks.delete(actor, hook.id)
})

test('a control that is killed while it sends leaves the message to the next one', async () => {
  const { actor } = await newHook()
  await world.publishPage(actor, 'one', 'killed-drop')
  const now = clock.now()
  const claimed = await transaction(world.sql, (tx) =>
    claimDelivery(tx, new Date(now), new Date(now + 15 * SECOND_MS), []),
  )
  expect(claimed?.type).toBe('drop.published')
  expect(await deliver()).toEqual([])
  movedMs += 15 * SECOND_MS + 10
  expect(await deliver()).toEqual(['drop.published'])
  expect(received[0]?.id).toBe(claimed?.id)
})

test('test, redeliver under the same id, rotate with both secrets, delete', async () => {
  const { actor, hook } = await newHook()
  const { webhooks } = world.services
  const sent = await webhooks.test(actor, hook.id)
  expect(await deliver()).toEqual(['webhook.test'])
  await webhooks.redeliver(actor, hook.id, sent.id)
  expect(await deliver()).toEqual(['webhook.test'])
  expect(received.map(({ id }) => id)).toEqual([sent.id, sent.id])
  const rotated = await webhooks.rotate(actor, hook.id)
  await webhooks.redeliver(actor, hook.id, sent.id)
  await deliver()
  const last = received.at(-1)!
  const at = new Date(Number(last.headers['webhook-timestamp']) * SECOND_MS)
  for (const secret of [hook.secret, rotated.secret])
    expect(last.headers['webhook-signature']).toContain(new Webhook(secret).sign(last.id, at, last.body))
  const stranger = await world.newActor('free')
  for (const deed of [
    () => webhooks.test(stranger, hook.id),
    () => webhooks.rotate(stranger, hook.id),
    () => webhooks.deliveries(stranger, hook.id),
    () => webhooks.redeliver(stranger, hook.id, sent.id),
    () => webhooks.delete(stranger, hook.id),
  ])
    await expect(deed()).rejects.toMatchObject({ status: 404 })
  await webhooks.delete(actor, hook.id)
  expect(await webhooks.list(actor)).toEqual([])
})

test('is switched off with a mail after three days of failures; at most ten per organisation', async () => {
  const { actor, hook } = await newHook()
  answerTo = () => 500
  for (const slug of ['off-one', 'off-two', 'off-three', 'off-four']) {
    await world.publishPage(actor, 'one', slug)
    await deliver()
    movedMs += DAY_MS
  }
  await deliver()
  const [listed] = await world.services.webhooks.list(actor)
  expect(listed?.disabled_at).not.toBeNull()
  expect((await world.mailsTo(actor.email)).filter(({ template }) => template === 'webhook_off')).toHaveLength(1)
  answerTo = () => 200
  expect(await deliver()).toEqual([])
  await world.services.webhooks.rotate(actor, hook.id)
  expect(await deliver()).toContain('drop.published')
  for (let count = 1; count < 10; count++)
    await world.services.webhooks.create(actor, { url, events: ['drop.deleted'] })
  const eleventh = world.services.webhooks.create(actor, { url, events: ['drop.deleted'] })
  await expect(eleventh).rejects.toMatchObject({ status: 403, code: 'limit_reached' })
})
