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

const EVENTS = Number(process.env['FAULT_EVENTS'] ?? 60)
const KILLS = Number(process.env['FAULT_KILLS'] ?? 4)
const DROPS = 4
/** Retries of a message that failed a few times take half a minute each. */
const PATIENCE_MS = 600_000

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
        const fails = random.chance(0.5)
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
  const killEvery = Math.max(1, Math.floor(EVENTS / KILLS))
  for (let event = 0; event < EVENTS; event++) {
    const siteId = sites[event % DROPS]!
    const answer = await api.upload(siteId, fileForm('index.html', `event ${event}`)).catch(() => undefined)
    if (answer?.status === 201) published.push({ siteId, version: answer.json().version_number })
    if (event % killEvery === killEvery - 1) {
      stack.kill('control', 'SIGKILL')
      await sleep(1500)
    }
  }
  const keyOf = ({ siteId, version }: Taken): string => `${siteId} ${version}`
  const isTold = (): boolean => {
    const told = new Set(taken.map(keyOf))
    return published.every((each) => told.has(keyOf(each)))
  }
  while (!isTold()) await sleep(500)
  expect(wrong).toEqual([])
  for (const siteId of sites) {
    const firsts = [...new Set(taken.filter((each) => each.siteId === siteId).map(({ version }) => version))]
    expect(firsts).toEqual(firsts.toSorted((a, b) => a - b))
  }
})
