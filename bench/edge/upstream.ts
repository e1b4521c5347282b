/** What the proxied row finds behind the proxies: a control that answers at once. */
import http from 'node:http'
import type { AddressInfo } from 'node:net'

const body = Buffer.from(JSON.stringify({ sites: Array.from({ length: 10 }, (_, id) => ({ id, slug: `site-${id}` })) }))
const server = http.createServer({ keepAliveTimeout: 600_000 }, (_request, response) => {
  response.writeHead(200, ['content-type', 'application/json', 'content-length', String(body.length)])
  response.end(body)
})
server.listen(0, '127.0.0.1', () => process.send!({ port: (server.address() as AddressInfo).port }))
