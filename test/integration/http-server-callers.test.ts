/** Callers of the control plane who leave, are slow or come in crowds, and what closing means to them, over real sockets. */
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { json, noContent, stream } from '../../control/ground/http/reply.ts'
import type { Route } from '../../control/ground/http/route.ts'
import { errors } from '../../shared/contracts/errors.ts'
import type { Log } from '../../shared/running/log.ts'
import { hello, jsonEcho, startServer } from '../support/http-server.ts'
import { statusOf } from '../support/raw-http.ts'

/** Longer than any test waits: what is given this long is ended by something else. */
const LONG_MS = 120_000

test('when the caller leaves, the handler hears of it and nothing is logged', async () => {
  const logged: unknown[] = []
  const begun: string[] = []
  const outcomes: string[] = []
  const note = (what: string) => outcomes.push(what)
  const { port, url } = await startServer(
    [
      {
        method: 'GET',
        path: '/wait',
        handle(request) {
          begun.push('signal')
          return new Promise((_resolve, reject) =>
            request.signal.addEventListener('abort', () => (note('signal'), reject(request.signal.reason))),
          )
        },
      },
      {
        method: 'POST',
        path: '/json',
        handle(request) {
          begun.push('json')
          return request.json().then(
            () => noContent(),
            (error: unknown) => (note('json'), Promise.reject(error)),
          )
        },
      },
      {
        method: 'POST',
        path: '/form',
        handle: (request) =>
          request
            .multipart(async (part) => {
              begun.push('form')
              if (part.kind === 'file') for await (const _ of part.stream) void _
            })
            .then(
              () => noContent(),
              (error: unknown) => (note('form'), Promise.reject(error)),
            ),
      },
      hello,
    ],
    { log: { error: (...args: unknown[]) => logged.push(args) } as unknown as Log },
  )
  const texts = [
    'GET /wait HTTP/1.1\r\nhost: x\r\n\r\n',
    'POST /json HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"a":',
    'POST /form HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: 1000\r\n\r\n--b\r\ncontent-disposition: form-data; name="f"; filename="x"\r\n\r\nhalf',
  ]
  const sockets = texts.map((text) => {
    const socket = net.connect(port, '127.0.0.1')
    socket.write(text)
    return socket
  })
  await expect.poll(() => begun.toSorted()).toEqual(['form', 'json', 'signal'])
  for (const socket of sockets) socket.destroy()
  await expect.poll(() => outcomes.toSorted()).toEqual(['form', 'json', 'signal'])
  // Whoever is answered later comes behind what would have been logged.
  expect((await fetch(`${url}/hello`)).status).toBe(200)
  expect(logged).toEqual([])
})

test('a streamed reply is held back by a slow reader and destroyed when the reader leaves', async () => {
  let produced = 0
  let gone: () => void = () => {}
  const destroyed = new Promise<void>((resolve) => (gone = resolve))
  const { url } = await startServer([
    {
      method: 'GET',
      path: '/export',
      handle: () =>
        stream(
          200,
          new Readable({
            read() {
              produced += 65_536
              this.push(Buffer.alloc(65_536))
            },
            destroy: (error, done) => (gone(), done(error)),
          }),
          { 'content-type': 'application/zip' },
        ),
    },
  ])
  const request = http.get(`${url}/export`)
  request.on('error', () => {})
  const [reply] = (await once(request, 'response')) as [http.IncomingMessage]
  reply.on('error', () => {})
  reply.pause()
  for (let before = -1; before !== produced; await sleep(100)) before = produced
  expect(produced).toBeLessThan(50_000_000)
  request.destroy()
  await destroyed
})

test('a body that is asked for after its caller left ends at once', async () => {
  const asked = Promise.withResolvers<unknown>()
  const { port } = await startServer([
    {
      method: 'POST',
      path: '/late',
      async handle(request) {
        await new Promise((left) => request.signal.addEventListener('abort', left))
        request.bytes(1_000_000).then(asked.resolve, asked.reject)
        return noContent()
      },
    },
  ])
  const request = http.request({ port, host: '127.0.0.1', method: 'POST', path: '/late' })
  request.on('error', () => {})
  request.setHeader('content-length', '1000')
  await new Promise((written) => request.write('a part of it', written))
  request.destroy()
  await expect(asked.promise).rejects.toThrow('The caller closed the connection.')
})

/** A route whose answer waits to be released. */
function answeredLater() {
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const slow: Route = {
    method: 'GET',
    path: '/slow',
    async handle() {
      begun.resolve()
      await released.promise
      return json(200, 'done')
    },
  }
  return { slow, begun, released }
}

test('closing lets requests finish, and refuses new ones', async () => {
  const { slow, begun, released } = answeredLater()
  const { url, server } = await startServer([slow])
  const answer = fetch(`${url}/slow`)
  await begun.promise
  const closed = server.close(LONG_MS)
  released.resolve()
  expect(await (await answer).json()).toBe('done')
  await closed
  await expect(fetch(`${url}/slow`)).rejects.toThrow()
})

test('closing ends idle connections at once, while others are owed an answer', async () => {
  const { slow, begun, released } = answeredLater()
  const { port, url, server } = await startServer([slow, hello])
  const answer = fetch(`${url}/slow`)
  await begun.promise
  const idle = net.connect(port, '127.0.0.1')
  idle.write('GET /hello HTTP/1.1\r\nhost: x\r\n\r\n')
  await once(idle, 'data')
  const closed = server.close(LONG_MS)
  await once(idle, 'close')
  released.resolve()
  expect(await (await answer).json()).toBe('done')
  await closed
})

test('closing lets an answer leave that its caller takes slowly, whatever another caller does', async () => {
  const large = Buffer.alloc(20_000_000, 65)
  const given = Promise.withResolvers<void>()
  let answers = 0
  const { port, server } = await startServer([
    {
      method: 'GET',
      path: '/large',
      async handle() {
        answers += 1
        if (answers === 2) setImmediate(() => given.resolve())
        return { status: 200, body: large }
      },
    },
  ])
  const ask = async (): Promise<http.IncomingMessage> => {
    const [reply] = await once(http.get({ port, host: '127.0.0.1', path: '/large' }), 'response')
    return reply as http.IncomingMessage
  }
  const [reply, other] = await Promise.all([ask(), ask()])
  await given.promise
  const closed = server.close(LONG_MS)
  other.once('error', () => {})
  // Neither takes anything until the server waits for these two alone.
  await sleep(100)
  other.socket.resetAndDestroy()
  let bytes = 0
  for await (const chunk of reply) bytes += (chunk as Buffer).length
  expect(bytes).toBe(large.length)
  await closed
})

test('closing cuts what outlasts the grace', async () => {
  const begun = Promise.withResolvers<void>()
  const never: Route = {
    method: 'GET',
    path: '/never',
    handle() {
      begun.resolve()
      return new Promise(() => {})
    },
  }
  const { url, server } = await startServer([never])
  const answer = fetch(`${url}/never`)
  await begun.promise
  await Promise.all([expect(answer).rejects.toThrow(), server.close(100)])
})

test('a control in trouble is alive and not ready, one that leaves says so while it serves', async () => {
  let trouble: string | undefined
  const { url, server } = await startServer([hello], { trouble: () => trouble })
  const told = async (path: string) => {
    const answer = await fetch(url + path)
    return [answer.status, await answer.json()]
  }
  expect([await told('/healthz'), await told('/readyz')]).toEqual([
    [200, { status: 'ok' }],
    [200, { status: 'ok' }],
  ])
  trouble = 'Postgres is away'
  const said = { status: 'degraded', detail: 'Postgres is away: nothing can be changed' }
  expect([await told('/healthz'), await told('/readyz')]).toEqual([
    [200, said],
    [503, said],
  ])
  trouble = undefined
  // It is not waited for: it says so for as long as it was told to.
  void server.close(0, LONG_MS)
  expect(await told('/readyz')).toEqual([503, { status: 'closing' }])
  expect(await told('/hello')).toEqual([200, { hello: true }])
})

const SMALL_SHARES = { places: 6, placesPerCaller: 2, waiting: 20, waitingPerCaller: 4, waitMs: LONG_MS }

/** One network holds its two places until they are released. */
async function startFull(shares = SMALL_SHARES) {
  const release = Promise.withResolvers<void>()
  let holding = 0
  const slow: Route = {
    method: 'GET',
    path: '/slow',
    async handle() {
      holding += 1
      await release.promise
      return json(200, {})
    },
  }
  const { url } = await startServer([slow, hello], { shares })
  const from = (ip: string, path: string): Promise<Response> =>
    fetch(url + path, { headers: { 'x-forwarded-for': ip } })
  const held = [from('203.0.113.1', '/slow'), from('203.0.113.1', '/slow')]
  await expect.poll(() => holding).toBe(2)
  return { from, held, release: release.resolve }
}
const toldBy = (answer: Response): string => `${answer.status} ${answer.headers.has('retry-after')}`

test('one network holds only its part of the requests under way, and has only so many waiting', async () => {
  const { from, held, release } = await startFull()
  const refused: string[] = []
  const extra = Array.from({ length: 8 }, async () => {
    const answer = await from('203.0.113.1', '/hello')
    if (answer.status !== 200) refused.push(toldBy(answer))
    return String(answer.status)
  })
  await expect.poll(() => refused).toEqual(Array(4).fill('429 true'))
  // Others notice nothing, neighbours of one IPv6 subscriber are one caller.
  expect((await from('203.0.113.2', '/hello')).status).toBe(200)
  expect((await from('2001:db8::1', '/hello')).status).toBe(200)
  release()
  expect((await Promise.all(held)).map((answer) => answer.status)).toEqual([200, 200])
  expect((await Promise.all(extra)).toSorted()).toEqual([
    ...Array<string>(4).fill('200'),
    ...Array<string>(4).fill('429'),
  ])
})

test('no one waits in silence', async () => {
  const { from, held, release } = await startFull({ ...SMALL_SHARES, waitMs: 50 })
  expect(toldBy(await from('203.0.113.1', '/hello'))).toBe('503 true')
  release()
  await Promise.all(held)
})

test('a place is given back by answers, errors and callers who leave', async () => {
  const failing: Route = { method: 'GET', path: '/failing', handle: () => Promise.reject(new Error('failed')) }
  let leave = new AbortController()
  const endless: Route = {
    method: 'GET',
    path: '/endless',
    handle({ signal }) {
      leave.abort()
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(errors.notFound())))
    },
  }
  const { url } = await startServer([hello, failing, endless], { shares: SMALL_SHARES })
  for (let round = 0; round < 6; round++) {
    expect((await fetch(`${url}/failing`)).status).toBe(500)
    leave = new AbortController()
    await expect(fetch(`${url}/endless`, { signal: leave.signal })).rejects.toThrow()
    expect((await fetch(`${url}/hello`)).status).toBe(200)
  }
})

test('a body that arrives too slowly is ended; one that waits for us is not', async () => {
  const slowReader: Route = {
    method: 'POST',
    path: '/slowly-read',
    async handle(request) {
      let bytes = 0
      for await (const chunk of request.stream() as AsyncIterable<Buffer>) {
        bytes += chunk.byteLength
        await sleep(400)
      }
      return json(200, { bytes })
    },
  }
  const { url, port } = await startServer([jsonEcho, slowReader], { pace: { minBytesPerMs: 1, graceMs: 1000 } })
  const head = 'POST /api/v1/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n'
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(head)
  const drip = setInterval(() => socket.write('['), 100)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  clearInterval(drip)
  socket.destroy()
  expect(statusOf(answer.toString())).toBe(408)
  const body = Buffer.alloc(600_000, 'x')
  const read = await fetch(`${url}/slowly-read`, { method: 'POST', body })
  expect(await read.json()).toEqual({ bytes: body.byteLength })
})
