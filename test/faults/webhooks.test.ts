/**
 * Events while control is killed again and again and the receiver fails half the time: each arrives at least once, in
 * the order of its drop, with a signature that the reference library verifies.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiFor, fileForm } from '../support/api.ts'
import { makeTlsIdentity } from '../support/tls-identity.ts'
import { createRandom } from '../support/random.ts'
import { startStack, type Account, type OwnStack } from '../support/stack.ts'

const EVENTS = 1000
const KILLS = 30
const DROPS = 40
const PUBLISHERS = 5
/** Half of all attempts fail: with this share of failures, and a message taken at its fourth attempt at the latest. */
const FAILS = { share: 0.5437, mostPerMessage: 3 } as const
const PATIENCE_MS = 1_800_000
/** Control is started again within a second or two. */
const PAUSE_MS = 300

interface Taken {
  readonly siteId: string
  readonly version: number
}

let stack: OwnStack
let account: Account
let folder: string
let receiver: https.Server
let url: string
let secret = ''
const taken: Taken[] = []
const wrong: string[] = []
/** How often each message was refused, by its id. */
const refusals = new Map<string, number>()

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-fault-webhooks-'))
  const identity = makeTlsIdentity(folder)
  const random = createRandom(1)
  receiver = https.createServer({ cert: identity.cert, key: identity.key }, (request, response) => {
    void text(request).then((body) => {
      try {
        const message = new Webhook(secret).verify(body, request.headers as Record<string, string>) as {
          data: { site_id: string; version_number: number }
        }
        const id = String(request.headers['webhook-id'])
        const refused = refusals.get(id) ?? 0
        const fails = refused < FAILS.mostPerMessage && random.chance(FAILS.share)
        refusals.set(id, refused + Number(fails))
        if (!fails) taken.push({ siteId: message.data.site_id, version: message.data.version_number })
        response.writeHead(fails ? 500 : 200).end()
      } catch (error) {
        wrong.push(String(error))
        response.writeHead(400).end()
      }
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  url = `https://localhost:${(receiver.address() as AddressInfo).port}/hook`
  const caFile = path.join(folder, 'root.pem')
  await writeFile(caFile, identity.root)
  stack = await startStack({ env: { ALLOW_PRIVATE_ADDRESSES: 'yes', NODE_EXTRA_CA_CERTS: caFile } })
  account = await stack.createAccount('business')
}, 180_000)
afterAll(async () => {
  await stack?.stop()
  receiver?.close()
  await rm(folder, { recursive: true, force: true })
}, 60_000)

test(`${EVENTS} events, ${KILLS} kills, a receiver that fails half the time`, { timeout: PATIENCE_MS }, async () => {
  const hook = { url, events: ['drop.published'] }
  secret = (await stack.fetch('/api/v1/webhooks', { token: account.token, json: hook })).json().secret
  const api = apiFor(stack, account)
  const sites: string[] = []
  for (let index = 0; index < DROPS; index++) sites.push((await api.create()).json().id)
  const published: Taken[] = []
  let kills = 0
  /** Each has drops of its own, so that the order of a drop's publishes is known. */
  async function publish(publisher: number): Promise<void> {
    const own = sites.filter((_, index) => index % PUBLISHERS === publisher)
    for (let turn = 0; published.length < EVENTS; turn++) {
      const siteId = own[turn % own.length]!
      const answer = await api.upload(siteId, fileForm('index.html', `${publisher}, ${turn}`)).catch(() => undefined)
      if (answer?.status === 201) published.push({ siteId, version: answer.json().version_number })
      else await sleep(PAUSE_MS)
      if (kills >= KILLS || published.length < ((kills + 1) * EVENTS) / (KILLS + 1)) continue
      kills++
      stack.kill('control', 'SIGKILL')
    }
  }
  await Promise.all(Array.from({ length: PUBLISHERS }, (_, publisher) => publish(publisher)))
  const keyOf = ({ siteId, version }: Taken): string => `${siteId} ${version}`
  const untold = (): string[] => {
    const told = new Set(taken.map(keyOf))
    return published.map(keyOf).filter((key) => !told.has(key))
  }
  await expect.poll(untold, { timeout: PATIENCE_MS, interval: 1000 }).toEqual([])
  const failed = refusals.values().reduce((sum, count) => sum + count, 0)
  console.log(`${published.length} published, ${kills} kills, ${taken.length} taken, ${failed} refused`)
  expect([published.length >= EVENTS, kills]).toEqual([true, KILLS])
  expect(wrong).toEqual([])
  for (const siteId of sites) {
    const firsts = [...new Set(taken.filter((each) => each.siteId === siteId).map(({ version }) => version))]
    expect(firsts).toEqual(firsts.toSorted((a, b) => a - b))
  }
})
