import { execFile } from 'node:child_process'
import { createPublicKey, X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer as createHttpsServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { certificateFacts } from '../../../shared/certificates/bundle.ts'
import { createCertificateIndex } from '../../../certs/certificates.ts'
import { openLocalCa } from '../../../certs/local/local-ca.ts'
import { openServiceCertificate, serviceCertificateNames } from '../../../certs/service-certificate.ts'
import { DAY_MS, systemClock, type Clock } from '../../../shared/running/clock.ts'
import { silentLog } from '../../../shared/running/log.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'dropway-ca-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const names = { serviceHost: 'localhost', sitesDomain: 'localhost' }

test('OpenSSL accepts the chain, its purpose and its names', async () => {
  const ca = openLocalCa(folder, systemClock)
  const leaf = path.join(folder, 'leaf.pem')
  writeFileSync(leaf, ca.serviceCertificate(['dropway.example', '*.sites.example', '127.0.0.1', '::1']).cert)
  for (const check of [
    ['-verify_hostname', 'dropway.example'],
    ['-verify_hostname', 'a.sites.example'],
    ['-verify_ip', '127.0.0.1'],
    ['-verify_ip', '::1'],
  ]) {
    const { stdout } = await promisify(execFile)('openssl', [
      'verify',
      '-x509_strict',
      '-purpose',
      'sslserver',
      '-CAfile',
      ca.rootFile,
      ...check,
      leaf,
    ])
    expect(stdout).toContain('OK')
  }
})

test('a leaf lives at most 398 days, keys are readable by their owner alone', () => {
  const ca = openLocalCa(folder, systemClock)
  const facts = certificateFacts(ca.serviceCertificate(['localhost']).cert)
  expect((facts.notAfterMs - facts.notBeforeMs) / DAY_MS).toBeLessThanOrEqual(398)
  for (const file of ['ca.key', 'service.pem']) expect(statSync(path.join(folder, 'ca', file)).mode & 0o777).toBe(0o600)
})

test('opening it again gives the same root and the same certificate', () => {
  const first = openLocalCa(folder, systemClock)
  const bundle = first.serviceCertificate(serviceCertificateNames(names))
  const second = openLocalCa(folder, systemClock)
  expect(second.rootPem).toBe(first.rootPem)
  expect(second.serviceCertificate(serviceCertificateNames(names))).toEqual(bundle)
})

test('a certificate that is due, or lacks a name, is replaced under the same root', () => {
  let nowMs = Date.now()
  const clock: Clock = { now: () => nowMs }
  const ca = openLocalCa(folder, clock)
  const first = ca.serviceCertificate(['a.example'])
  nowMs += 200 * DAY_MS
  expect(ca.serviceCertificate(['a.example'])).toEqual(first)
  nowMs += 100 * DAY_MS
  const second = ca.serviceCertificate(['a.example'])
  expect(second.cert).not.toBe(first.cert)
  const third = ca.serviceCertificate(['a.example', 'b.example'])
  expect(certificateFacts(third.cert).names).toEqual(['a.example', 'b.example'])
  for (const { cert } of [first, second, third])
    expect(new X509Certificate(cert).verify(createPublicKey(ca.rootPem))).toBe(true)
})

test('processes that start at once agree on one root', async () => {
  const script = path.join(folder, 'open.mjs')
  const source = new URL('../../../certs/local/local-ca.ts', import.meta.url).href
  writeFileSync(
    script,
    `import { openLocalCa } from ${JSON.stringify(source)}
     const ca = openLocalCa(process.argv[2], { now: () => Date.now() })
     process.stdout.write(ca.rootPem + '|' + ca.serviceCertificate(['localhost']).cert.includes(ca.rootPem))`,
  )
  const run = promisify(execFile)
  const outputs = await Promise.all(
    Array.from({ length: 4 }, () => run(process.execPath, [script, path.join(folder, 'data')])),
  )
  expect(new Set(outputs.map(({ stdout }) => stdout)).size).toBe(1)
  expect(outputs[0]!.stdout).toMatch(/\|true$/)
})

test('a strict client that knows only the root reaches every address below localhost', async () => {
  const ca = openLocalCa(folder, systemClock)
  const service = openServiceCertificate({
    source: { kind: 'local-ca', ca },
    names,
    clock: systemClock,
    log: silentLog,
  })
  const index = createCertificateIndex({ fallback: service.current(), mint: service.mint })
  const server = createHttpsServer(
    { ...service.current(), SNICallback: (name, done) => done(null, index.contextFor(name)) },
    (_, response) => response.end('ok'),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const statusOf = (host: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const call = request(
        {
          host: '127.0.0.1',
          port,
          servername: host,
          ca: ca.rootPem,
          headers: { host },
          agent: false,
        },
        (response) => {
          response.resume()
          resolve(response.statusCode)
        },
      )
      call.on('error', reject).end()
    })
  try {
    expect(await statusOf('localhost')).toBe(200)
    expect(await statusOf('my-site.localhost')).toBe(200)
    expect(await statusOf('12--my-site.localhost')).toBe(200)
    await expect(statusOf('other.example')).rejects.toThrow(/altnames/)
  } finally {
    server.close()
  }
})
