/**
 * What the uWebSockets.js interface over node:http costs: requests per second of a small JSON reply through
 * hyper-express, against bare node:http, in the same run. The bar is 0.7.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import autocannon from 'autocannon'
import { Server } from 'hyper-express'

const REPLY = { id: 'st_0123456789', slug: 'example', name: '', access_mode: 'public', has_password: false }
const SECONDS = Number(process.argv[2] ?? 3)
const ROUNDS = 3

function serveBare(): Promise<number> {
  const server = http.createServer((_request, response) => {
    const body = JSON.stringify(REPLY)
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    response.end(body)
  })
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
  })
}

async function serveHyperExpress(): Promise<number> {
  const server = new Server({ auto_close: false })
  server.get('/api/v1/sites/:id', (_request, response) => response.json(REPLY))
  await server.listen(0, '127.0.0.1')
  return server.port
}

async function measure(kind: string): Promise<number> {
  const child = fork(import.meta.filename, ['--serve', kind])
  const [port] = (await once(child, 'message')) as [number]
  const url = `http://127.0.0.1:${port}/api/v1/sites/st_0123456789`
  await autocannon({ url, connections: 32, duration: 1 })
  const result = await autocannon({ url, connections: 32, duration: SECONDS })
  child.kill()
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${kind}: ${result.non2xx} bad replies, ${result.errors} errors`)
  return result.requests.average
}

function best(figures: readonly number[]): number {
  return Math.max(...figures)
}

if (process.argv[2] === '--serve') {
  process.send!(await (process.argv[3] === 'bare' ? serveBare() : serveHyperExpress()))
} else {
  const bare: number[] = []
  const hyper: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    bare.push(await measure('bare'))
    hyper.push(await measure('hyper-express'))
  }
  console.log(`bare node:http   ${best(bare).toFixed(0)} requests/s  (${bare.map((n) => n.toFixed(0)).join(', ')})`)
  console.log(`hyper-express    ${best(hyper).toFixed(0)} requests/s  (${hyper.map((n) => n.toFixed(0)).join(', ')})`)
  console.log(`share            ${(best(hyper) / best(bare)).toFixed(2)}`)
}
