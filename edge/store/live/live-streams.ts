/**
 * Who wants to hear of newer versions: server-sent events, one stream for each tab. A stream ends with the right to see
 * the drop. What it says comes from this worker's own records, so a version is announced when it is served here.
 *
 *   connected: the number of the version, unless the tab knows it (Last-Event-ID)
 *   changed:   the new number        silent: a heartbeat        drained: the end; each tab comes back at its own time
 */
import { PassThrough } from 'node:stream'
import type { FullExchange, HeaderList } from '../../context.ts'

/** What a stream is about. */
export interface Watched {
  /** The host whose record says so. */
  readonly host: string
  /** Number of the version that is shown now; undefined when who listens may not see it any more. */
  version(): number | undefined
}

export interface LiveStreams {
  /** Answers with the stream; false when there are too many. */
  open(exchange: FullExchange, watched: Watched): boolean
  /** These hosts have other records now; undefined: all may have. */
  changed(hosts: readonly string[] | undefined): void
  /** Ends all of them. */
  end(): void
  size(): number
}

interface Stream {
  readonly watched: Watched
  readonly out: PassThrough
  version: number
}

/** One worker has at most this many: each costs some 20 kB with its connection. */
const MAX_STREAMS = 20_000
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
  let size = 0
  let heartbeat: NodeJS.Timeout | undefined

  function write(stream: Stream, text: string): void {
    if (stream.out.writableLength + stream.out.readableLength > MAX_UNREAD_BYTES) stream.out.destroy()
    else stream.out.write(text)
  }

  function forget(stream: Stream): void {
    const ofHost = ofHosts.get(stream.watched.host)
    if (!ofHost?.delete(stream)) return
    size--
    if (ofHost.size === 0) ofHosts.delete(stream.watched.host)
    if (size > 0) return
    clearInterval(heartbeat)
    heartbeat = undefined
  }

  function tell(stream: Stream): void {
    const version = stream.watched.version()
    if (version === undefined) return void stream.out.end()
    if (version === stream.version) return
    stream.version = version
    write(stream, eventOf(version))
  }

  const all = (): Stream[] => [...ofHosts.values()].flatMap((streams) => [...streams])

  return {
    open(exchange, watched) {
      const version = watched.version()
      if (version === undefined || size >= MAX_STREAMS) return false
      const stream: Stream = { watched, version, out: new PassThrough() }
      const ofHost = ofHosts.get(watched.host) ?? new Set()
      ofHosts.set(watched.host, ofHost.add(stream))
      size++
      stream.out.once('close', () => forget(stream))
      stream.out.on('error', () => forget(stream))
      const retry = `retry: ${RETRY_MS.least + Math.floor(random() * RETRY_MS.spread)}\n`
      const isKnown = exchange.header('last-event-id')?.trim() === String(version)
      stream.out.write(isKnown ? `${retry}: resumed\n\n` : `${retry}${eventOf(version)}`)
      heartbeat ??= setInterval(() => {
        for (const each of all()) write(each, ': \n\n')
      }, HEARTBEAT_MS).unref()
      exchange.relay(200, HEADERS, stream.out)
      return true
    },
    changed(hosts) {
      if (size === 0) return
      const concerned = hosts === undefined ? all() : hosts.flatMap((host) => [...(ofHosts.get(host) ?? [])])
      for (const stream of concerned) tell(stream)
    },
    end() {
      for (const stream of all()) stream.out.end()
    },
    size: () => size,
  }
}

function eventOf(version: number): string {
  return `id: ${version}\ndata: {"version":${version}}\n\n`
}
