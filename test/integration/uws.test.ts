/** The contract that hyper-express relies on, over real sockets. */
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { Readable } from 'node:stream'
import { Server } from 'hyper-express'
import { afterEach, expect, test } from 'vitest'
import { exchange, exchangeUntil, statusOf } from '../support/raw-http.ts'

const servers: Server[] = []

async function start(define: (server: Server) => void): Promise<{ port: number; url: string }> {
  const server = new Server({ auto_close: false, max_body_length: Number.MAX_SAFE_INTEGER })
  define(server)
  await server.listen(0, '127.0.0.1')
  servers.push(server)
  return { port: server.port, url: `http://127.0.0.1:${server.port}` }
}

afterEach(() => {
  for (const server of servers.splice(0)) server.force_close()
})

test('a literal segment wins over a parameter, a parameter over a wildcard, a method over any', async () => {
  const { url } = await start((server) => {
    for (const pattern of [
      '/*',
      '/sites/*',
      '/sites/:id',
      '/sites/export',
      '/sites/:id/versions',
      '/sites/export/last',
    ]) {
      server.get(pattern, (_request, response) => response.send(pattern))
    }
    server.any('/sites/:id', (_request, response) => response.send('any'))
  })
  const table: [string, string][] = [
    ['/', '/*'],
    ['/sites', '/*'],
    ['/sites/', '/sites/*'],
    ['/sites/export', '/sites/export'],
    ['/sites/one', '/sites/:id'],
    ['/sites/export/versions', '/sites/:id/versions'],
    ['/sites/export/last', '/sites/export/last'],
    ['/sites/one/two', '/sites/*'],
    ['/sites/one/', '/sites/*'],
    ['/sites/__proto__', '/sites/:id'],
    ['/elsewhere/a/b', '/*'],
  ]
  for (const [path, pattern] of table) expect(await (await fetch(url + path)).text(), path).toBe(pattern)
  expect(await (await fetch(`${url}/sites/one`, { method: 'PUT' })).text()).toBe('any')
})

test('parameters, query and headers arrive as sent; an absolute-form target is its path', async () => {
  const { url, port } = await start((server) => {
    server.get('/a/:one/b/:two', (request, response) => {
      response.json({
        ...request.path_parameters,
        query: request.path_query,
        header: request.headers['x-test'],
        ip: request.ip,
      })
    })
  })
  const answer = await fetch(`${url}/a/x%20y/b/z?q=1&q=2`, { headers: { 'x-test': 'yes' } })
  expect(await answer.json()).toEqual({ one: 'x%20y', two: 'z', query: 'q=1&q=2', header: 'yes', ip: '127.0.0.1' })
  const absolute = await exchange(
    port,
    'GET http://elsewhere.example/a/1/b/2?c HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n',
  )
  expect(statusOf(absolute)).toBe(200)
  expect(absolute).toContain('"query":"c"')
})

test('HEAD carries the length and no body, 204 neither', async () => {
  const { port } = await start((server) => {
    server.head('/page', (_request, response) => response.send('twelve bytes'))
    server.get('/empty', (_request, response) => response.status(204).send())
  })
  const head = await exchange(port, 'HEAD /page HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  expect(head).toMatch(/content-length: 12\r\n/i)
  expect(head.endsWith('\r\n\r\n')).toBe(true)
  const empty = await exchange(port, 'GET /empty HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  expect(empty).not.toMatch(/content-length/i)
})

test('one connection serves request after request, pipelined too', async () => {
  const { port } = await start((server) => {
    server.get('/:number', async (request, response) => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      response.send(`[${request.path_parameters['number']}]`)
    })
  })
  const one = (n: number) => `GET /${n} HTTP/1.1\r\nhost: x\r\n\r\n`
  const answer = await exchangeUntil(port, one(1) + one(2) + one(3), (heard) => heard.includes('[3]'))
  expect(answer.match(/HTTP\/1\.1 200/g)).toHaveLength(3)
  expect(answer.match(/\[\d\]/g)).toEqual(['[1]', '[2]', '[3]'])
})

test('a paused body stops the sender, and nothing is lost when it goes on', async () => {
  let held = 0
  const { promise: stalled, resolve: releaseReader } = Promise.withResolvers<void>()
  const { port } = await start((server) => {
    server.post('/slow', async (request, response) => {
      request.on('data', (chunk: Buffer) => {
        if (held === 0) {
          request.pause()
          void stalled.then(() => request.resume())
        }
        held += chunk.byteLength
      })
      request.on('end', () => response.send(String(held)))
    })
  })
  const total = 64_000_000
  const socket = net.connect(port, '127.0.0.1')
  socket.write(`POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: ${total}\r\n\r\n`)
  const block = Buffer.alloc(1_000_000)
  let sent = 0
  let flowing = true
  for (; sent < total && flowing; sent += block.byteLength) {
    flowing =
      socket.write(block) || (await Promise.race([once(socket, 'drain').then(() => true), wait(400).then(() => false)]))
  }
  expect(sent, 'the sender was held up').toBeLessThan(total)
  expect(held).toBeLessThan(1_000_000)
  releaseReader()
  const answer = once(socket, 'data')
  for (; sent < total; sent += block.byteLength) if (!socket.write(block)) await once(socket, 'drain')
  expect(String((await answer)[0])).toContain(String(total))
  socket.destroy()
})

test('a chunked body ends with its last chunk', async () => {
  const { url } = await start((server) => {
    server.post('/echo', async (request, response) => response.send(await request.text()))
  })
  const body = Readable.toWeb(Readable.from(['one ', 'two ', 'three'])) as ReadableStream
  const answer = await fetch(`${url}/echo`, { method: 'POST', body, duplex: 'half' } as RequestInit)
  expect(await answer.text()).toBe('one two three')
  expect(await (await fetch(`${url}/echo`, { method: 'POST', body: '' })).text()).toBe('')
})

test('a caller that leaves aborts the request, before and within the body', async () => {
  const aborted: string[] = []
  const begun: string[] = []
  const { port } = await start((server) => {
    server.get('/wait', (_request, response) => {
      begun.push('waiting')
      response.once('abort', () => aborted.push('waiting'))
    })
    server.post('/body', (request, response) => {
      request.on('error', () => {})
      request.on('data', () => begun.push('sending'))
      response.once('abort', () => aborted.push('sending'))
    })
  })
  const sockets = [
    'GET /wait HTTP/1.1\r\nhost: x\r\n\r\n',
    'POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf',
  ].map((text) => {
    const socket = net.connect(port, '127.0.0.1')
    socket.write(text)
    return socket
  })
  await expect.poll(() => begun.toSorted()).toEqual(['sending', 'waiting'])
  for (const socket of sockets) socket.destroy()
  await expect.poll(() => aborted.toSorted()).toEqual(['sending', 'waiting'])
})

test('a streamed reply waits for a slow reader and stops when the reader leaves', async () => {
  let produced = 0
  let destroyed: () => void = () => {}
  const gone = new Promise<void>((resolve) => (destroyed = resolve))
  const { url } = await start((server) => {
    server.get('/endless', (_request, response) => {
      const source = new Readable({
        read() {
          produced += 65_536
          this.push(Buffer.alloc(65_536))
        },
        destroy(error, done) {
          destroyed()
          done(error)
        },
      })
      void response.stream(source)
    })
  })
  const request = http.get(`${url}/endless`)
  const [reply] = (await once(request, 'response')) as [http.IncomingMessage]
  reply.pause()
  let before = -1
  while (before !== produced) {
    before = produced
    await wait(100)
  }
  expect(produced, 'the source is held back').toBeLessThan(50_000_000)
  request.on('error', () => {})
  reply.on('error', () => {})
  request.destroy()
  await gone
})

test('server-sent events arrive one by one while the reply stays open', async () => {
  const { url } = await start((server) => {
    server.get('/events', (_request, response) => {
      response.sse!.open()
      response.sse!.send('first')
      setTimeout(() => response.sse!.send('second'), 20)
    })
  })
  const answer = await fetch(`${url}/events`)
  expect(answer.headers.get('content-type')).toContain('text/event-stream')
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.includes('second')) text += (await reader.read()).value
  expect(text).toContain('data: first')
  await reader.cancel()
})

test.each([
  ['no HTTP at all', 'hello\r\n\r\n', 400],
  ['a bad header', 'GET / HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n', 400],
  ['two lengths', 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab', 400],
  [
    'length and chunks',
    'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
  ],
  ['a bad chunk', 'POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n', 400],
  ['no host', 'GET / HTTP/1.1\r\n\r\n', 400],
  ['a huge header', `GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(70_000)}\r\n\r\n`, 431],
])('malformed: %s is refused and the server goes on', async (_name, text, status) => {
  const { url, port } = await start((server) => {
    server.any('/', async (request, response) => {
      request.on('error', () => {})
      request.on('end', () => response.send('ok'))
      request.resume()
      request.on('data', () => {})
    })
    server.get('/fine', (_request, response) => response.send('fine'))
  })
  expect(statusOf(await exchange(port, text))).toBe(status)
  expect(await (await fetch(`${url}/fine`)).text()).toBe('fine')
})

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
