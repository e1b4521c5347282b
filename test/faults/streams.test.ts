/**
 * Tabs that follow a drop while their edges are restarted, one politely and one by kill -9: each comes back at a time of
 * its own, says which version it knows, and hears of every newer one. There is no storm.
 */
import https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiFor, fileForm } from '../support/api.ts'
import { startFleet, type Fleet } from '../support/fleet.ts'
import type { Account } from '../support/stack.ts'

const TABS = 300
const PATIENCE_MS = 120_000
/** Of those who come back; evenly spread over five seconds it is a fifth. */
const MOST_IN_A_SECOND = 0.35

let fleet: Fleet
let account: Account

beforeAll(async () => {
  fleet = await startFleet({ edges: 2, controls: 1 })
  account = await fleet.createAccount('business')
}, 180_000)
afterAll(() => fleet?.stop(), 60_000)

/** What a browser's EventSource does: reads the pause that it is told, comes back after it, and says what it knows. */
class Tab {
  /** The versions that it heard of, in this order. */
  readonly heard: number[] = []
  /** When it came back, in milliseconds since it lost the stream. */
  readonly pauses: number[] = []
  resumed = 0
  isOpen = false
  readonly #path: string
  #retryMs = 0
  #isOver = false
  #request: ReturnType<typeof https.get> | undefined

  constructor(path: string) {
    this.#path = path
  }

  async listen(): Promise<void> {
    for (let lostAt: number | undefined; !this.#isOver; lostAt = performance.now()) {
      if (lostAt !== undefined) await sleep(this.#retryMs)
      if (lostAt !== undefined) this.pauses.push(performance.now() - lostAt)
      await this.#connect().catch(() => {})
      this.isOpen = false
    }
  }

  close(): void {
    this.#isOver = true
    this.#request?.destroy()
  }

  #connect(): Promise<void> {
    const { hostname, port } = new URL(fleet.baseUrl)
    const known = this.heard.at(-1)
    const headers = { host: `${hostname}:${port}`, ...(known !== undefined && { 'last-event-id': String(known) }) }
    const options = {
      host: '127.0.0.1',
      port,
      path: this.#path,
      ca: fleet.ca,
      servername: hostname,
      agent: false,
    } as const
    return new Promise((resolve, reject) => {
      this.#request = https.get({ ...options, headers }, (answer) => {
        this.isOpen = answer.statusCode === 200
        answer.setEncoding('utf8').on('data', (text: string) => this.#hear(text))
        answer.on('end', resolve).on('error', reject)
      })
      this.#request.on('error', reject)
    })
  }

  #hear(text: string): void {
    this.#retryMs = Number(/retry: (\d+)/.exec(text)?.[1] ?? this.#retryMs)
    if (text.includes(': resumed')) this.resumed++
    for (const [, id] of text.matchAll(/^id: (\d+)$/gm)) this.heard.push(Number(id))
  }
}

/** The largest share of these moments within one second. */
function busiestSecond(moments: readonly number[]): number {
  const sorted = moments.toSorted((a, b) => a - b)
  const counts = sorted.map((from, index) => sorted.slice(index).filter((at) => at < from + 1000).length)
  return Math.max(...counts) / sorted.length
}

test('edges restart under open tabs: each comes back in its own time, resumed, and misses nothing', async () => {
  const api = apiFor(fleet, account)
  const slug = 'followed'
  const { id } = (await api.create({ slug })).json<{ id: string }>()
  const publish = async (text: string): Promise<void> => {
    const answer = await api.upload(id, fileForm('index.html', text))
    expect(answer.status, answer.text()).toBe(201)
  }
  await publish('one')
  const { pass } = (await fleet.fetch(`/review/${slug}/pass`, { token: account.token })).json<{ pass: string }>()
  const tabs = Array.from({ length: TABS }, () => new Tab(`/review/${slug}/events?pass=${pass}`))
  for (const tab of tabs) void tab.listen()
  const allOpen = async (): Promise<void> => {
    await expect.poll(() => tabs.filter(({ isOpen }) => isOpen).length, { timeout: PATIENCE_MS }).toBe(TABS)
  }
  const allHeard = async (version: number): Promise<void> => {
    const deaf = (): number => tabs.filter(({ heard }) => heard.at(-1) !== version).length
    await expect.poll(deaf, { timeout: PATIENCE_MS }).toBe(0)
  }
  await allOpen()
  await allHeard(1)

  const comingBack = async (): Promise<Tab[]> => {
    const before = tabs.map(({ pauses }) => pauses.length)
    await expect.poll(() => tabs.some(({ isOpen }) => !isOpen), { timeout: PATIENCE_MS, interval: 5 }).toBe(true)
    await allOpen()
    return tabs.filter(({ pauses }, index) => pauses.length > before[index]!)
  }

  // Politely: nothing was published meanwhile, and nobody is told anything twice.
  const [first, second] = fleet.edges
  const [polite] = await Promise.all([comingBack(), fleet.removeEdge(first!)])
  expect(polite.length).toBeGreaterThan(TABS / 4)
  expect(busiestSecond(polite.map(({ pauses }) => pauses.at(-1)!))).toBeLessThan(MOST_IN_A_SECOND)
  expect(polite.filter(({ resumed }) => resumed === 0)).toEqual([])
  expect(tabs.filter(({ heard }) => heard.length !== 1)).toEqual([])

  // By kill -9, with a publish before they are back.
  await fleet.addEdge()
  const returning = comingBack()
  second!.kill('SIGKILL')
  await second!.exited
  fleet.edges.splice(fleet.edges.indexOf(second!), 1)
  await fleet.addEdge()
  await publish('two')
  const killed = await returning
  expect(killed.length).toBeGreaterThan(TABS / 4)
  expect(busiestSecond(killed.map(({ pauses }) => pauses.at(-1)!))).toBeLessThan(MOST_IN_A_SECOND)
  await allHeard(2)
  await publish('three')
  await allHeard(3)
  expect(tabs.filter(({ heard }) => heard.join(' ') !== '1 2 3')).toEqual([])
  for (const tab of tabs) tab.close()
}, 600_000)
