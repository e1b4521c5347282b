/**
 * CPU time and memory of full TLS handshakes: one certificate, then 10,000 loaded, then 10,000 unknown names; and Caddy
 * with as many certificates, where it is installed. The server runs in a process of its own; each handshake is new
 * (no tickets), as a crowd of first-time visitors makes it; one row with the hybrid key of today's browsers. Says at the end whether a handshake
 * holds its bar beside Caddy's.
 */
import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import tls from 'node:tls'
import { openLocalCa, type LocalCa } from '../../certs/local/local-ca.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { cpuMs, residentMb } from '../../test/support/processes.ts'
import { findPeer } from '../peers.ts'
import type { BenchValues } from '../benches.ts'
import { createProgress } from '../progress.ts'
import type { Results } from '../results.ts'
import { nameOf } from './handshake-server.ts'

const SERVER = path.join(import.meta.dirname, 'handshake-server.ts')
const MANY = 10_000
const CLIENTS = 32
/** CPU time per handshake as a multiple of Caddy's, each with as many certificates; the same bar as in bench/edge/rows.ts. */
const MAX_TIMES_CADDY = 1.15

/** Peers of some age know the first alone, so it is compared; today's browsers bring the second as well. */
type Group = 'X25519' | 'X25519MLKEM768'

interface Result {
  readonly run: string
  readonly perSecond: number
  readonly microseconds: number
  readonly megabytes: number
}

const eachInTurn = (server: 'dropway' | 'caddy', count: number): string => `${server}, ${count} loaded, each in turn`

export async function run({ seconds }: BenchValues<'handshake'>, kept: Results): Promise<void> {
  const progress = createProgress()
  const measure = (name: string, ...rest: MeasureRest): Promise<Result> => {
    progress.show(name)
    return measureOne(name, ...rest)
  }
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-bench-handshake-'))
  const ca = openLocalCa(folder, systemClock)
  const results: Result[] = []
  try {
    for (const count of [1, MANY]) {
      const child = fork(SERVER, [folder, String(count)])
      const [{ port }] = (await once(child, 'message')) as [{ port: number }]
      results.push(await measure(eachInTurn('dropway', count), child, port, seconds, (n) => nameOf(n % count)))
      if (count === 1)
        results.push(
          await measure('dropway, 1 loaded, hybrid key', child, port, seconds, () => nameOf(0), 'X25519MLKEM768'),
        )
      if (count > 1) {
        const popular = (n: number): string => nameOf(Math.floor(count * ((n * 0.618) % 1) ** 6))
        results.push(await measure(`dropway, ${count} loaded, some popular`, child, port, seconds, popular))
      }
      results.push(
        await measure(`dropway, ${count} loaded, unknown names`, child, port, seconds, (n) => `unknown-${n}.test`),
      )
      child.kill()
      await once(child, 'exit')
    }
    if (findPeer('caddy') !== undefined)
      for (const count of [1, MANY]) {
        progress.show(`Caddy with ${count} certificates`)
        results.push(await measureCaddy(folder, ca, count, seconds))
      }
    progress.clear()
    console.table(
      results.map(({ run, perSecond, microseconds, megabytes }) => ({
        run,
        'CPU µs': Math.round(microseconds),
        'handshakes/s': Math.round(perSecond),
        'RSS MB': Math.round(megabytes),
      })),
    )
    judge(results, kept)
    kept.keep({ seconds, results })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function judge(results: readonly Result[], kept: Results): void {
  for (const count of [1, MANY]) {
    const [ours, theirs] = (['dropway', 'caddy'] as const).map(
      (server) => results.find(({ run }) => run === eachInTurn(server, count))?.microseconds,
    )
    if (ours === undefined || theirs === undefined) {
      console.log(`certificates ${count}: not judged, Caddy is not installed (bar ${MAX_TIMES_CADDY} × Caddy)`)
      continue
    }
    const row = `a handshake with ${count === 1 ? 'one certificate' : `${count} certificates`} beside Caddy`
    kept.judge({ row, figure: ours / theirs, unit: '×', bar: MAX_TIMES_CADDY })
  }
}

type MeasureRest = Parameters<typeof measureOne> extends [string, ...infer Rest] ? Rest : never

async function measureOne(
  run: string,
  child: ChildProcess,
  port: number,
  seconds: number,
  name: (n: number) => string,
  group: Group = 'X25519',
): Promise<Result> {
  let next = 0
  let done = 0
  const before = cpuMs(child.pid!)
  const endAt = performance.now() + seconds * 1000
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (performance.now() < endAt) {
        await handshake(port, name(next++), group)
        done += 1
      }
    }),
  )
  const microseconds = ((cpuMs(child.pid!) - before) * 1000) / done
  return { run, perSecond: done / seconds, microseconds, megabytes: residentMb(child.pid!) }
}

function handshake(port: number, servername: string, ecdhCurve: Group): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = tls.connect({ port, host: '127.0.0.1', servername, ecdhCurve, rejectUnauthorized: false })
    socket.once('secureConnect', () => {
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
  })
}

/** Caddy loads every certificate of a folder; it answers unknown names with none, so only known ones are compared. */
async function measureCaddy(folder: string, ca: LocalCa, count: number, seconds: number): Promise<Result> {
  const certificates = path.join(folder, `caddy-${count}`)
  mkdirSync(certificates)
  for (let n = 0; n < count; n++) {
    const { cert, key } = ca.issue([nameOf(n)])
    writeFileSync(path.join(certificates, `${n}.pem`), cert + key)
  }
  const port = await freePort()
  const config = {
    admin: { disabled: true },
    logging: { logs: { default: { level: 'ERROR' } } },
    apps: {
      tls: { certificates: { load_folders: [certificates] }, cache: { capacity: MANY * 2 } },
      http: {
        servers: {
          bench: {
            listen: [`127.0.0.1:${port}`],
            automatic_https: { disable: true },
            tls_connection_policies: [{}],
            routes: [{ handle: [{ handler: 'static_response', body: 'ok' }] }],
          },
        },
      },
    },
  }
  const file = path.join(folder, 'caddy.json')
  writeFileSync(file, JSON.stringify(config))
  const child = spawn(findPeer('caddy') ?? 'caddy', ['run', '--config', file], {
    stdio: 'ignore',
    env: { ...process.env, HOME: folder },
  })
  try {
    await untilServed(port, nameOf(0))
    return await measureOne(eachInTurn('caddy', count), child, port, seconds, (n) => nameOf(n % count))
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
}

async function untilServed(port: number, servername: string): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt++) {
    const isUp = await handshake(port, servername, 'X25519').then(
      () => true,
      () => false,
    )
    if (isUp) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('Caddy did not start')
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
