/**
 * Visitors that keep coming at a steady rate and count what went wrong. Each keeps its connection as browsers do, and
 * opens a new one when the server says GOAWAY or closes; a request that was sent and not answered well is a failure.
 */
import http2 from 'node:http2'
import https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { SEED } from './depth.ts'
import { createRandom } from './random.ts'

export interface TrafficOptions {
  readonly port: number
  readonly ca: string
  readonly sitesDomain: string
  /** What to ask for, in turn; `expect` says whether the answer is one of a good server. */
  readonly targets: readonly Target[]
  readonly perSecond: number
  /** Every how many requests a connection is given up for a new one. */
  readonly requestsPerConnection?: number
}

export interface Target {
  readonly slug: string
  readonly path?: string
  expect(answer: { status: number; body: string; version: string | undefined }): boolean
}

export interface TrafficReport {
  readonly requests: number
  readonly failures: readonly string[]
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

export interface Traffic {
  /** What happened since the start or the last call. */
  take(): TrafficReport
  stop(): Promise<TrafficReport>
}

const VISITORS = 8
const ANSWER_TIMEOUT_MS = 10_000

export function startTraffic(options: TrafficOptions): Traffic {
  const random = createRandom(SEED)
  const { targets, perSecond } = options
  let latencies: number[] = []
  let failures: string[] = []
  let stopped = false
  let turn = 0

  async function visit(visitor: Visitor): Promise<void> {
    const target = targets[turn++ % targets.length]!
    const startedAt = performance.now()
    try {
      const answer = await visitor.get(target)
      if (!target.expect(answer)) failures.push(`${target.slug}: ${answer.status} ${answer.body.slice(0, 80)}`)
    } catch (error) {
      failures.push(`${target.slug}: ${(error as Error).message}`)
    }
    latencies.push(performance.now() - startedAt)
  }

  async function keepVisiting(visitor: Visitor): Promise<void> {
    const everyMs = (1000 * VISITORS) / perSecond
    for (let next = performance.now() + random.next() * everyMs; !stopped; next += everyMs) {
      const wait = next - performance.now()
      if (wait > 0) await sleep(wait)
      // A visitor who waits does not ask again meanwhile; lost turns are not made up for in a burst.
      else if (wait < -everyMs) next = performance.now()
      if (!stopped) await visit(visitor)
    }
    visitor.close()
  }

  const loops = Array.from({ length: VISITORS }, (_, index) =>
    keepVisiting(index % 2 === 0 ? createH2Visitor(options) : createH1Visitor(options)),
  )

  const take = (): TrafficReport => {
    const sorted = latencies.toSorted((a, b) => a - b)
    const report = {
      requests: sorted.length,
      failures,
      p50Ms: sorted[Math.floor(sorted.length * 0.5)] ?? 0,
      p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
      maxMs: sorted.at(-1) ?? 0,
    }
    latencies = []
    failures = []
    return report
  }

  return {
    take,
    async stop() {
      stopped = true
      await Promise.all(loops)
      return take()
    },
  }
}

interface Answer {
  status: number
  body: string
  version: string | undefined
}

interface Visitor {
  get(target: Target): Promise<Answer>
  close(): void
}

/** One session per drop, as browsers have it; taken anew when the server has announced the end of the old one. */
function createH2Visitor({ port, ca, sitesDomain, requestsPerConnection = 50 }: TrafficOptions): Visitor {
  const sessions = new Map<string, { session: http2.ClientHttp2Session; used: number }>()

  function sessionFor(slug: string): http2.ClientHttp2Session {
    const known = sessions.get(slug)
    if (known && !known.session.closed && !known.session.destroyed && known.used++ < requestsPerConnection)
      return known.session
    known?.session.close()
    const session = http2.connect(`https://127.0.0.1:${port}`, { servername: `${slug}.${sitesDomain}`, ca })
    session.on('error', () => {})
    session.on('goaway', () => session.close())
    sessions.set(slug, { session, used: 1 })
    return session
  }

  async function attempt({ slug, path = '/' }: Target): Promise<Answer | 'refused'> {
    const session = sessionFor(slug)
    const stream = session.request({ ':path': path, ':authority': `${slug}.${sitesDomain}:${port}` })
    stream.setTimeout(ANSWER_TIMEOUT_MS, () => stream.destroy(new Error('no answer')))
    return new Promise((resolve, reject) => {
      let head: http2.IncomingHttpHeaders | undefined
      const chunks: Buffer[] = []
      stream.on('response', (headers) => (head = headers))
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('error', (error: NodeJS.ErrnoException) => {
        // The server promised that it has not looked at it (RFC 9113 §8.7): every browser sends it again.
        if (stream.rstCode === http2.constants.NGHTTP2_REFUSED_STREAM || error.code === 'ERR_HTTP2_GOAWAY_SESSION')
          resolve('refused')
        else reject(error)
      })
      stream.on('close', () => {
        if (head === undefined) {
          if (stream.rstCode === http2.constants.NGHTTP2_REFUSED_STREAM) resolve('refused')
          else reject(new Error(`the stream ended without an answer (${stream.rstCode})`))
        } else
          resolve({
            status: Number(head[':status']),
            body: Buffer.concat(chunks).toString(),
            version: head['dropway-version'] as string | undefined,
          })
      })
    })
  }

  return {
    async get(target) {
      const answer = await attempt(target)
      if (answer !== 'refused') return answer
      sessions.delete(target.slug)
      const second = await attempt(target)
      if (second === 'refused') throw new Error('refused twice')
      return second
    },
    close() {
      for (const { session } of sessions.values()) session.close()
    },
  }
}

/** HTTP/1.1 with kept connections. One that closes before it answered may be asked again, once, on a new one: browsers do. */
function createH1Visitor({ port, ca, sitesDomain, requestsPerConnection = 50 }: TrafficOptions): Visitor {
  let agent = newAgent()
  let used = 0
  function newAgent(): https.Agent {
    return new https.Agent({ keepAlive: true, maxSockets: 4, ca })
  }

  function attempt({ slug, path = '/' }: Target): Promise<Answer | 'stale'> {
    if (used++ >= requestsPerConnection) {
      agent.destroy()
      agent = newAgent()
      used = 1
    }
    const host = `${slug}.${sitesDomain}`
    return new Promise((resolve, reject) => {
      const sent = https.get(
        { agent, host: '127.0.0.1', port, servername: host, path, headers: { host: `${host}:${port}` } },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('error', reject)
          response.on('end', () =>
            resolve({
              status: response.statusCode!,
              body: Buffer.concat(chunks).toString(),
              version: response.headers['dropway-version'] as string | undefined,
            }),
          )
        },
      )
      sent.setTimeout(ANSWER_TIMEOUT_MS, () => sent.destroy(new Error('no answer')))
      sent.on('error', (error) => {
        if (sent.reusedSocket) resolve('stale')
        else reject(error)
      })
    })
  }

  return {
    async get(target) {
      const answer = await attempt(target)
      if (answer !== 'stale') return answer
      agent.destroy()
      agent = newAgent()
      const second = await attempt(target)
      if (second === 'stale') throw new Error('closed twice before an answer')
      return second
    },
    close: () => agent.destroy(),
  }
}
