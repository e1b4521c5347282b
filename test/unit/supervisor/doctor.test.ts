/** What `doctor` decides without asking anyone: its role, and what a certificate is good for. */
import { expect, test } from 'vitest'
import { certificateFindings } from '../../../control/operations/admin/doctor/edge-checks.ts'
import { roleOf } from '../../../control/operations/admin/doctor/role.ts'

test.each([
  [{}, undefined, false, 'all'],
  [{ DATABASE_URL: 'postgres://db', REDIS_URL: 'redis://r' }, undefined, false, 'control'],
  [{ DATABASE_URL_FILE: '/run/db', REDIS_URL: 'redis://r' }, undefined, false, 'control'],
  [{ DATABASE_URL: 'postgres://db', REDIS_URL: 'redis://r' }, undefined, true, 'all'],
  [{ CONTROL_URLS: 'http://c:8787', REDIS_URL: 'redis://r' }, undefined, false, 'edge'],
  [{ CONTROL_URLS: 'http://c:8787', DATABASE_URL: ' ' }, undefined, false, 'edge'],
  [{ CONTROL_URLS: 'http://c:8787', DATABASE_URL: 'postgres://db', REDIS_URL: 'r' }, 'edge', false, 'edge'],
  [{ DATABASE_URL: 'postgres://db' }, undefined, false, 'all'],
] as const)('%o, asked for %s, a supervisor: %s → %s', (env, said, hasSupervisor, role) => {
  expect(roleOf(env, said, hasSupervisor).role).toBe(role)
})

const NOW_MS = 1_700_000_000_000
const names = { serviceHost: 'dropway.example', sitesDomain: 'sites.example' }
const good = {
  end: new Date(NOW_MS + 1e9),
  names: ['dropway.example', 'sites.example', '*.sites.example'],
  issuer: "Let's Encrypt R11",
}
const found = (own: object = {}, drop: object = own, host = names.serviceHost) =>
  certificateFindings({
    port: 443,
    names: { ...names, serviceHost: host },
    own: { ...good, ...own },
    drop: { ...good, ...drop },
    nowMs: NOW_MS,
  })

test.each([
  ['a good one', found(), 'ok', /listens on port 443/],
  ['one that ended', found({ end: new Date(NOW_MS - 1) }), 'problem', /of dropway\.example ended on/],
  ['a wildcard that ended', found({}, { end: new Date(NOW_MS - 1) }), 'problem', /of \*\.sites\.example ended on/],
  ['one for another host', found({ names: ['*.sites.example'] }), 'problem', /does not stand for dropway\.example/],
  [
    'one without the wildcard',
    found({}, { names: ['dropway.example'] }),
    'problem',
    /does not stand for \*\.sites\.example/,
  ],
  ['the local one before strangers', found({ issuer: 'Dropway local CA 0a1b2c' }), 'warning', /local authority/],
  [
    'the local one on one machine',
    found({ names: ['localhost', '*.sites.example'], issuer: 'Dropway local CA 0a1b2c' }, {}, 'localhost'),
    'ok',
    /listens/,
  ],
])('a certificate: %s', (_, findings, state, detail) => {
  expect(findings).toEqual([expect.objectContaining({ state, detail: expect.stringMatching(detail) as string })])
  if (state !== 'ok') expect(findings[0]!.mend).toMatch(/DNS01.*SITES_CERT_FILE/)
})
