/** A real ACME server (Pebble) with a DNS server that answers what a test tells it, on free loopback ports. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import https from 'node:https'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { openLocalCa } from '../../certs/local/local-ca.ts'
import { isRunning, until } from './processes.ts'
import { freePorts } from './stack.ts'

export interface PebbleOptions {
  /** Where Pebble looks for http-01 answers. */
  readonly challengePort: number
  /** Percentage of good nonces that it refuses. */
  readonly nonceReject?: number
  /** Whom it asks for names instead of the DNS server that a test tells what to answer. */
  readonly dnsServer?: string
}

export interface Pebble {
  /** For ACME_DIRECTORY_URL, ACME_CA_FILE and DNS_RESOLVER. */
  readonly directoryUrl: string
  readonly caFile: string
  readonly dnsResolver: string
  readonly dns: FakeDns
  /** PEM of the root that signs what it issues; a new one with each start. */
  rootPem(): Promise<string>
  /** Orders and accounts that it made, from its own log; a request with a refused nonce makes none. */
  orders(): Promise<number>
  accounts(): Promise<number>
  /** The CA goes away and comes back (without memory, as Pebble has none). */
  down(): Promise<void>
  up(): Promise<void>
  stop(): Promise<void>
}

export interface FakeDns {
  a(host: string, ...addresses: string[]): Promise<void>
  aaaa(host: string, ...addresses: string[]): Promise<void>
  cname(host: string, target: string): Promise<void>
  txt(host: string, value: string): Promise<void>
  caa(host: string, ...values: { tag: string; value: string }[]): Promise<void>
  servfail(host: string): Promise<void>
  /** Forgets everything that was said about a host. */
  clear(host: string): Promise<void>
}

export async function startPebble({
  challengePort,
  nonceReject = 5,
  dnsServer: otherDns,
}: PebbleOptions): Promise<Pebble> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-pebble-'))
  const [api, management, tls, dns, dnsManagement] = await freePorts(5)
  const ca = openLocalCa(folder, { now: () => Date.now() })
  const { cert, key } = ca.issue(['localhost', '127.0.0.1'])
  const files = {
    cert: path.join(folder, 'cert.pem'),
    key: path.join(folder, 'key.pem'),
    config: path.join(folder, 'pebble.json'),
  }
  await Promise.all([
    writeFile(files.cert, cert),
    writeFile(files.key, key),
    writeFile(
      files.config,
      JSON.stringify({
        pebble: {
          listenAddress: `127.0.0.1:${api}`,
          managementListenAddress: `127.0.0.1:${management}`,
          certificate: files.cert,
          privateKey: files.key,
          httpPort: challengePort,
          tlsPort: tls,
          ocspResponderURL: '',
          externalAccountBindingRequired: false,
        },
      }),
    ),
  ])
  const log = path.join(folder, 'pebble.log')
  const children = new Set<ChildProcess>()
  /** They write into the file themselves: what they have said stands there before they do the next thing. */
  const run = (command: string, args: string[], file: string, env: NodeJS.ProcessEnv = {}): ChildProcess => {
    const output = openSync(file, 'a')
    const child = spawn(command, args, { stdio: ['ignore', output, output], env: { ...process.env, ...env } })
    closeSync(output)
    // One that cannot be started at all is noticed when no one listens.
    child.on('error', () => {})
    children.add(child)
    return child
  }
  const stop = async (): Promise<void> => {
    await Promise.all([...children].map(end))
    await rm(folder, { recursive: true, force: true })
  }
  const startCa = async (): Promise<ChildProcess> => {
    const args = ['-config', files.config, '-dnsserver', otherDns ?? `127.0.0.1:${dns}`, '-strict']
    const child = run('pebble', args, log, {
      PEBBLE_VA_NOSLEEP: '1',
      PEBBLE_AUTHZREUSE: '0',
      PEBBLE_WFE_NONCEREJECT: String(nonceReject),
    })
    await Promise.all([listening(child, api!), listening(child, management!)])
    return child
  }
  let server: ChildProcess | undefined
  try {
    const dnsServer = run('pebble-challtestsrv', dnsArguments(dns!, dnsManagement!), path.join(folder, 'dns.log'))
    await listening(dnsServer, dnsManagement!)
    server = await startCa()
  } catch (error) {
    // No one gets a CA that they could stop.
    await stop()
    throw error
  }

  const countLines = async (text: string): Promise<number> =>
    (await readFile(log, 'utf8')).split('\n').filter((line) => line.includes(text)).length

  return {
    directoryUrl: `https://127.0.0.1:${api}/dir`,
    caFile: ca.rootFile,
    dnsResolver: `127.0.0.1:${dns}`,
    dns: fakeDns(dnsManagement!),
    rootPem: () => fetchRoot(management!, ca.rootPem),
    orders: () => countLines('Added order'),
    accounts: () => countLines('accounts in memory'),
    async down() {
      await end(server)
      server = undefined
    },
    async up() {
      server ??= await startCa()
    },
    stop,
  }
}

/** A DNS server that knows nothing by itself, and is told on another port. */
function dnsArguments(port: number, management: number): string[] {
  const off = ['-defaultIPv4', '-defaultIPv6', '-http01', '-https01', '-tlsalpn01'].flatMap((name) => [name, ''])
  return [...off, '-dns01', `127.0.0.1:${port}`, '-management', `127.0.0.1:${management}`]
}

function fakeDns(port: number): FakeDns {
  const tell = async (command: string, body: Record<string, unknown>): Promise<void> => {
    const reply = await fetch(`http://127.0.0.1:${port}/${command}`, { method: 'POST', body: JSON.stringify(body) })
    if (!reply.ok) throw new Error(`the DNS server refused ${command}: ${await reply.text()}`)
  }
  const fqdn = (host: string): string => `${host}.`
  return {
    a: (host, ...addresses) => tell('add-a', { host: fqdn(host), addresses }),
    aaaa: (host, ...addresses) => tell('add-aaaa', { host: fqdn(host), addresses }),
    cname: (host, target) => tell('set-cname', { host: fqdn(host), target: fqdn(target) }),
    txt: (host, value) => tell('set-txt', { host: fqdn(host), value }),
    caa: (host, ...policies) => tell('add-caa', { host: fqdn(host), policies }),
    servfail: (host) => tell('set-servfail', { host: fqdn(host) }),
    async clear(host) {
      for (const command of ['clear-a', 'clear-aaaa', 'clear-cname', 'clear-txt', 'clear-caa', 'clear-servfail'])
        await tell(command, { host: fqdn(host) })
    },
  }
}

async function fetchRoot(port: number, ca: string): Promise<string> {
  const [response] = await once(https.get({ host: '127.0.0.1', port, path: '/roots/0', ca, agent: false }), 'response')
  return Buffer.concat(
    await (response as AsyncIterable<Buffer> & { toArray(): Promise<Buffer[]> }).toArray(),
  ).toString()
}

async function listening(child: ChildProcess, port: number): Promise<void> {
  await until(async () => {
    if (child.pid === undefined || !isRunning(child.pid))
      throw new Error(`${child.spawnfile} ended before it listened on port ${port}`)
    const socket = net.connect(port, '127.0.0.1')
    const isUp = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return isUp
  }, `${child.spawnfile} to listen on port ${port}`)
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
