/** A real primary name server (BIND) with one zone that takes signed updates of TXT records, on a free loopback port. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Resolver } from 'node:dns/promises'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { until } from './processes.ts'
import { findProgram } from './programs.ts'
import { freePorts } from './stack.ts'

export interface NameServer {
  /** For DNS01_SERVER and DNS_RESOLVER, and for Pebble. */
  readonly address: string
  readonly keyName: string
  readonly secret: string
  /** Values of the TXT records at a name. */
  txt(name: string): Promise<string[]>
  /** A program that changes records as a hook of DNS01_COMMAND: `present|cleanup <name>. <value>`. */
  readonly hook: string
  /** Does what the zone's owner does: `add <name> <ttl> <type> <value>`, `delete <name> …`, with whole names. */
  change(...lines: readonly string[]): Promise<void>
  /** Adds a TXT record as an acme-dns server does. */
  addTxt(name: string, value: string): Promise<void>
  stop(): Promise<void>
}

const KEY_NAME = 'dropway-acme'
/** The service may write proofs; whoever owns the zone may write anything. */
const OWNER_KEY_NAME = 'owner'
const SECRET = Buffer.from('a secret of the tests, 32 bytes!').toString('base64')

/** `records` are lines of the zone file. */
export async function startNameServer(zone: string, records: readonly string[]): Promise<NameServer> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-named-'))
  const [port] = (await freePorts(1)) as [number]
  const file = (name: string): string => path.join(folder, name)
  const keyOf = (name: string): string => `key "${name}" { algorithm hmac-sha256; secret "${SECRET}"; };\n`
  const key = keyOf(KEY_NAME)
  await Promise.all([
    writeFile(file('key.conf'), key),
    writeFile(file('owner.conf'), keyOf(OWNER_KEY_NAME)),
    writeFile(file('named.conf'), key + keyOf(OWNER_KEY_NAME) + configuration({ folder, port, zone })),
    writeFile(
      file('zone.db'),
      `$TTL 60\n@ SOA ns.${zone}. hostmaster.${zone}. 1 3600 600 86400 1\n@ NS ns.${zone}.\nns A 127.0.0.1\n${records.join('\n')}\n`,
    ),
    writeFile(file('hook.sh'), hook({ port, keyFile: file('key.conf') }), { mode: 0o755 }),
  ])
  const named = spawn(programOf('named'), ['-g', '-n', '1', '-c', file('named.conf')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let output = ''
  named.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const resolver = new Resolver({ timeout: 5000, tries: 6 })
  resolver.setServers([`127.0.0.1:${port}`])
  const answers = () => resolver.resolveSoa(zone).then(Boolean, () => false)
  await until(answers, 'named to answer').catch((error: unknown) => {
    throw new Error(`named said: ${output}`, { cause: error })
  })
  return {
    address: `127.0.0.1:${port}`,
    keyName: KEY_NAME,
    secret: SECRET,
    hook: file('hook.sh'),
    txt: async (name) => (await resolver.resolveTxt(name).catch(noneOrThrow)).map((parts) => parts.join('')),
    async change(...lines) {
      const text = [`server 127.0.0.1 ${port}`, ...lines.map((line) => `update ${line}`), 'send', ''].join('\n')
      const changing = promisify(execFile)(programOf('nsupdate'), ['-v', '-k', file('owner.conf')])
      changing.child.stdin?.end(text)
      await changing
    },
    addTxt: async (name, value) => void (await promisify(execFile)(file('hook.sh'), ['present', `${name}.`, value])),
    async stop() {
      const exited = once(named, 'exit')
      named.kill('SIGKILL')
      await exited
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function configuration({ folder, port, zone }: { folder: string; port: number; zone: string }): string {
  return `options {
  directory "${folder}"; pid-file none; session-keyfile "${folder}/session.key"; managed-keys-directory "${folder}";
  listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; dnssec-validation no;
};
controls {};
zone "${zone}" { type master; file "${folder}/zone.db"; update-policy { grant ${KEY_NAME} zonesub TXT; grant ${OWNER_KEY_NAME} zonesub ANY; }; };
`
}

/** Debian's own program for updates; the name and the value come as two words. */
function hook({ port, keyFile }: { port: number; keyFile: string }): string {
  return `#!/bin/sh
[ -z "$DATABASE_URL$SECRET_KEY" ] || { echo 'the hook sees secrets' >&2; exit 7; }
case $1 in present) verb=add;; cleanup) verb=delete;; *) echo "what is $1" >&2; exit 2;; esac
printf 'server 127.0.0.1 ${port}\\nupdate %s %s 60 TXT "%s"\\nsend\\n' "$verb" "$2" "$3" | '${programOf('nsupdate')}' -v -k '${keyFile}'
`
}

function programOf(name: string): string {
  const found = name === 'named' ? findProgram('named') : findProgram('nsupdate')
  if (found === undefined) throw new Error(`${name} is not installed`)
  return found
}

/** A name without such records has none; a server that was not heard says nothing about them. */
function noneOrThrow(error: NodeJS.ErrnoException): [] {
  if (error.code === 'ENODATA' || error.code === 'ENOTFOUND') return []
  throw error
}
