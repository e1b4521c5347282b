/** dns-01: settings, signed updates, and the order in which records appear. Answers are those of BIND 9.18. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createAcmeDns } from '../../../certs/dns/acme-dns.ts'
import { createCommandHook } from '../../../certs/dns/command.ts'
import { composeDns01 } from '../../../certs/dns/dns01.ts'
import type { ProofRecord } from '../../../certs/dns/record-keeper.ts'
import { createRfc2136 } from '../../../certs/dns/rfc2136.ts'
import { parseServer, readDns01 } from '../../../certs/dns/settings.ts'
import { readAnswer, signedUpdate } from '../../../certs/dns/tsig.ts'
import { createDnsProver } from '../../../certs/orders/provers.ts'
import { readEdgeConfig } from '../../../edge/config.ts'
import { certifiedNames, ownCertificates } from '../../../shared/certificates/own-names.ts'
import { EnvReader, type Env } from '../../../shared/settings/env.ts'

const KEY = {
  name: 'dropway-acme',
  algorithm: 'hmac-sha256',
  secret: Buffer.from('a secret of the tests, 32 bytes!'),
} as const
const NOW_MS = 1_794_924_049_000
const ID = 4711
const VALUE = 'v'.repeat(43)
const update = signedUpdate(
  ID,
  'example.test',
  { kind: 'add', name: '_acme-challenge.sites.example.test', value: VALUE },
  KEY,
  NOW_MS,
)
const ZONE = '076578616d706c6504746573740000060001'
const SIGNED_BY = '0c64726f707761792d61636d650000fa00ff00000000'
const ALGORITHM = '0b686d61632d73686132353600'
const TAKEN = `1267a8000001000000000001${ZONE}${SIGNED_BY}003d${ALGORITHM}00006afc5e11012c0020e08a97c728917a85e5af7b657b6c115006eb2130d582c9492ec34b2e9336f744126700000000`

const read = (hex: string, nowMs = NOW_MS): string | undefined =>
  readAnswer(Buffer.from(hex, 'hex'), { id: ID, mac: update.mac, key: KEY, nowMs })

test('an update that BIND took is taken', () => {
  expect(update.message.readUInt16BE(2) >> 11).toBe(5)
  expect(read(TAKEN)).toBeUndefined()
})

test.each([
  [
    'BADSIG',
    `1267a8090001000000000001${ZONE}${SIGNED_BY}001d${ALGORITHM}00006afc5e11012c0000126700100000`,
    /DNS01_TSIG_SECRET/,
  ],
  [
    'BADKEY',
    `1267a8090001000000000001${ZONE}056f746865720000fa00ff00000000001d${ALGORITHM}00006afc5e11012c0000126700110000`,
    /DNS01_TSIG_KEY/,
  ],
  [
    'BADTIME',
    `1267a8090001000000000001${ZONE}${SIGNED_BY}0043${ALGORITHM}00006afc5001012c002046cf63723f1c0998bbc1d21b340517790eee7d8b3929d6478a3da6b6d51c3ad812670012000600006afc5e11`,
    /NTP/,
  ],
  ['REFUSED', `1267a8050001000000000000${ZONE}`, /update-policy/],
  ['NOTZONE', `1267a80a0001000000000000${ZONE}`, /DNS01_ZONE/],
  ['NOTIMP', `1267a8040001000000000000${ZONE}`, /primary server/],
  ['an unknown code', `1267a80f0001000000000000${ZONE}`, /code 15/],
])('%s says what to do', (_, answer, words) => {
  expect(read(answer)).toMatch(words)
})

test.each([
  ['without a signature', `1267a8000001000000000000${ZONE}`],
  ['with a changed signature', TAKEN.replace('e08a97c7', 'e08a97c8')],
  ['with a signature that is too old', TAKEN, NOW_MS + 3_600_000],
  ['of another question', TAKEN.replace('1267', '1268')],
  ['that is a question itself', TAKEN.replace('1267a8', '126728')],
  ['cut off', TAKEN.slice(0, -10)],
  ['empty', ''],
  ['with a name that points to itself', '1267a8000001000000000000c00c00060001'],
  ['that promises more records than there are', `1267a800000100000000ffff${ZONE}`],
] as [string, string, number?][])('an answer %s is not believed', (_, answer, nowMs) => {
  expect(read(answer, nowMs)).toEqual(expect.any(String))
})

test('bytes of any kind are read without an error', () => {
  const bytes = Buffer.from(TAKEN, 'hex')
  for (let place = 0; place < bytes.length; place++) {
    const changed = Buffer.from(bytes)
    changed[place]! ^= 0xff
    expect(readAnswer(changed, { id: ID, mac: update.mac, key: KEY, nowMs: NOW_MS })).toEqual(expect.any(String))
  }
})

test.each([
  ['ns1.example.com', { host: 'ns1.example.com', port: 53 }],
  ['192.0.2.1:5353', { host: '192.0.2.1', port: 5353 }],
  ['[2001:db8::1]:53', { host: '2001:db8::1', port: 53 }],
  ['2001:db8::1', { host: '2001:db8::1', port: 53 }],
  ['ns1.example.com:0', undefined],
  ['ns1.example.com:70000', undefined],
  ['[ns1.example.com]:53', undefined],
  ['-', undefined],
  ['dns://ns1', undefined],
])('server %s', (text, parsed) => {
  expect(parseServer(text)).toEqual(parsed)
})

const EDGE: Env = {
  SECRET_KEY: 'k'.repeat(32),
  ACME_DIRECTORY_URL: 'https://ca.example/dir',
  SITES_DOMAIN: 'sites.example',
}
const RFC2136: Env = {
  DNS01: 'rfc2136',
  DNS01_SERVER: '192.0.2.1',
  DNS01_TSIG_KEY: 'acme',
  DNS01_TSIG_SECRET: Buffer.alloc(32).toString('base64'),
}

test.each([
  [{ ...RFC2136, DNS01: 'route53' }, /DNS01 must be one of rfc2136, acme-dns, command/],
  [{ DNS01: 'rfc2136' }, /DNS01_SERVER must be set.*\n.*DNS01_TSIG_KEY must be set.*\n.*DNS01_TSIG_SECRET must be set/],
  [{ ...RFC2136, DNS01_TSIG_SECRET: 'p@ssword' }, /DNS01_TSIG_SECRET must be base64/],
  [{ ...RFC2136, DNS01_TSIG_ALGORITHM: 'hmac-md5' }, /DNS01_TSIG_ALGORITHM must be one of/],
  [{ ...RFC2136, DNS01_ZONE: 'a b' }, /DNS01_ZONE must be a domain name/],
  [{ ...RFC2136, ACME_DIRECTORY_URL: '' }, /DNS01 needs ACME_DIRECTORY_URL/],
  [{ ...RFC2136, SITES_DOMAIN: 'localhost' }, /DNS01 needs a SITES_DOMAIN/],
  [{ ...RFC2136, SITES_CERT_FILE: import.meta.filename, SITES_KEY_FILE: import.meta.filename }, /set one of them/],
  [
    { DNS01: 'acme-dns', DNS01_ACME_DNS_URL: 'ftp://x', DNS01_ACME_DNS_ACCOUNT: '{}' },
    /DNS01_ACME_DNS_URL must begin.*\n.*POST \/register/s,
  ],
  [{ DNS01: 'command' }, /DNS01_COMMAND must be set where DNS01=command/],
] as [Env, RegExp][])('%o is refused with every problem', (settings, words) => {
  expect(() => readEdgeConfig({ ...EDGE, ...settings })).toThrow(words)
})

test('no message repeats a secret', () => {
  const secret = 'not base64 at all!'
  expect(() => readEdgeConfig({ ...EDGE, ...RFC2136, DNS01_TSIG_SECRET: secret })).toThrow(
    expect.not.objectContaining({ message: expect.stringContaining(secret) }) as Error,
  )
})

test('a hook sees nothing of ours', () => {
  const env: Env = {
    DNS01: 'command',
    DNS01_COMMAND: '/hook',
    SECRET_KEY: 's',
    DATABASE_URL: 'd',
    PATH: '/bin',
    DNS01_HOOK_TOKEN: 't',
  }
  expect(readDns01('command', new EnvReader(env), env)).toMatchObject({
    environment: { PATH: '/bin', DNS01_HOOK_TOKEN: 't' },
  })
  expect(readDns01('command', new EnvReader(env), env)).not.toMatchObject({ environment: { SECRET_KEY: 's' } })
})

test.each([
  [{ serviceHost: 'dropway.example', sitesDomain: 'sites.example' }, ['*.sites.example', 'dropway.example']],
  [{ serviceHost: 'sites.example', sitesDomain: 'sites.example' }, ['*.sites.example']],
  [{ serviceHost: 'app.sites.example', sitesDomain: 'sites.example' }, ['*.sites.example']],
  [{ serviceHost: 'a.b.sites.example', sitesDomain: 'sites.example' }, ['*.sites.example', 'a.b.sites.example']],
  [{ serviceHost: '192.0.2.7', sitesDomain: 'sites.example' }, ['*.sites.example']],
])('certificates of the service itself: %o', (names, expected) => {
  expect(ownCertificates(names)).toEqual(expected)
})

test('a wildcard certificate stands for its parent too', () => {
  expect(certifiedNames('*.sites.example')).toEqual(['*.sites.example', 'sites.example'])
  expect(certifiedNames('dropway.example')).toEqual(['dropway.example'])
})

const never = async (): Promise<never> => {
  throw new Error('asked')
}

test('all records of an order stand before the first is waited for; a name is followed to its end', async () => {
  const deeds: string[] = []
  const note =
    (deed: string) =>
    async ({ name, value }: ProofRecord): Promise<void> =>
      void deeds.push(`${deed} ${name} ${value}`)
  const dns = composeDns01(
    { covers: async () => true, present: note('present'), remove: note('remove') },
    { endOf: async (name) => name.replace('_acme-challenge.', 'proof.'), untilShown: note('shown') },
    1000,
  )
  const proofs = [
    { host: 'sites.example', value: 'a' },
    { host: 'sites.example', value: 'b' },
  ]
  await dns.announce(proofs)
  await dns.withdraw(proofs)
  expect(deeds).toEqual(
    ['present', 'shown', 'remove'].flatMap((deed) => ['a', 'b'].map((value) => `${deed} proof.sites.example ${value}`)),
  )
})

test('what cannot be removed is no failure, and keeps no other record', async () => {
  const removed: string[] = []
  const remove = async ({ value }: ProofRecord): Promise<void> => {
    removed.push(value)
    throw new Error('out of order')
  }
  const nothing = async (): Promise<void> => {}
  const keeper = { covers: never, present: nothing, remove }
  const dns = composeDns01(keeper, { endOf: async (name) => name, untilShown: nothing }, 1)
  const proofs = ['a', 'b'].map((value) => ({ host: 'sites.example', value }))
  await dns.announce(proofs)
  await dns.withdraw(proofs)
  expect(removed).toEqual(['a', 'b'])
})

test('a record is taken away from where it was put, and only if it was', async () => {
  const removed: string[] = []
  let end = 'proofs.example'
  const keeper = {
    covers: never,
    present: ({ value }: ProofRecord) => (value === 'b' ? never() : Promise.resolve()),
    remove: async ({ name, value }: ProofRecord) => void removed.push(`${name} ${value}`),
  }
  const dns = composeDns01(keeper, { endOf: async () => end, untilShown: never }, 1)
  const proofs = ['a', 'b', 'c'].map((value) => ({ host: 'sites.example', value }))
  // The second fails, so that the third is never put anywhere; the second may be there all the same.
  await expect(dns.announce(proofs)).rejects.toThrow()
  end = 'elsewhere.example'
  await dns.withdraw(proofs)
  await dns.withdraw(proofs)
  expect(removed).toEqual(['proofs.example a', 'proofs.example b'])
})

test('RFC 2136: a record that could not be removed is tried once more, one that could not be set is told at once', async () => {
  let asked = 0
  const server = net.createServer((socket) => {
    asked += 1
    socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as net.AddressInfo
  const settings = {
    server: { host: '127.0.0.1', port },
    key: KEY,
    zone: 'sites.example',
    resolver: undefined,
    waitMs: 1,
  }
  const keeper = createRfc2136({ kind: 'rfc2136', ...settings }, { at: () => expect.unreachable() })
  await expect(keeper.present(RECORD)).rejects.toThrow('does not answer')
  expect(asked).toBe(1)
  await expect(keeper.remove(RECORD)).rejects.toThrow('does not answer')
  expect(asked).toBe(3)
})

const RECORD: ProofRecord = {
  asked: '_acme-challenge.sites.example',
  name: '_acme-challenge.sites.example',
  value: 'v',
}

test('acme-dns: a name that does not lead there is named with the record to set', async () => {
  const account = { fulldomain: 'abc.auth.example', subdomain: 'abc', username: 'u', password: 'p' }
  await expect(createAcmeDns({ url: 'http://127.0.0.1:9', account }).present(RECORD)).rejects.toThrow(
    'set the record "_acme-challenge.sites.example CNAME abc.auth.example"',
  )
})

test('RFC 2136: a name outside the zone is named with what to set, and nothing is sent', async () => {
  const keeper = createRfc2136(
    {
      kind: 'rfc2136',
      server: { host: '127.0.0.1', port: 9 },
      key: KEY,
      zone: 'other.example',
      resolver: undefined,
      waitMs: 1,
    },
    { at: () => expect.unreachable() },
  )
  await expect(keeper.present(RECORD)).rejects.toThrow(/is not in the zone other\.example: correct DNS01_ZONE/)
  expect(await keeper.covers('_acme-challenge.sites.example')).toBe(false)
  expect(await keeper.covers('a.other.example')).toBe(true)
})

test('a hook that fails says how', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-hook-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const command = path.join(folder, 'hook')
  writeFileSync(command, '#!/bin/sh\necho one >&2\necho "no zone for $2" >&2\nexit 3\n', { mode: 0o755 })
  const environment = { PATH: '/bin:/usr/bin' }
  await expect(createCommandHook({ command, environment }).present(RECORD)).rejects.toThrow(
    'failed (exit code 3): no zone for _acme-challenge.sites.example.',
  )
  await expect(createCommandHook({ command: '/there/is/no/hook', environment }).present(RECORD)).rejects.toThrow(
    /ENOENT/,
  )
})

test('an order by DNS waits for its turn, and gives it back whatever came of it', async () => {
  const said: string[] = []
  let isAway = false
  const open = [{ host: 'docs.example.com', token: 't', answer: VALUE }]
  const prover = () =>
    createDnsProver(
      {
        async announce(proofs) {
          said.push(`write ${proofs[0]?.host}`)
          if (isAway) throw new Error('the name server is away')
        },
        withdraw: async () => void said.push('remove'),
      },
      async () => {
        said.push('turn')
        return { release: async () => void said.push('release') }
      },
    )
  const one = prover()
  await one.announce(open)
  await one.withdraw(open)
  isAway = true
  const other = prover()
  await expect(other.announce(open)).rejects.toThrow('the name server is away')
  await other.withdraw(open)
  const each = ['turn', 'write docs.example.com', 'remove', 'release']
  expect(said).toEqual([...each, ...each])
})
