/**
 * The insides of Node that the edge leans on. None is documented: when a new Node lacks one, this file says which, and the
 * comment says who needs it for what.
 */
import { once } from 'node:events'
import http, { type ServerResponse } from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import tls, { type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openLocalCa } from '../../../certs/local/local-ca.ts'
import { systemClock } from '../../../shared/running/clock.ts'

/** What Node's types do not show. */
interface Inside {
  readonly _parent?: unknown
  readonly _handle: Record<'bytesWritten' | 'writeQueueSize' | 'fd' | 'readStop', unknown> | null
  readonly _readableState: { readingMore: boolean }
  readonly _httpMessage?: ServerResponse | null
}
const insideOf = (thing: object): Inside => thing as unknown as Inside

let folder: string
let server: net.Server
let secure: tls.Server

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-insides-'))
  secure = tls.createServer(openLocalCa(folder, systemClock).serviceCertificate(['localhost']))
  server = net.createServer((socket) => void secure.emit('connection', socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

async function connected(): Promise<{ raw: net.Socket; socket: TLSSocket; client: TLSSocket }> {
  const accepted = once(server, 'connection') as Promise<[net.Socket]>
  const secured = once(secure, 'secureConnection') as Promise<[TLSSocket]>
  const client = tls.connect({ port: (server.address() as AddressInfo).port, rejectUnauthorized: false })
  client.on('error', () => {})
  const [[raw], [socket]] = await Promise.all([accepted, secured])
  socket.on('error', () => {})
  onTestFinished(() => {
    client.destroy()
    socket.destroy()
  })
  return { raw, socket, client }
}

describe('a connection', () => {
  // edge/accept: limits are counted on the socket below TLS, and resets are sent on it.
  test('over TLS keeps the socket below in `_parent`', async () => {
    const { raw, socket } = await connected()
    expect(insideOf(socket)._parent).toBe(raw)
  })

  // edge/accept/outgoing/kernel-counts.ts: what the kernel has taken of it.
  test('counts in `_handle` what was written and what the kernel has yet to take', async () => {
    const { raw, socket } = await connected()
    const before = Number(insideOf(raw)._handle?.bytesWritten)
    await new Promise<void>((resolve) => socket.write('x'.repeat(1000), () => resolve()))
    expect(Number(insideOf(raw)._handle?.bytesWritten) - before).toBeGreaterThan(1000)
    expect(insideOf(raw)._handle?.writeQueueSize).toBe(0)
  })

  // edge/accept/outgoing/send-queues.ts: the kernel lists its queues by the inode of the socket.
  test.runIf(process.platform === 'linux')('is known to the kernel by the `fd` of its `_handle`', async () => {
    const { raw } = await connected()
    const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${String(insideOf(raw)._handle?.fd)}`))?.[1]
    expect(readFileSync('/proc/self/net/tcp', 'latin1')).toContain(` ${inode} `)
  })

  // edge/accept/raw-socket.ts `stopReading`: what a visitor still sends stays in the kernel.
  test('stops reading by `_handle.readStop`', async () => {
    const { raw } = await connected()
    expect(insideOf(raw)._handle?.readStop).toBeTypeOf('function')
  })

  // edge/accept/raw-socket.ts `readsByItself`: no look for more after each chunk.
  test('has `_readableState.readingMore`, and brings bytes while it is set', async () => {
    const { socket, client } = await connected()
    expect(insideOf(socket)._readableState.readingMore).toBeTypeOf('boolean')
    insideOf(socket)._readableState.readingMore = true
    const received: string[] = []
    for (const text of ['one', 'two']) {
      const data = once(socket, 'data') as Promise<[Buffer]>
      client.write(text)
      received.push((await data)[0].toString())
    }
    expect(received).toEqual(['one', 'two'])
  })

  // edge/accept/http1/close-in-stages.ts: a connection that node:http has stopped goes on being read.
  test('begins to read again by `_read(0)`', async () => {
    const { raw } = await connected()
    expect(() => raw._read(0)).not.toThrow()
  })
})

describe('node:http', () => {
  async function receive(text: string): Promise<{ server: http.Server; response: ServerResponse; socket: net.Socket }> {
    const plain = http.createServer()
    const requested = once(plain, 'request') as Promise<[http.IncomingMessage, ServerResponse]>
    plain.listen(0, '127.0.0.1')
    await once(plain, 'listening')
    const client = net.connect((plain.address() as AddressInfo).port, '127.0.0.1')
    client.on('error', () => {})
    client.write(text)
    const [request, response] = await requested
    onTestFinished(() => {
      client.destroy()
      plain.closeAllConnections()
      plain.close()
    })
    return { server: plain, response, socket: request.socket }
  }

  // edge/accept/http1/http1.ts `onClientError`: a refusal must not stand in the body of an answer.
  test('keeps the answer under way in `_httpMessage` of its socket', async () => {
    const { response, socket } = await receive('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(insideOf(socket)._httpMessage).toBe(response)
  })

  // edge/accept/http1/close-in-stages.ts: how the last answer ends a connection.
  test('calls `destroySoon` of the socket after its last answer', async () => {
    const { response, socket } = await receive('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    const called = new Promise<void>((resolve) => (socket.destroySoon = () => resolve()))
    response.end()
    await called
  })

  // edge/accept/http1/pipelined.ts: an answer that broke off before its turn ends its connection then.
  test('gives a pipelined answer its socket with an event, also when it is destroyed', async () => {
    const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
    const { server: plain, response } = await receive(get)
    const next = once(plain, 'request') as Promise<[http.IncomingMessage, ServerResponse]>
    response.socket?.unshift(get)
    const [, second] = await next
    expect(second.socket).toBeNull()
    second.destroy(new Error('broke off'))
    const assigned = once(second, 'socket')
    response.end()
    await assigned
  })

  // edge/accept/http1/http1.ts: a server that never listens looks for slow senders all the same.
  test('begins to look for slow senders with the event `listening`', async () => {
    const idle = http.createServer({ headersTimeout: 1, requestTimeout: 1, connectionsCheckingInterval: 1 })
    onTestFinished(() => void idle.close())
    idle.emit('listening')
    const timedOut = once(idle, 'clientError') as Promise<[NodeJS.ErrnoException, net.Socket]>
    const { raw, client } = await connected()
    idle.emit('connection', raw)
    raw.unshift('GET / HTTP/1.1\r\n')
    await turn()
    expect((await timedOut)[0].code).toBe('ERR_HTTP_REQUEST_TIMEOUT')
    client.destroy()
  })
})

// edge/accept/outgoing/unsent.ts: setsockopt on the listening socket.
test('a listening server has the `fd` of its socket in `_handle`', () => {
  expect(insideOf(server)._handle?.fd).toBeTypeOf('number')
})
