/** Whether an admission lets its holder see a drop: a pure function of the record, the admission and the time. */
import { expect, test } from 'vitest'
import { admits, openAdmission, sealAdmission, type Admission } from '../../../shared/contracts/admission.ts'
import { revisionFloor } from '../../../shared/contracts/history.ts'
import { createSecrets } from '../../../shared/secrets/secrets.ts'

const NOW = Date.UTC(2026, 0, 15)
const route = {
  site_id: 'st_1',
  revision: revisionFloor(2) + 7,
  password: { generation: 3 },
  viewers: { ended: [['vw_removed', NOW + 1000] as const] },
}
const given: Admission = { siteId: 'st_1', subject: 'vw_1', generation: 3, history: 2, endsAt: NOW + 1 }

test('a viewer who was let in is in', () => {
  expect(admits(route, given, NOW)).toBe(true)
})

test.each<[string, Partial<Admission>]>([
  ['of another drop', { siteId: 'st_2' }],
  ['of an earlier generation', { generation: 2 }],
  ['of a generation that a database lost', { generation: 4 }],
  ['of a history that was set back', { history: 1 }],
  ['whose time is over', { endsAt: NOW }],
  ['that was taken back', { subject: 'vw_removed' }],
])('an admission %s opens nothing', (_, change) => {
  expect(admits(route, { ...given, ...change }, NOW)).toBe(false)
})

test('a drop in another mode is opened by no admission', () => {
  const { viewers: _, ...withPassword } = route
  expect(admits(withPassword, given, NOW)).toBe(false)
  expect(admits({ ...route, password: null }, given, NOW)).toBe(false)
})

test('what was sealed is opened again, and nothing else is', () => {
  const secrets = createSecrets('a secret key for tests, 32 chars or more')
  const sealed = sealAdmission(secrets, given)
  expect(openAdmission(secrets, sealed)).toEqual(given)
  const others = createSecrets('another secret key for tests, 32 chars')
  for (const text of ['', 's1.', `${sealed}x`, sealed.slice(0, -1), sealAdmission(others, given), 'x'.repeat(10_000)])
    expect(openAdmission(secrets, text), text.slice(0, 20)).toBeUndefined()
  expect(openAdmission(secrets, secrets.seal(JSON.stringify(['st_1']), 'mail:1'))).toBeUndefined()
})

test('a record grows by 64 bytes at most for each admission that was taken back', () => {
  const entry = (subject: string) => `,${JSON.stringify([subject, NOW])}`.length
  expect(entry(`vw_${'x'.repeat(22)}`)).toBeLessThanOrEqual(64)
  // A member: the person, and the second in which they joined.
  expect(entry(`usr_${'x'.repeat(22)}.1763370000`)).toBeLessThanOrEqual(64)
})
