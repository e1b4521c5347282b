/** What a connection hears when something broken follows requests that are not answered yet. */
import { once } from 'node:events'
import http, { type ServerResponse } from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { refuseInTurn } from '../../../edge/accept/http1/refuse.ts'

let server: http.Server
/** Answers that wait for the test, by path. */
let open: Map<string, ServerResponse>
let arrived: () => void

beforeAll(async () => {
  server = http.createServer((request, response) => {
    open.set(request.url ?? '', response)
    arrived()
    // What stands for a visitor who sends a body in too many pieces.
    if (request.url === '/divided') request.on('data', () => refuseInTurn(request.socket, '400 Bad Request'))
  })
  server.on('clientError', (_, socket) => refuseInTurn(socket, '400 Bad Request'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => void server.close())
beforeEach(() => {
  open = new Map()
})

/** Sends it all at once; `answer` is called when so many requests have arrived. Everything that came back. */
async function talk(text: string, requests: number, answer: (socket: net.Socket) => Promise<void>): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<void>()
  arrived = () => void (open.size === requests && resolve())
  const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
  let heard = ''
  socket.on('data', (chunk) => (heard += chunk.toString()))
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  socket.write(text)
  await promise
  // The broken part has been read as well.
  await new Promise((turn) => setImmediate(turn))
  await answer(socket)
  await closed
  return heard
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`
const REFUSED = /HTTP\/1\.1 400 Bad Request\r\n.*\r\n\r\n$/s

async function sayWhole(path: string): Promise<void> {
  const response = open.get(path)
  response?.end(`whole ${path}`)
  if (response) await once(response, 'finish')
}

test('a broken request leaves the answers to those before it, and is refused after them', async () => {
  const heard = await talk(`${get('/one')}${get('/two')}BROKEN\r\n\r\n`, 2, async () => {
    await sayWhole('/one')
    await sayWhole('/two')
  })
  expect(heard).toMatch(/^HTTP\/1\.1 200 .*whole \/one.*HTTP\/1\.1 200 .*whole \/two/s)
  expect(heard).toMatch(REFUSED)
})

test('an answer whose head is out goes on to its end', async () => {
  const heard = await talk(`${get('/one')}BROKEN\r\n\r\n`, 1, async () => {
    const response = open.get('/one')
    response?.writeHead(200, { 'content-length': '10' })
    response?.write('first')
    await new Promise((turn) => setImmediate(turn))
    response?.end('-last')
  })
  expect(heard).toMatch(/first-lastHTTP\/1\.1 400 /)
})

test.each([
  ['a broken body', '/posted', 'transfer-encoding: chunked\r\n\r\nzz\r\n'],
  ['a body in too many pieces', '/divided', 'content-length: 5\r\n\r\nx'],
])('%s behind a request is refused after its answer', async (_, path, rest) => {
  const heard = await talk(`${get('/one')}POST ${path} HTTP/1.1\r\nhost: a\r\n${rest}`, 2, () => sayWhole('/one'))
  expect(heard).toMatch(/^HTTP\/1\.1 200 .*whole \/one.*HTTP\/1\.1 400 /s)
})

test('a body that breaks once its answer has begun ends the connection without another word', async () => {
  const heard = await talk('POST /posted HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nx', 1, async (socket) => {
    const response = open.get('/posted')
    response?.writeHead(200, { 'content-length': '10' })
    response?.write('first')
    await once(socket, 'data')
    if (response?.socket) refuseInTurn(response.socket, '400 Bad Request')
  })
  expect(heard).toMatch(/first$/)
})
