/**
 * Every address of the gates is answered exactly once, whatever the method, the drop and the visitor; and who is not in
 * learns no version number.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Exchange, FullExchange, HeaderList, ServedSite } from '../../../edge/context.ts'
import { headerOf } from '../../../edge/send/representation.ts'
import { sealAdmission, VIEWERS_ONLY } from '../../../shared/contracts/admission.ts'
import { REPORT_PATH } from '../../../shared/http/report-address.ts'
import { makePass } from '../../../shared/secrets/previews.ts'
import { createGates, gateSecrets as secrets } from '../../support/gates.ts'
import { routeOf } from '../../support/manifests.ts'

const NOW = Date.UTC(2030, 0, 1)
/** More than any of these answers takes: none waits for anything but promises. */
const TURNS = 20

const PASSWORD = { password: { hash: 'never compared', generation: 1 } }
const VIEWERS = { password: { hash: VIEWERS_ONLY, generation: 1 }, viewers: { ended: [], asks: true } }

function siteOf(slug: string, settings: Partial<ServedSite>): ServedSite {
  const { versions: _, ...route } = routeOf()
  return { ...route, host: `${slug}.dropway.test`, site_id: `st_${slug}`, names: [['pr', 3]], ...settings }
}

const SITES = new Map(
  [
    siteOf('public', {}),
    siteOf('app', { spa_fallback: true }),
    siteOf('password', PASSWORD),
    siteOf('viewers', VIEWERS),
    siteOf('closed', { previews: 'members' }),
    siteOf('both', { previews: 'members', ...PASSWORD }),
    siteOf('paused', { state: 'paused' }),
    siteOf('paused-viewers', { state: 'paused', ...VIEWERS }),
    siteOf('removed', { state: 'removed' }),
    siteOf('expired', { expires_at: NOW }),
  ].map((site) => [site.host, site]),
)
const OPEN = ['public', 'app', 'pr--public', 'pr--app']
const CLOSED = [
  ...['password', 'viewers', 'paused', 'paused-viewers', 'removed', 'expired'],
  ...['3--public', '3--app', 'pr--password', '3--viewers', 'pr--viewers', 'pr--closed', 'pr--both'],
]

const PATHS = [
  '/',
  '/none',
  '/%',
  '/.dropway/unlock',
  '/.dropway/unlock?next=/',
  '/.dropway/visit',
  '/.dropway/visit?next=/',
  '/.dropway/enter',
  '/.dropway/enter/token',
  '/.dropway/enter/token?direct=1&next=/',
  '/.dropway/guest/token',
  '/.dropway/guest/',
  '/.dropway/member',
  '/.dropway/member?pass=none',
  '/.dropway/events',
  '/.dropway/none',
  REPORT_PATH,
]
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE']

/** A token of which no control says anything. */
const UNHEARD = 'unheard'

const STRANGERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'a stranger': {},
  'a script': { 'sec-fetch-dest': 'script' },
  'a wrong token': { authorization: 'Bearer none' },
  'a token that no control knows of': { authorization: `Bearer ${UNHEARD}` },
  'a wrong guest': { 'dropway-guest': 'none' },
}

/** The cookies of someone who is in everywhere. */
function cookiesAt(siteId: string): Readonly<Record<string, string>> {
  const unlocked = secrets.sign('unlock-cookie', `${siteId}\n1\n${PASSWORD.password.hash}`)
  const member = makePass(secrets, { kind: 'visit', siteId, host: '', expiresAt: NOW + 1 })
  const viewer = sealAdmission(secrets, { siteId, subject: 'vw_1', generation: 1, history: 0, endsAt: NOW + 1 })
  return {
    cookie: `__Host-dropway-unlock=${unlocked}; __Host-dropway-member=${member}; __Host-dropway-viewer=${viewer}`,
  }
}

interface Sent {
  readonly status: number
  readonly headers: HeaderList
}

interface Asked {
  readonly host: string
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly form?: string
}

/** A request that has been parsed; notes what it is answered with. */
function exchangeOf({ host, method, target, headers, form = '' }: Asked, sent: Sent[]): Exchange {
  const exchange: Partial<FullExchange> & { host: string } = {
    method,
    target,
    authority: host,
    host,
    ip: '192.0.2.7',
    get isAnswered() {
      return sent.length > 0
    },
    header: (name) => headers[name],
    certificateCovers: () => true,
    countRequest: () => true,
    named() {},
    send: (status, list) => void sent.push({ status, headers: list }),
    stream: (status, list) => void sent.push({ status, headers: list }),
    readForm: async () => Buffer.from(form),
  }
  return Object.assign(exchange, { full: exchange }) as Exchange
}

const gates = createGates({
  siteAt: (host) => SITES.get(host),
  clock: { now: () => NOW },
  isMembers: async (_, bearer) => (bearer === UNHEARD ? undefined : false),
  watching: { atService: () => false, atDrop: () => false },
})

async function answersTo(asked: Asked): Promise<Sent[]> {
  const sent: Sent[] = []
  gates(exchangeOf(asked, sent))
  for (let turns = 0; turns < TURNS && sent.length === 0; turns++) await turn()
  await turn()
  return sent
}

function requestsAt(slug: string, headers: Asked['headers']): Asked[] {
  const host = `${slug}.dropway.test`
  return METHODS.flatMap((method) => PATHS.map((target) => ({ host, method, target, headers })))
}

/** Those of the requests whose answers are not as they should be. */
async function wrongOnes(requests: readonly Asked[], isRight: (sent: Sent[]) => boolean): Promise<string[]> {
  const wrong: string[] = []
  for (const asked of requests) {
    const sent = await answersTo(asked)
    if (!isRight(sent)) wrong.push(`${asked.method} ${asked.target}: ${sent.map(({ status }) => status).join(' ')}`)
  }
  return wrong
}

const isOne = (sent: Sent[]): boolean => sent.length === 1 && (sent[0]?.status ?? 500) !== 500
const hasVersion = ({ headers }: Sent): boolean => headerOf(headers, 'dropway-version') !== undefined

describe.each([...OPEN, ...CLOSED])('%s', (slug) => {
  test.each(Object.entries(STRANGERS))('answers %s once at every address', async (_, headers) => {
    expect(await wrongOnes(requestsAt(slug, headers), isOne)).toEqual([])
  })

  test('answers who is in once at every address', async () => {
    const headers = cookiesAt(`st_${slug.replace(/^.*--/, '')}`)
    expect(await wrongOnes(requestsAt(slug, headers), isOne)).toEqual([])
  })
})

test('the form of a password that a drop had before it got viewers opens nothing', async () => {
  const asked = { host: 'viewers.dropway.test', method: 'POST', target: '/.dropway/unlock', form: 'password=sesame' }
  const statusFor = async (headers: Asked['headers']) => (await answersTo({ ...asked, headers }))[0]?.status
  expect([await statusFor({}), await statusFor({ authorization: 'Bearer none' })]).toEqual([401, 401])
  expect(await statusFor(cookiesAt('st_viewers'))).toBe(303)
})

test('whose token control says nothing of is told to come back, and not that there is nothing', async () => {
  const asked = { host: '3--public.dropway.test', method: 'GET', target: '/' }
  const answerTo = async (bearer: string) => {
    const [sent] = await answersTo({ ...asked, headers: { authorization: `Bearer ${bearer}` } })
    return sent && [sent.status, headerOf(sent.headers, 'retry-after')]
  }
  expect([await answerTo(UNHEARD), await answerTo('none')]).toEqual([
    [503, '5'],
    [404, undefined],
  ])
})

test.each(CLOSED)('no stranger learns a version number of %s', async (slug) => {
  for (const headers of Object.values(STRANGERS))
    expect(await wrongOnes(requestsAt(slug, headers), (sent) => !sent.some(hasVersion))).toEqual([])
})
