import { expect, test } from 'vitest'
import { summarise, type Facts } from '../../../control/doors/status/status.ts'

const well: Facts = { edges: 2, database: true, waitingChanges: 0, endingCertificates: 0 }

test.each<[string, Partial<Facts>, string, string[]]>([
  ['all is well', {}, 'ok', ['ok', 'ok', 'ok', 'ok']],
  ['no edge reports', { edges: 0 }, 'away', ['away', 'ok', 'ok', 'ok']],
  [
    'edges cannot be asked',
    { edges: undefined, waitingChanges: undefined },
    'degraded',
    ['degraded', 'ok', 'degraded', 'ok'],
  ],
  [
    'the database is away',
    { database: false, waitingChanges: undefined, endingCertificates: undefined },
    'away',
    ['ok', 'away', 'degraded', 'degraded'],
  ],
  ['changes wait', { waitingChanges: 1001 }, 'degraded', ['ok', 'ok', 'degraded', 'ok']],
  ['a thousand is a moment', { waitingChanges: 1000 }, 'ok', ['ok', 'ok', 'ok', 'ok']],
  ['a certificate ends', { endingCertificates: 1 }, 'degraded', ['ok', 'ok', 'ok', 'degraded']],
])('%s', (_name, facts, state, parts) => {
  const status = summarise(new Date(0), { ...well, ...facts })
  expect(status.state).toBe(state)
  expect(status.parts.map((part) => part.state)).toEqual(parts)
})
