/** Decisions about webhooks, and where their messages are never sent. */
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import {
  verdictOnFailure,
  isTaken,
  mustSwitchOff,
  RETRY_PAUSES_MS,
  signaturesOf,
  urlProblem,
  userAgentOf,
} from '../../../control/drops/webhooks/rules.ts'
import { createWebhookSender } from '../../../control/drops/webhooks/send.ts'
import { eventsOf } from '../../../control/drops/sites/rules.ts'
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../../shared/running/clock.ts'

test('retries after 1 s, 5 s, 30 s, 5 min, 30 min, 2 h and on, within a day, then gives up', () => {
  const pauses = [1, 2, 3, 4, 5, 6].map((attempts) => verdictOnFailure(attempts))
  expect(pauses).toEqual(
    [SECOND_MS, 5 * SECOND_MS, 30 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 120 * MINUTE_MS].map((delayMs) => ({
      kind: 'retry',
      delayMs,
    })),
  )
  const total = RETRY_PAUSES_MS.reduce((sum, pause) => sum + pause, 0)
  expect(total).toBeGreaterThan(23 * 60 * MINUTE_MS)
  expect(total).toBeLessThanOrEqual(DAY_MS)
  expect(verdictOnFailure(RETRY_PAUSES_MS.length + 1)).toEqual({ kind: 'give_up' })
})

test('is switched off after three days of failures, not before', () => {
  const since = 1000
  const after = (ms: number) => mustSwitchOff(since, since + ms)
  expect([after(3 * DAY_MS - 1), after(3 * DAY_MS)]).toEqual([false, true])
})

test.each([
  [200, true],
  [204, true],
  [299, true],
  [199, false],
  [300, false],
  [301, false],
  [307, false],
  [404, false],
  [500, false],
])('an answer of %s: taken %s', (status, taken) => expect(isTaken(status)).toBe(taken))

test('signatures are those of Standard Webhooks, one for each secret in force', () => {
  const secrets = ['one', 'two'].map((text) => `whsec_${Buffer.from(text.repeat(10)).toString('base64')}`)
  const timestamp = Math.floor(Date.now() / 1000)
  const message = { id: 'msg_1', timestamp, body: '{"type":"drop.published"}' }
  const headers = {
    'webhook-id': message.id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signaturesOf(secrets, message),
  }
  for (const secret of secrets)
    expect(new Webhook(secret).verify(message.body, headers)).toEqual({ type: 'drop.published' })
  expect(() =>
    new Webhook(`whsec_${Buffer.from('other'.repeat(6)).toString('base64')}`).verify(message.body, headers),
  ).toThrow()
})

describe('where nothing is sent', () => {
  const PRIVATE = [
    'https://127.0.0.1/x',
    'https://127.1/x',
    'https://2130706433/x',
    'https://0x7f000001/x',
    'https://0177.0.0.1/x',
    'https://0/x',
    'https://[::1]/x',
    'https://[::]/x',
    'https://[::ffff:127.0.0.1]/x',
    'https://[::ffff:7f00:1]/x',
    'https://[64:ff9b::7f00:1]/x',
    'https://[fd00::1]/x',
    'https://[fe80::1]/x',
    'https://10.0.0.1/x',
    'https://172.16.0.1/x',
    'https://192.168.1.1/x',
    'https://169.254.169.254/latest/meta-data',
    'https://100.64.0.1/x',
    'https://localhost/x',
    'https://localhost./x',
    'https://a.localhost/x',
    'https://LOCALHOST/x',
  ]
  test.each(PRIVATE)('%s', (url) => {
    expect(urlProblem(url, false)).toContain('private or local')
    expect(urlProblem(url, true)).toBeUndefined()
  })

  test.each([
    'http://example.com/x',
    'ftp://example.com/x',
    'https://user:password@example.com/x',
    'https://user@example.com/x',
    'https://:password@example.com/x',
    'not an address',
    '',
    `https://example.com/${'x'.repeat(3000)}`,
  ])('%s, whatever is allowed', (url) => expect(urlProblem(url, true)).toBeDefined())

  test('an address of as many characters as are read, and a public number, are fine', () => {
    expect(urlProblem(`https://example.com/${'x'.repeat(1980)}`, false)).toBeUndefined()
    expect(urlProblem(`https://example.com/${'x'.repeat(1981)}`, false)).toBeDefined()
    expect(urlProblem('https://93.184.215.14/x', false)).toBeUndefined()
  })

  test('an ordinary address is fine', () => expect(urlProblem('https://example.com:8443/x?y=1', false)).toBeUndefined())

  const answer =
    (...values: string[]) =>
    async () => ({ values, failure: undefined })
  test.each([
    ['a name that leads to a private address', ['10.0.0.1'], []],
    ['a name with a public and a private address', ['93.184.215.14', '127.0.0.1'], []],
    ['a name with a private IPv6 address', ['93.184.215.14'], ['::1']],
  ])('%s', async (_case, a, aaaa) => {
    const sender = createWebhookSender({
      dns: { a: answer(...a), aaaa: answer(...aaaa) },
      allowPrivateAddresses: false,
    })
    await expect(sender.send('https://hooks.example.com/x', {}, '{}')).rejects.toThrow('private or local')
  })

  test('a name that was public when it was looked at and is not when it is used', async () => {
    const answers = [['93.184.215.14'], ['127.0.0.1']]
    const dns = { a: async () => ({ values: answers.shift() ?? [], failure: undefined }), aaaa: answer() }
    const sender = createWebhookSender({ dns, allowPrivateAddresses: false })
    expect(await sender.addressesOf('https://hooks.example.com/x')).toEqual(['93.184.215.14'])
    await expect(sender.send('https://hooks.example.com/x', {}, '{}')).rejects.toThrow('private or local')
  })

  test('a name that leads nowhere', async () => {
    const sender = createWebhookSender({ dns: { a: answer(), aaaa: answer() }, allowPrivateAddresses: false })
    await expect(sender.send('https://hooks.example.com/x', {}, '{}')).rejects.toThrow('leads nowhere')
  })
})

const password = (hash: string) => ({ hash, generation: 1 })
test.each([
  ['live', 'live', []],
  ['live', 'expired', ['drop.expired']],
  ['expired', 'expired', []],
  ['live', 'paused', ['drop.paused']],
  ['paused', 'live', ['drop.restored']],
  ['expired', 'live', ['drop.restored']],
  ['removed', 'live', ['drop.restored']],
  ['reserved', 'live', []],
  ['unverified', 'live', []],
  ['live', 'removed', []],
  ['live', 'gone', ['drop.deleted']],
  ['gone', 'gone', []],
  ['expired', 'gone', ['drop.deleted']],
  ['paused', 'expired', ['drop.expired']],
] as const)('a drop that was %s and is %s: %o', (before, after, events) => {
  expect(eventsOf({ state: before, password: null }, { state: after, password: null })).toEqual(events)
})

test('a password that is set, changed or removed is told, and nothing of a new drop', () => {
  const told = (before: string | null, after: string | null) =>
    eventsOf(
      { state: 'live', password: before === null ? null : password(before) },
      { state: 'live', password: after === null ? null : password(after) },
    )
  expect([told(null, 'a'), told('a', 'b'), told('a', null)]).toEqual(Array(3).fill(['drop.access_changed']))
  expect([told('a', 'a'), told(null, null)]).toEqual([[], []])
  expect(eventsOf(undefined, { state: 'live', password: password('a') })).toEqual([])
  expect(eventsOf({ state: 'paused', password: null }, { state: 'live', password: password('a') })).toEqual([
    'drop.restored',
    'drop.access_changed',
  ])
  const open = { state: 'live', password: null } as const
  const viewers = { ...open, viewers: { ended: [], asks: true } }
  expect([eventsOf(open, viewers), eventsOf(viewers, open)]).toEqual(Array(2).fill(['drop.access_changed']))
  expect(eventsOf(viewers, { ...viewers, viewers: { ended: [['ad_1', 1]], asks: false } })).toEqual([])
  expect(eventsOf({ state: 'live', password: password('a') }, { state: 'gone', password: null })).toEqual([
    'drop.deleted',
  ])
})

test.each([
  ['Dropway', 'Dropway-Webhooks/1'],
  ['Acme Pages', 'Acme-Pages-Webhooks/1'],
  ['Café (beta)\r\n', 'Cafe-beta-Webhooks/1'],
  ['ページ', 'Webhooks/1'],
])('messages of %j come from %s', (name, agent) => {
  expect(userAgentOf(name)).toBe(agent)
})
