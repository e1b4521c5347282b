/**
 * The least that a Node server can do: files in a Map, no rules. The edge is measured beside it, so that what the rules
 * cost and what Node costs can be told apart.
 */
import { readdirSync, readFileSync } from 'node:fs'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import tls from 'node:tls'
import { TLS_OPTIONS } from '../../edge/accept/listen.ts'

const dir = process.argv[2]!
const files = new Map(
  readdirSync(path.join(dir, 'www'), { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isFile()) return []
    const { name } = entry
    const body = readFileSync(path.join(dir, 'www', name))
    const headers = [
      ...['content-type', 'text/html; charset=utf-8', 'etag', '"bare"', 'x-content-type-options', 'nosniff'],
      ...['strict-transport-security', 'max-age=31536000', 'content-length', String(body.length)],
    ]
    return [[`/${name}` as string, { body, headers }] as const]
  }),
)

const h2 = http2.createServer()
h2.on('sessionError', () => {})
h2.on('stream', (stream, headers) => {
  stream.on('error', () => {})
  const file = files.get(headers[':path'] ?? '')!
  ;(stream as http2.ServerHttp2Stream).respond([':status', '200', ...file.headers])
  stream.end(file.body)
})
const h1 = http.createServer((request, response) => {
  const file = files.get(request.url ?? '')!
  response.writeHead(200, file.headers)
  response.end(file.body)
})
const server = tls.createServer(
  {
    ...TLS_OPTIONS,
    ALPNProtocols: ['h2', 'http/1.1'],
    cert: readFileSync(path.join(dir, 'cert.pem')),
    key: readFileSync(path.join(dir, 'key.pem')),
  },
  (socket) => {
    socket.on('error', () => {})
    ;(socket.alpnProtocol === 'h2' ? h2 : h1).emit('connection', socket)
  },
)
server.on('tlsClientError', () => {})
server.listen(0, '127.0.0.1', () => process.send!({ port: (server.address() as AddressInfo).port }))
