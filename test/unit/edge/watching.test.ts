/** Streams of a named preview last as long as the gates would let their listener in again. */
import type { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Exchange, ServedSite } from '../../../edge/context.ts'
import { createFraming } from '../../../edge/gate/review.ts'
import { createLiveStreams } from '../../../edge/store/live/live-streams.ts'
import { createWatching } from '../../../edge/store/live/watching.ts'
import { sealAdmission, VIEWERS_ONLY } from '../../../shared/contracts/admission.ts'
import { makePass } from '../../../shared/secrets/previews.ts'
import { sealReviewPass } from '../../../shared/secrets/review-pass.ts'
import { createGates, gateSecrets as secrets } from '../../support/gates.ts'
import { routeOf } from '../../support/manifests.ts'

const NOW = Date.UTC(2030, 0, 1)
const VISIT_MS = 1000
const HOST = 'demo.dropway.test'
const SITE_ID = 'st_demo'

type Settings = Partial<ServedSite>
const PASSWORD: Settings = { password: { hash: 'never compared', generation: 1 } }
const VIEWERS: Settings = {
  password: { hash: VIEWERS_ONLY, generation: 1 },
  viewers: { ended: [], asks: false },
}
const MEMBERS: Settings = { previews: 'members' }
const VIEWER_ENDED: Settings = { viewers: { ended: [['vw_1', NOW + VISIT_MS]], asks: false } }

function siteOf(settings: Settings): ServedSite {
  const { versions: _, ...route } = routeOf()
  return { ...route, host: HOST, site_id: SITE_ID, names: [['pr', 3]], ...settings }
}

const of = { siteId: SITE_ID, subject: 'vw_1', generation: 1, history: 0, endsAt: NOW + VISIT_MS }
const sealed = sealAdmission(secrets, of)
const visitPass = { kind: 'visit', siteId: SITE_ID, host: '', expiresAt: NOW + VISIT_MS } as const
const unlocked = secrets.sign('unlock-cookie', `${SITE_ID}\n1\n${PASSWORD.password?.hash}`)

/** Those who may listen, by what they carry. */
const CARRIED = {
  viewer: { cookie: `__Host-dropway-viewer=${sealed}` },
  'reviewer in the frame': { cookie: `__Host-dropway-frame=${sealReviewPass(secrets, { ...of, isMember: false })}` },
  "viewer's program": { authorization: 'Bearer token' },
  member: { cookie: `__Host-dropway-member=${makePass(secrets, visitPass)}; __Host-dropway-unlock=${unlocked}` },
} as const
type Listener = keyof typeof CARRIED

/** A preview with one listener, whose record and hour can be changed. */
function listen(listener: Listener, settings: Settings) {
  let now = NOW
  let site = siteOf(settings)
  let text = ''
  let isOver = false
  let status = 0
  const clock = { now: () => now }
  const siteAt = (host: string) => (host === HOST ? site : undefined)
  const streams = createLiveStreams(() => 0)
  const gates = createGates({
    clock,
    siteAt,
    isMembers: async () => false,
    visitAnswer: { kind: 'admitted', admission: sealed, ends_at: of.endsAt },
    watching: createWatching({
      routes: { get: siteAt },
      framing: createFraming({ secrets, clock }),
      streams,
      sitesDomain: 'dropway.test',
      askForPass: async () => undefined,
    }),
  })
  const headers: Readonly<Record<string, string>> = CARRIED[listener]
  const exchange: Partial<Exchange> = {
    method: 'GET',
    target: '/.dropway/events',
    authority: `pr--${HOST}`,
    host: `pr--${HOST}`,
    ip: '192.0.2.7',
    header: (name) => headers[name],
    certificateCovers: () => true,
    countRequest: () => true,
    named() {},
    send: (sent) => void (status = sent),
    stream(sent, _headers, source: Readable) {
      status = sent
      source.on('data', (piece: Buffer) => (text += String(piece)))
      source.on('end', () => (isOver = true))
    },
  }
  gates(exchange as Exchange)
  return {
    async change(changed: Settings, laterMs = 0): Promise<void> {
      now += laterMs
      site = siteOf({ ...settings, names: [['pr', 4]], ...changed })
      streams.changed([HOST])
      await settled()
    },
    heard: () => [status, text.includes('id: 3\n'), text.includes('id: 4\n'), isOver],
    isSentToPage: () => text.endsWith('event: again\ndata: {}\n\n'),
  }
}

async function settled(): Promise<void> {
  for (let turns = 0; turns < 10; turns++) await turn()
}

const WELCOME: readonly (readonly [Listener, Settings])[] = [
  ['viewer', VIEWERS],
  ['viewer', { ...VIEWERS, ...MEMBERS }],
  ['reviewer in the frame', VIEWERS],
  ['reviewer in the frame', PASSWORD],
  ["viewer's program", VIEWERS],
  ['member', {}],
  ['member', MEMBERS],
  ['member', { ...MEMBERS, ...PASSWORD }],
]

test.each(WELCOME)('a %s hears of the next version', async (listener, settings) => {
  const listening = listen(listener, settings)
  await settled()
  expect(listening.heard()).toEqual([200, true, false, false])
  await listening.change({})
  expect(listening.heard()).toEqual([200, true, true, false])
})

test.each<readonly [Listener, string, Settings, Settings, number]>([
  ['viewer', 'is removed', VIEWERS, VIEWER_ENDED, 0],
  ['viewer', 'has to come in anew', VIEWERS, { password: { hash: VIEWERS_ONLY, generation: 2 } }, 0],
  ['viewer', 'was let in for so long', VIEWERS, {}, VISIT_MS],
  ["viewer's program", 'is removed', VIEWERS, VIEWER_ENDED, 0],
  ['reviewer in the frame', 'is removed', VIEWERS, VIEWER_ENDED, 0],
  ['reviewer in the frame', 'is no member', PASSWORD, MEMBERS, 0],
  ['member', 'has the pass of an hour ago', MEMBERS, {}, VISIT_MS],
  ['member', 'does not know the new password', PASSWORD, { password: { hash: 'another', generation: 2 } }, 0],
  ['member', 'finds a list of viewers', {}, VIEWERS, 0],
])('a %s who %s hears no more, and is sent to the page', async (listener, _, before, after, laterMs) => {
  const listening = listen(listener, before)
  await settled()
  await listening.change(after, laterMs)
  expect(listening.heard()).toEqual([200, true, false, true])
  expect(listening.isSentToPage()).toBe(true)
})

test.each<readonly [string, Settings, number]>([
  ['previews are off', { previews: 'off' }, 0],
  ['the preview is gone', { names: [] }, 0],
  ['the drop is paused', { state: 'paused' }, 0],
  ['the drop has expired', { expires_at: NOW + 1 }, 1],
])('a stream ends when %s, and the page stays', async (_, after, laterMs) => {
  for (const [listener, settings] of WELCOME) {
    const listening = listen(listener, settings)
    await settled()
    await listening.change(after, laterMs)
    expect(listening.heard()).toEqual([200, true, false, true])
    expect(listening.isSentToPage()).toBe(false)
  }
})
