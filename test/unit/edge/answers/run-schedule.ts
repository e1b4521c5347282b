/**
 * Runs schedules against the edge's two protocols over TLS, and says what was broken of the one promise: every head is
 * followed by exactly its body, or by the end of the connection or stream. The sockets are the system's own, of the kind
 * that buffers little, so that readers who stop are felt at once.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import http2 from 'node:http2'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import tls, { type TLSSocket } from 'node:tls'
import { openLocalCa } from '../../../../certs/local/local-ca.ts'
import { Connection, type ConnectionContext } from '../../../../edge/accept/connection.ts'
import { createHttp1Side } from '../../../../edge/accept/http1/http1.ts'
import { createHttp2Side } from '../../../../edge/accept/http2/http2.ts'
import { createNetworkLimits } from '../../../../edge/accept/visitors/limits.ts'
import { createOutgoing, type Outgoing } from '../../../../edge/accept/outgoing/outgoing.ts'
import type { Exchange } from '../../../../edge/context.ts'
import { systemClock } from '../../../../shared/running/clock.ts'
import { openPlannedSources } from './planned-sources.ts'
import { AnswerReader, bodyProblem } from './read-answers.ts'
import type { PlannedAnswer, Reader, Schedule } from './schedule.ts'

const DROP = 'drop.localhost'
const SERVICE = 'localhost'
const LIMITS = { connections: 1e9, handshakesPerSecond: 1e9, requestsPerSecond: 1e9 }
/** A reader who reads nothing is given up after 24 of them. */
const CHECK_MS = 4
/** Those who read on are not judged: on a busy machine they may seem to stand still. */
const NEVER_MS = 3_600_000
/** No schedule takes a thousandth of it. */
const HANGS_AFTER_MS = 120_000

export interface ScheduleRunner {
  /** What was broken; undefined when nothing was. */
  run(schedule: Schedule): Promise<string | undefined>
  stop(): Promise<void>
}

export interface RunnerOptions {
  /** Puts another way out in the place of the edge's own, to see that mistakes are found. */
  readonly replace?: (outgoing: Outgoing) => Outgoing
  readonly hangsAfterMs?: number
}

export async function startScheduleRunner({
  replace = (own) => own,
  hangsAfterMs = HANGS_AFTER_MS,
}: RunnerOptions = {}): Promise<ScheduleRunner> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-schedules-'))
  const certificate = openLocalCa(folder, systemClock).serviceCertificate([SERVICE, DROP])
  const sources = await openPlannedSources()
  const edges = new Map<string, Edge>()
  let visits = 0

  async function edgeOf({ scarceFrom, reader }: Schedule): Promise<Edge> {
    const checkMs = reader.isAbandoning ? CHECK_MS : NEVER_MS
    const name = `${scarceFrom}-${checkMs}`
    let edge = edges.get(name)
    if (edge === undefined) {
      edge = new Edge(certificate, replace(createOutgoing({ scarceFrom, checkMs })))
      edges.set(name, edge)
      await edge.listen(path.join(folder, `${name}.sock`))
    }
    return edge
  }

  return {
    async run(schedule) {
      const edge = await edgeOf(schedule)
      const opened: Readable[] = []
      const visit = String(visits++)
      const underWay: Promise<unknown>[] = []
      edge.visits.set(visit, (exchange, index) => {
        const answer = schedule.answers[index]
        if (answer === undefined) return
        const answering = sources.answer(exchange, index, answer).then((source) => source && opened.push(source))
        underWay.push(answering)
      })
      const visiting = schedule.protocol === 'HTTP/2' ? visitHttp2 : visitHttp1
      const problem = await Promise.race([
        visiting(edge.path, visit, schedule),
        sleep(hangsAfterMs, 'hangs', { ref: false }),
      ])
      edge.visits.delete(visit)
      if (problem !== undefined) return problem
      await Promise.all(underWay)
      return edge.leftOvers(opened)
    },
    async stop() {
      for (const edge of edges.values()) await edge.stop()
      sources.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** As much of a worker as answers: sockets, TLS, the two protocols, the way out. */
class Edge {
  readonly visits = new Map<string, (exchange: Exchange, index: number) => void>()
  path = ''
  readonly #outgoing: Outgoing
  readonly #server: net.Server
  readonly #limits = createNetworkLimits(LIMITS)
  readonly #sockets = new Set<net.Socket>()

  constructor(certificate: { cert: string; key: string }, outgoing: Outgoing) {
    this.#outgoing = outgoing
    const context: ConnectionContext = {
      visitorIps: { isTrusted: () => false, visitorOf: (peer) => peer },
      limits: this.#limits,
      certificates: { coversHost: () => true },
      outgoing,
    }
    const handlers = {
      onExchange: (exchange: Exchange) => this.#take(exchange),
      onAnswer() {},
      isService: (authority: string) => authority === SERVICE,
    }
    const http1 = createHttp1Side(handlers)
    const http2Side = createHttp2Side(handlers)
    const secure = tls.createServer({ ...certificate, ALPNProtocols: ['h2', 'http/1.1'] })
    secure.on('tlsClientError', (_error, socket) => socket.destroy())
    secure.on('secureConnection', (socket: TLSSocket) => {
      socket.on('error', () => socket.destroy())
      const connection = new Connection(socket, '127.0.0.1', this.#limits.of('127.0.0.1'), context)
      if (socket.alpnProtocol === 'h2') http2Side.take(socket, connection)
      else http1.take(socket, connection)
    })
    this.#server = net.createServer((socket) => {
      this.#sockets.add(socket)
      // Sockets of this kind know no reset.
      socket.resetAndDestroy = () => socket.destroy()
      socket.on('error', () => socket.destroy())
      socket.once('close', () => this.#sockets.delete(socket))
      secure.emit('connection', socket)
    })
  }

  async listen(address: string): Promise<void> {
    this.path = address
    this.#server.listen(address)
    await once(this.#server, 'listening')
  }

  #take(exchange: Exchange): void {
    const [, visit = '', index] = exchange.target.split('/')
    this.visits.get(visit)?.(exchange, Number(index))
  }

  /** What should be gone when the connection is: bytes that are counted, and sources. */
  async leftOvers(opened: readonly Readable[]): Promise<string | undefined> {
    const isClean = (): boolean =>
      this.#sockets.size === 0 && this.#outgoing.heldBytes() === 0 && opened.every(({ destroyed }) => destroyed)
    for (let turns = 0; turns < 2000 && !isClean(); turns++) await (turns < 200 ? turn() : sleep(1))
    if (isClean()) return undefined
    const open = opened.filter(({ destroyed }) => !destroyed).length
    return `left behind: ${this.#outgoing.heldBytes()} bytes, ${open} sources, ${this.#sockets.size} connections`
  }

  async stop(): Promise<void> {
    this.#limits.stop()
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

const targetOf = (visit: string, index: number): string => `/${visit}/${index}`
const hostOf = ({ source }: PlannedAnswer): string => (source === 'relay' ? SERVICE : DROP)

async function connect(address: string, protocol: string): Promise<TLSSocket> {
  const socket = tls.connect({ path: address, rejectUnauthorized: false, ALPNProtocols: [protocol] })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  return socket
}

async function turns(count: number): Promise<void> {
  for (let done = 0; done < count; done++) await turn()
}

/** Reads at the pace of a schedule: late, with pauses, not to the end, or not at all. */
function readAtPace(
  stream: TLSSocket | http2.ClientHttp2Stream,
  reader: Reader,
  onBytes: (bytes: Buffer) => void,
): void {
  let sincePause = 0
  stream.on('data', (bytes: Buffer) => {
    onBytes(bytes)
    sincePause += bytes.length
    if (sincePause < reader.pauseAfter || reader.pauseTurns === 0) return
    sincePause = 0
    stream.pause()
    void turns(reader.pauseTurns).then(() => stream.resume())
  })
  stream.pause()
  void turns(reader.lateTurns).then(async () => {
    // By then the edge has given up.
    if (reader.isAbandoning) await sleep(60 * CHECK_MS)
    stream.resume()
  })
}

async function visitHttp1(address: string, visit: string, schedule: Schedule): Promise<string | undefined> {
  const { answers, reader } = schedule
  const socket = await connect(address, 'http/1.1')
  const requests = answered(schedule).map((answer, index) => requestOf(visit, answer, index, reader))
  const received = new AnswerReader(answers, () => {
    // After a request that closes, the edge ends the connection.
    if (received.whole === requests.length) return void (reader.closing === undefined && socket.end())
    if (!reader.isPipelined) socket.write(requests[received.whole] ?? '')
  })
  let bytes = 0
  const closed = once(socket, 'close')
  readAtPace(socket, reader, (chunk) => {
    received.read(chunk)
    bytes += chunk.length
    if (reader.resetAt !== undefined && bytes >= reader.resetAt) socket.destroy()
    if (received.violation !== undefined) socket.destroy()
  })
  socket.write(reader.isPipelined ? requests.join('') : (requests[0] ?? ''))
  await closed
  return received.violation ?? problemOfWhole(schedule, received.whole)
}

/** What is asked for on the connection: behind a request that closes it, nothing. */
function answered({ answers, reader }: Schedule): readonly PlannedAnswer[] {
  return reader.closing === undefined ? answers : answers.slice(0, reader.closing.index + 1)
}

function requestOf(visit: string, answer: PlannedAnswer, index: number, { closing }: Reader): string {
  const isClosing = closing?.index === index
  const version = isClosing && closing.isHttp10 ? '1.0' : '1.1'
  const connection = isClosing && !closing.isHttp10 ? 'Connection: close\r\n' : ''
  return `GET ${targetOf(visit, index)} HTTP/${version}\r\nHost: ${hostOf(answer)}\r\n${connection}\r\n`
}

/** What ended is not what broke: without a flaw, and with a reader who reads on, everything comes. */
function problemOfWhole(schedule: Schedule, whole: number): string | undefined {
  const { reader } = schedule
  const answers = answered(schedule)
  const flawed = answers.findIndex(({ flaw }) => flaw !== undefined)
  if (flawed !== -1 && whole > flawed && answers[flawed]?.flaw?.kind !== 'long') return `answer ${flawed} looks whole`
  if (flawed !== -1 && whole > flawed + 1) return `an answer follows ${flawed}, which was too long`
  const isCutShort = flawed !== -1 || reader.resetAt !== undefined || reader.isAbandoning
  return isCutShort || whole === answers.length ? undefined : `${whole} of ${answers.length} answers came`
}

async function visitHttp2(address: string, visit: string, schedule: Schedule): Promise<string | undefined> {
  const { answers, reader } = schedule
  const socket = await connect(address, 'h2')
  const session = http2.connect('https://localhost', {
    createConnection: () => socket,
    settings: { initialWindowSize: reader.windowBytes },
  })
  session.on('error', () => {})
  await once(session, 'connect')
  session.setLocalWindowSize(4_000_000)
  let bytes = 0
  const problems = await Promise.all(
    answers.map((answer, index) =>
      readStream(session, visit, schedule, answer, index, (length) => {
        bytes += length
        if (reader.resetAt !== undefined && bytes >= reader.resetAt) socket.destroy()
      }),
    ),
  )
  session.destroy()
  return problems.find((problem) => problem !== undefined)
}

async function readStream(
  session: http2.ClientHttp2Session,
  visit: string,
  { reader }: Schedule,
  answer: PlannedAnswer,
  index: number,
  onBytes: (length: number) => void,
): Promise<string | undefined> {
  if (session.destroyed) return undefined
  const stream = session.request({ ':authority': hostOf(answer), ':path': targetOf(visit, index) })
  let violation: string | undefined
  let hasFailed = false
  let hasEnded = false
  let at = 0
  const isCancelled = reader.cancels?.index === index
  stream.on('error', () => (hasFailed = true))
  stream.on('end', () => (hasEnded = true))
  stream.on('response', (headers) => {
    if (headers['x-answer'] !== String(index)) violation = `answer ${String(headers['x-answer'])} instead of ${index}`
  })
  const closed = new Promise((resolve) => stream.once('close', resolve))
  readAtPace(stream, reader, (part) => {
    violation ??= bodyProblem(answer, at, part)
    at += part.length
    onBytes(part.length)
    if (isCancelled && at >= (reader.cancels?.at ?? 0)) stream.close(http2.constants.NGHTTP2_CANCEL)
  })
  await closed
  if (violation !== undefined) return `answer ${index}: ${violation}`
  // Behind a GOAWAY, which only those hear who are given up, the end of the connection ends every stream.
  const isWhole = hasEnded && !hasFailed && stream.rstCode === http2.constants.NGHTTP2_NO_ERROR && !session.closed
  if (isWhole && at !== answer.size && !isCancelled)
    return `answer ${index} looks whole with ${at} of ${answer.size} bytes`
  if (isWhole && answer.flaw !== undefined && answer.flaw.kind !== 'long' && !isCancelled)
    return `answer ${index} looks whole`
  const isCutShort = answer.flaw !== undefined || isCancelled || reader.resetAt !== undefined || reader.isAbandoning
  return isWhole || isCutShort ? undefined : `answer ${index} broke off after ${at} of ${answer.size} bytes`
}
