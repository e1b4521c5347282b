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

interface Figures {
  readonly perSecond: number
  /** Of the server alone; tells the truth also on a machine that is busy with other things. */
  readonly cpuMicrosPerRequest: number
}

async function measure(kind: string): Promise<Figures> {
  const child = fork(import.meta.filename, ['--serve', kind])
  const [port] = (await once(child, 'message')) as [number]
  const url = `http://127.0.0.1:${port}/api/v1/sites/st_0123456789`
  const load = (duration: number) => autocannon({ url, connections: 32, duration })
  const cpuMicros = async (): Promise<number> => {
    child.send('cpu')
    return ((await once(child, 'message')) as [number])[0]
  }
  await load(1)
  const before = await cpuMicros()
  const result = await load(SECONDS)
  const spent = (await cpuMicros()) - before
  child.kill()
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${kind}: ${result.non2xx} bad replies, ${result.errors} errors`)
  return { perSecond: result.requests.average, cpuMicrosPerRequest: spent / result.requests.total }
}

function report(name: string, figures: readonly Figures[]): { perSecond: number; cpu: number } {
  const perSecond = Math.max(...figures.map((one) => one.perSecond))
  const cpu = Math.min(...figures.map((one) => one.cpuMicrosPerRequest))
  console.log(`${name.padEnd(16)} ${perSecond.toFixed(0).padStart(6)} requests/s  ${cpu.toFixed(1)} µs CPU per request`)
  return { perSecond, cpu }
}

if (process.argv[2] === '--serve') {
  const port = await (process.argv[3] === 'bare' ? serveBare() : serveHyperExpress())
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send!(user + system)
  })
  process.send!(port)
} else {
  const bare: Figures[] = []
  const hyper: Figures[] = []
  for (let round = 0; round < ROUNDS; round++) {
    bare.push(await measure('bare'))
    hyper.push(await measure('hyper-express'))
  }
  const [reference, ours] = [report('bare node:http', bare), report('hyper-express', hyper)]
  console.log(
    `share            ${(ours.perSecond / reference.perSecond).toFixed(2)} by requests/s, ${(reference.cpu / ours.cpu).toFixed(2)} by CPU`,
  )
}
