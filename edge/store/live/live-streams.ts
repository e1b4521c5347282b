/**
 * Who wants to hear of newer versions: server-sent events, one stream for each tab. A stream ends with the right to see
 * the drop. What it says comes from this worker's own records, so a version is announced when it is served here.
 *
 *   connected: the number of the version, unless the tab knows it (Last-Event-ID)
 *   changed:   the new number        silent: a heartbeat        drained: the end; each tab comes back at its own time
 *   outside:   that the page should be asked for again, where a member whose pass has ended gets another; then the end
 *   said:      that people have said something, to those who review; what it was they ask control
 */
import { Readable } from 'node:stream'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import type { Exchange, HeaderList } from '../../context.ts'

/** At previews of drops, for members and viewers. */
export const LIVE_EVENTS_PATH = '/.dropway/events'

/** What a stream is about. */
export interface Watched {
  /** The host whose record says so. */
  readonly host: string
  /**
   * Number of the version that is shown now. When who listens may not see it any more: `outside` where they might come in
   * anew, else undefined.
   */
  version(): number | 'outside' | undefined
  /** Hears when something was said about the drop. */
  readonly isReview: boolean
}

/** `unseen`: they may not see the drop. `full`: this worker, or their network at it, has as many as it may. */
export type Opened = 'open' | 'unseen' | 'full'

export interface LiveStreams {
  /** Answers with the stream, or says why not. */
  open(exchange: Exchange, watched: Watched): Opened
  /** These hosts have other records now; undefined: all may have. */
  changed(hosts: readonly string[] | undefined): void
  /** Something was said about the drops at these hosts. */
  said(hosts: readonly string[]): void
  /** Ends all of them. */
  end(): void
  size(): number
}

interface Stream {
  readonly watched: Watched
  readonly network: string
  readonly out: Readable
  version: number
}

/** One worker has at most this many: each costs 56 to 81 kB with its connection, of which Node's TLS takes most. */
const MAX_STREAMS = 20_000
/** One network has at most this many at a worker: an office full of tabs, and a tenth of all. */
const MAX_PER_NETWORK = 2000
/** Before proxies and phones think that the line is dead. */
const HEARTBEAT_MS = 15_000
/** A tab whose edge restarts comes back after this long, each at a time of its own: no storm. */
const RETRY_MS = { least: 1000, spread: 5000 } as const
/** What a tab has not taken yet; more means that it is gone. */
const MAX_UNREAD_BYTES = 16_000

const HEADERS: HeaderList = [
  'content-type',
  'text/event-stream; charset=utf-8',
  'cache-control',
  'no-store',
  'x-content-type-options',
  'nosniff',
  'x-accel-buffering',
  'no',
]

export function createLiveStreams(random: () => number = Math.random): LiveStreams {
  const ofHosts = new Map<string, Set<Stream>>()
  const ofNetworks = new Map<string, number>()
  let size = 0
  let heartbeat: NodeJS.Timeout | undefined

  function write(stream: Stream, text: string): void {
    if (stream.out.readableLength > MAX_UNREAD_BYTES) stream.out.destroy()
    else stream.out.push(text)
  }

  function forget(stream: Stream): void {
    const ofHost = ofHosts.get(stream.watched.host)
    if (!ofHost?.delete(stream)) return
    size--
    count(stream.network, -1)
    if (ofHost.size === 0) ofHosts.delete(stream.watched.host)
    if (size > 0) return
    clearInterval(heartbeat)
    heartbeat = undefined
  }

  function count(network: string, by: 1 | -1): void {
    const left = (ofNetworks.get(network) ?? 0) + by
    if (left === 0) ofNetworks.delete(network)
    else ofNetworks.set(network, left)
  }

  function tell(stream: Stream): void {
    const version = stream.watched.version()
    if (version === 'outside') stream.out.push(AGAIN)
    if (typeof version !== 'number') return void stream.out.push(null)
    if (version === stream.version) return
    stream.version = version
    write(stream, eventOf(version))
  }

  const all = (): Stream[] => [...ofHosts.values()].flatMap((streams) => [...streams])
  const at = (hosts: readonly string[]): Stream[] => hosts.flatMap((host) => [...(ofHosts.get(host) ?? [])])

  return {
    open(exchange, watched) {
      const version = watched.version()
      if (typeof version !== 'number') return 'unseen'
      const network = limitKeyOfIp(exchange.ip)
      if (size >= MAX_STREAMS || (ofNetworks.get(network) ?? 0) >= MAX_PER_NETWORK) return 'full'
      // Nothing is made when it is asked for: what there is to say is pushed.
      const stream: Stream = { watched, network, version, out: new Readable({ read: () => {} }) }
      const ofHost = ofHosts.get(watched.host) ?? new Set()
      ofHosts.set(watched.host, ofHost.add(stream))
      size++
      count(network, 1)
      stream.out.once('close', () => forget(stream))
      stream.out.on('error', () => forget(stream))
      const retry = `retry: ${RETRY_MS.least + Math.floor(random() * RETRY_MS.spread)}\n`
      const isKnown = exchange.header('last-event-id')?.trim() === String(version)
      stream.out.push(isKnown ? `${retry}: resumed\n\n` : `${retry}${eventOf(version)}`)
      heartbeat ??= setInterval(() => {
        for (const each of all()) write(each, ': \n\n')
      }, HEARTBEAT_MS).unref()
      exchange.stream(200, HEADERS, stream.out, undefined)
      return 'open'
    },
    changed(hosts) {
      if (size === 0) return
      for (const stream of hosts === undefined ? all() : at(hosts)) tell(stream)
    },
    said(hosts) {
      if (size === 0) return
      for (const stream of at(hosts)) if (stream.watched.isReview) write(stream, SAID)
    },
    end() {
      for (const stream of all()) stream.out.push(null)
    },
    size: () => size,
  }
}

const AGAIN = 'event: again\ndata: {}\n\n'
/** It has no id: a tab that comes back says the version that it knows. */
const SAID = 'event: threads\ndata: {}\n\n'

function eventOf(version: number): string {
  return `id: ${version}\ndata: {"version":${version}}\n\n`
}
