import { expect, test } from 'vitest'
import { summarise, type Facts } from '../../../control/doors/status/status.ts'

const DAY_MS = 86_400_000

const well: Facts = {
  edges: 2,
  database: true,
  waitingChanges: 0,
  endingCertificates: 0,
  ownCertificateLeftMs: 60 * DAY_MS,
  lateRecipients: 0,
}

test.each<[string, Partial<Facts>, string, string[]]>([
  ['all is well', {}, 'ok', ['ok', 'ok', 'ok', 'ok', 'ok']],
  ['no edge reports', { edges: 0 }, 'away', ['away', 'ok', 'ok', 'ok', 'ok']],
  [
    'edges cannot be asked',
    { edges: undefined, waitingChanges: undefined },
    'degraded',
    ['degraded', 'ok', 'degraded', 'ok', 'ok'],
  ],
  [
    'the database is away',
    { database: false, waitingChanges: undefined, endingCertificates: undefined, lateRecipients: undefined },
    'away',
    ['ok', 'away', 'degraded', 'degraded', 'degraded'],
  ],
  ['changes wait', { waitingChanges: 1001 }, 'degraded', ['ok', 'ok', 'degraded', 'ok', 'ok']],
  ['a thousand is a moment', { waitingChanges: 1000 }, 'ok', ['ok', 'ok', 'ok', 'ok', 'ok']],
  ['a certificate ends', { endingCertificates: 1 }, 'degraded', ['ok', 'ok', 'ok', 'degraded', 'ok']],
  ['our own ends soon', { ownCertificateLeftMs: 7 * DAY_MS - 1 }, 'degraded', ['ok', 'ok', 'ok', 'degraded', 'ok']],
  ['our own is not due yet', { ownCertificateLeftMs: 7 * DAY_MS }, 'ok', ['ok', 'ok', 'ok', 'ok', 'ok']],
  ['our own has ended', { ownCertificateLeftMs: 0 }, 'away', ['ok', 'ok', 'ok', 'away', 'ok']],
  ['our own is out of reach', { ownCertificateLeftMs: undefined }, 'ok', ['ok', 'ok', 'ok', 'ok', 'ok']],
  ['mails wait', { lateRecipients: 6 }, 'degraded', ['ok', 'ok', 'ok', 'ok', 'degraded']],
  ['some mailboxes are full', { lateRecipients: 5 }, 'ok', ['ok', 'ok', 'ok', 'ok', 'ok']],
])('%s', (_name, facts, state, parts) => {
  const status = summarise(new Date(0), { ...well, ...facts })
  expect(status.state).toBe(state)
  expect(status.parts.map((part) => part.state)).toEqual(parts)
})
