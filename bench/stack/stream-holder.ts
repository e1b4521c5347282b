/**
 * Tabs that listen: opens so many streams of events, as many on one connection as its parent says, and notes when each
 * hears of which version. Answers its parent by message.
 */
import { once } from 'node:events'
import http2 from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'

export interface StreamHolderOptions {
  readonly port: number
  readonly host: string
  readonly path: string
  readonly protocol: 'h1' | 'h2'
  readonly count: number
  /** How many share a connection of HTTP/2, as those of one browser do. */
  readonly tabsPerBrowser: number
  /** The first of the addresses that they come from, as a number below 2^24. */
  readonly from: number
}

/** What a version took to be heard of, counted from this moment (milliseconds since 1970). */
export interface HeardCommand {
  readonly version: number
  readonly sinceMs: number
}

export type StreamHolderReport =
  | { readonly kind: 'open'; readonly open: number }
  /** `lateMs`: of each stream that heard, sorted; 0 for one that heard before. */
  | { readonly kind: 'heard'; readonly lateMs: readonly number[]; readonly missing: number }

/** Handshakes under way: more would only wait for the server. */
const OPENED_AT_ONCE = 8
const MOST_ATTEMPTS = 10
const PATIENCE_MS = 30_000
const LOOK_MS = 50

class Tab {
  /** When it heard of each version. */
  readonly heardMs = new Map<number, number>()
  isOpen = true
  readonly #begun = Promise.withResolvers<void>()

  hear(text: string): void {
    const now = performance.timeOrigin + performance.now()
    for (const [, version] of text.matchAll(/id: (\d+)\n/g)) this.heardMs.set(Number(version), now)
    if (this.heardMs.size > 0) this.#begun.resolve()
  }

  close(): void {
    this.isOpen = false
    this.#begun.resolve()
  }

  /** It has heard which version there is, or was refused. */
  get begun(): Promise<void> {
    return this.#begun.promise
  }
}

const addressOf = (number: number): string => `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`

async function openH1({ port, host, path }: StreamHolderOptions, from: string): Promise<Tab[]> {
  const tab = new Tab()
  const socket = tls.connect({ port, servername: host, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
  socket.on('error', () => {})
  socket.on('close', () => tab.close())
  socket.on('data', (chunk: Buffer) => tab.hear(chunk.toString('latin1')))
  await once(socket, 'secureConnect')
  socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}:${port}\r\nx-forwarded-for: ${from}\r\n\r\n`)
  await tab.begun
  return [tab]
}

async function openH2({ port, host, path, tabsPerBrowser }: StreamHolderOptions, from: string): Promise<Tab[]> {
  const session = http2.connect(`https://127.0.0.1:${port}`, { servername: host, rejectUnauthorized: false })
  session.on('error', () => {})
  await once(session, 'connect')
  const head = { ':path': path, ':authority': `${host}:${port}`, 'x-forwarded-for': from }
  const tabs = Array.from({ length: tabsPerBrowser }, () => {
    const tab = new Tab()
    session.on('close', () => tab.close())
    const stream = session.request(head)
    stream.on('error', () => {})
    stream.on('close', () => tab.close())
    stream.on('data', (chunk: Buffer) => tab.hear(chunk.toString('latin1')))
    return tab
  })
  await Promise.all(tabs.map((tab) => tab.begun))
  return tabs
}

/** A busy machine may not answer a handshake in time: a tab tries again. */
async function untilOpen(open: () => Promise<Tab[]>): Promise<Tab[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await open()
    } catch (error) {
      if (attempt === MOST_ATTEMPTS) throw error
    }
  }
}

async function main(options: StreamHolderOptions): Promise<void> {
  const tabs: Tab[] = []
  const openOne = options.protocol === 'h1' ? openH1 : openH2
  let begun = 0
  const openSome = async (): Promise<void> => {
    while (begun < options.count) {
      const from = addressOf(options.from + begun)
      begun += options.tabsPerBrowser
      tabs.push(...(await untilOpen(() => openOne(options, from))))
    }
  }
  await Promise.all(Array.from({ length: OPENED_AT_ONCE }, openSome))
  const tell = (report: StreamHolderReport): void => void process.send!(report)
  process.on('message', (command: HeardCommand) => void heard(tabs, command).then(tell))
  tell({ kind: 'open', open: tabs.filter(({ isOpen, heardMs }) => isOpen && heardMs.size > 0).length })
}

async function heard(tabs: readonly Tab[], { version, sinceMs }: HeardCommand): Promise<StreamHolderReport> {
  const deaf = (): number => tabs.filter(({ heardMs }) => !heardMs.has(version)).length
  for (const until = performance.now() + PATIENCE_MS; deaf() > 0 && performance.now() < until;) await sleep(LOOK_MS)
  const lateMs = tabs.flatMap(({ heardMs }) => {
    const at = heardMs.get(version)
    return at === undefined ? [] : [Math.max(0, at - sinceMs)]
  })
  return { kind: 'heard', lateMs: lateMs.toSorted((a, b) => a - b), missing: deaf() }
}

await main(JSON.parse(process.argv[2]!) as StreamHolderOptions)
