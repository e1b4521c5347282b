import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openLocalCa, type LocalCa } from '../../../certs/local/local-ca.ts'
import { openServiceCertificate, serviceCertificateNames } from '../../../certs/service-certificate.ts'
import type { CertificateBundle } from '../../../shared/certificates/bundle.ts'
import { systemClock } from '../../../shared/running/clock.ts'
import { silentLog } from '../../../shared/running/log.ts'

let folder: string
let ca: LocalCa
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  folder = mkdtempSync(path.join(tmpdir(), 'dropway-service-'))
  ca = openLocalCa(folder, systemClock)
})
afterEach(() => {
  vi.useRealTimers()
  rmSync(folder, { recursive: true })
})

const names = { serviceHost: 'dropway.example', sitesDomain: 'sites.example' }

function write(bundle: CertificateBundle): { certFile: string; keyFile: string } {
  const files = { certFile: path.join(folder, 'wildcard.pem'), keyFile: path.join(folder, 'wildcard.key') }
  for (const [file, text] of [
    [files.certFile, bundle.cert],
    [files.keyFile, bundle.key],
  ] as const) {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
  return files
}

test('files are served, and served anew when both were replaced; a pair that does not match never is', () => {
  const first = ca.issue(['*.sites.example'])
  const files = write(first)
  const service = openServiceCertificate({
    source: { kind: 'files', ...files },
    names,
    clock: systemClock,
    log: silentLog,
  })
  const seen: string[] = []
  const stop = service.watch(({ cert }) => seen.push(cert))
  expect(service.current()).toEqual(first)
  vi.advanceTimersByTime(10_000)
  expect(seen).toEqual([])

  const second = ca.issue(['*.sites.example'])
  write({ cert: second.cert, key: first.key })
  vi.advanceTimersByTime(10_000)
  expect(seen).toEqual([])
  expect(service.current()).toEqual(first)

  write(second)
  vi.advanceTimersByTime(10_000)
  expect(seen).toEqual([second.cert])
  expect(service.current()).toEqual(second)
  stop()
})

test('files that are missing or wrong stop the start', () => {
  const source = {
    kind: 'files',
    certFile: path.join(folder, 'none.pem'),
    keyFile: path.join(folder, 'none.key'),
  } as const
  expect(() => openServiceCertificate({ source, names, clock: systemClock, log: silentLog })).toThrow(/none\.pem/)
})

test('the names of the service, and of one machine', () => {
  expect(serviceCertificateNames(names)).toEqual(['dropway.example', 'sites.example', '*.sites.example'])
  expect(serviceCertificateNames({ serviceHost: 'localhost', sitesDomain: 'localhost' })).toEqual([
    'localhost',
    '*.localhost',
    '127.0.0.1',
    '::1',
  ])
})

test('a file whose certificate has ended is told in the log, once, and again when its successor has ended too', () => {
  const said: string[] = []
  const log = { ...silentLog, error: (_about: object, text: string) => void said.push(text) } as typeof silentLog
  let now = Date.now()
  const files = write(ca.issue(['*.sites.example']))
  const service = openServiceCertificate({
    source: { kind: 'files', ...files },
    names,
    clock: { now: () => now },
    log,
  })
  const stop = service.watch(() => {})
  vi.advanceTimersByTime(10_000)
  expect(said).toEqual([])

  now += 20 * 365 * 24 * 60 * 60 * 1000
  vi.advanceTimersByTime(10_000)
  expect(said).toEqual([
    expect.stringMatching(/^the certificate in SITES_CERT_FILE ended on .* GMT: replace the file$/),
  ])

  write(ca.issue(['*.sites.example']))
  vi.advanceTimersByTime(10_000)
  expect(said).toHaveLength(2)
  stop()
})
