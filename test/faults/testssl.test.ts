/** What testssl.sh has to say about the TLS of an edge: nothing that is "NOT ok". */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startEdgeFixture, type EdgeFixture } from '../support/edge-fixture.ts'

/** Protocols, ciphers, forward secrecy, preferences, then each weakness by name. BREACH is about pages, not TLS. */
const CHECKS = '-p -s -f -P -H -I -T --robot -R -C -O -Z -W -F -D -J -A -L -4'.split(' ')
const FINE = new Set(['OK', 'INFO', 'DEBUG'])
/** About the scanner's own OpenSSL. */
const NOT_OURS = new Set(['engine_problem'])

interface Finding {
  readonly id: string
  readonly severity: string
  readonly finding: string
}

let fixture: EdgeFixture
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-testssl-'))
  fixture = await startEdgeFixture({ env: { EDGE_HANDSHAKES_PER_IP: '100000' } })
  await fixture.publish('tls.localhost', { 'index.html': '<p>ok</p>' })
})

afterAll(async () => {
  await fixture.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('nothing is NOT ok', { timeout: 600_000 }, async () => {
  const output = path.join(folder, 'findings.json')
  const options = ['--jsonfile', output, '--quiet', '--color', '0', '--warnings', 'off', '--ip', '127.0.0.1']
  const target = `localhost:${fixture.edge.httpsPort}`
  // Its exit code counts findings, also harmless ones; the file says what they are.
  await promisify(execFile)('testssl', [...CHECKS, ...options, target], { maxBuffer: 64_000_000 }).catch(() => {})
  const findings = JSON.parse(readFileSync(output, 'utf8')) as Finding[]
  const bad = findings.filter(({ id, severity }) => !FINE.has(severity) && !NOT_OURS.has(id))
  process.stdout.write(`testssl: ${findings.length} findings, ${bad.length} to look at\n`)
  expect(findings.length).toBeGreaterThan(30)
  expect(findings.find(({ id }) => id === 'TLS1_3')?.finding).toMatch(/offered/)
  expect(bad.map(({ id, severity, finding }) => `${severity} ${id}: ${finding}`)).toEqual([])
})
