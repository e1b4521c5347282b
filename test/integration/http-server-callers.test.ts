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

test('when the caller leaves, the handler hears of it and nothing is logged', async () => {
  const logged: unknown[] = []
  const outcomes: string[] = []
  const { promise: done, resolve } = Promise.withResolvers<void>()
  const note = (what: string) => {
    outcomes.push(what)
    if (outcomes.length === 3) resolve()
  }
  const { port } = await startServer(
    [
      {
        method: 'GET',
        path: '/wait',
        handle: (request) =>
          new Promise((_resolve, reject) =>
            request.signal.addEventListener('abort', () => (note('signal'), reject(request.signal.reason))),
          ),
      },
      {
        method: 'POST',
        path: '/json',
        handle: (request) =>
          request.json().then(
            () => noContent(),
            (error: unknown) => (note('json'), Promise.reject(error)),
          ),
      },
      {
        method: 'POST',
        path: '/form',
        handle: (request) =>
          request
            .multipart(async (part) => {
              if (part.kind === 'file') for await (const _ of part.stream) void _
            })
            .then(
              () => noContent(),
              (error: unknown) => (note('form'), Promise.reject(error)),
            ),
      },
    ],
    { log: { error: (...args: unknown[]) => logged.push(args) } as unknown as Log },
  )
  const texts = [
    'GET /wait HTTP/1.1\r\nhost: x\r\n\r\n',
    'POST /json HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"a":',
    'POST /form HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: 1000\r\n\r\n--b\r\ncontent-disposition: form-data; name="f"; filename="x"\r\n\r\nhalf',
  ]
  for (const text of texts) {
    const socket = net.connect(port, '127.0.0.1', () =>
      socket.write(text, () => setTimeout(() => socket.destroy(), 50)),
    )
  }
  await done
  await sleep(50)
  expect(outcomes.toSorted()).toEqual(['form', 'json', 'signal'])
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

test('closing lets requests finish, refuses new ones, and cuts what outlasts the grace', async () => {
  const { url, server } = await startServer([
    { method: 'GET', path: '/slow', handle: () => sleep(150).then(() => json(200, 'done')) },
    { method: 'GET', path: '/never', handle: () => new Promise(() => {}) },
  ])
  const slow = fetch(`${url}/slow`)
  const never = fetch(`${url}/never`).then(
    () => 'answered',
    () => 'cut',
  )
  await sleep(50)
  const closed = server.close(600)
  expect(await (await slow).json()).toBe('done')
  await closed
  expect(await never).toBe('cut')
  await expect(fetch(`${url}/slow`)).rejects.toThrow()
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
  const closed = server.close(0, 3000)
  expect(await told('/readyz')).toEqual([503, { status: 'closing' }])
  expect(await told('/hello')).toEqual([200, { hello: true }])
  await closed
})

const SMALL_SHARES = { places: 6, placesPerCaller: 2, waiting: 20, waitingPerCaller: 4, waitMs: 500 }

test('one network holds only its part of the requests under way, and no one waits in silence', async () => {
  const release = Promise.withResolvers<void>()
  const slow: Route = { method: 'GET', path: '/slow', handle: () => release.promise.then(() => json(200, {})) }
  const { url } = await startServer([slow, hello], { shares: SMALL_SHARES })
  const from = (ip: string, path: string): Promise<Response> =>
    fetch(url + path, { headers: { 'x-forwarded-for': ip } })
  const held = [from('203.0.113.1', '/slow'), from('203.0.113.1', '/slow')]
  await sleep(100)
  const extra = await Promise.all(Array.from({ length: 8 }, () => from('203.0.113.1', '/hello')))
  const told = extra.map((answer) => `${answer.status} ${answer.headers.has('retry-after')}`).toSorted()
  expect(told).toEqual([...Array<string>(4).fill('429 true'), ...Array<string>(4).fill('503 true')])
  // Others notice nothing, neighbours of one IPv6 subscriber are one caller.
  expect((await from('203.0.113.2', '/hello')).status).toBe(200)
  expect((await from('2001:db8::1', '/hello')).status).toBe(200)
  release.resolve()
  expect((await Promise.all(held)).map((answer) => answer.status)).toEqual([200, 200])
  expect((await from('203.0.113.1', '/hello')).status).toBe(200)
})

test('a place is given back by answers, errors and callers who leave', async () => {
  const failing: Route = { method: 'GET', path: '/failing', handle: () => Promise.reject(new Error('failed')) }
  const endless: Route = { method: 'GET', path: '/endless', handle: (request) => waitFor(request.signal) }
  const waitFor = (signal: AbortSignal): Promise<never> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(errors.notFound())))
  const { url } = await startServer([hello, failing, endless], { shares: SMALL_SHARES })
  for (let round = 0; round < 6; round++) {
    expect((await fetch(`${url}/failing`)).status).toBe(500)
    await fetch(`${url}/endless`, { signal: AbortSignal.timeout(50) }).catch(() => {})
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
