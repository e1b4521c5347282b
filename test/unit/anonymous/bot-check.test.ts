import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { createBotCheck } from '../../../control/drops/anonymous/bot-check.ts'
import { hasLeadingZeroBits } from '../../../shared/secrets/proof-of-work.ts'
import { createSecrets } from '../../../shared/secrets/secrets.ts'

const NOW = 1_800_000_000_000
const check = createBotCheck(createSecrets('k'.repeat(32)))
const tool = { honeypot: undefined, started: undefined, proof: undefined, isBrowser: false, recentRejections: 0 }
const browser = { ...tool, isBrowser: true, started: check.startToken(NOW - 5000) }

test.each([
  ['a plain tool passes', tool, 'pass'],
  ['a person at our page passes', browser, 'pass'],
  ['a filled honeypot is refused', { ...browser, honeypot: 'https://spam.test' }, 'reject'],
  ['a form sent at once is held', { ...browser, started: check.startToken(NOW - 10) }, 'wait'],
  ['a form from the future must prove', { ...browser, started: check.startToken(NOW + 10) }, 'prove'],
  ['a form of yesterday must prove', { ...browser, started: check.startToken(NOW - 90_000_000) }, 'prove'],
  ['a browser that never saw our page must prove', { ...browser, started: undefined }, 'prove'],
  ['a forged start must prove', { ...browser, started: `form:${NOW - 5000}.forged` }, 'prove'],
  ['a network with refused pages must prove', { ...tool, recentRejections: 5 }, 'prove'],
])('%s', (_, signals, verdict) => {
  expect(check.check(signals, NOW).verdict).toBe(verdict)
})

test('a form is held until a person could have sent it', () => {
  expect(check.check({ ...browser, started: check.startToken(NOW - 10) }, NOW)).toEqual({
    verdict: 'wait',
    waitMs: 690,
  })
})

test('solved work is accepted until it expires, and only ours', () => {
  const suspicious = { ...tool, recentRejections: 9 }
  const { challenge } = check.check(suspicious, NOW)
  const proof = solve(challenge!.challenge, challenge!.bits)
  expect(check.check({ ...suspicious, proof }, NOW).verdict).toBe('pass')
  expect(check.check({ ...suspicious, proof }, NOW + 3_600_000).verdict).toBe('prove')
  expect(
    check.check({ ...suspicious, proof: solve('work~9999999999999~x.forged', challenge!.bits) }, NOW).verdict,
  ).toBe('prove')
  expect(check.check({ ...suspicious, proof: `${challenge!.challenge}:unsolved` }, NOW).verdict).toBe('prove')
})

test.each([
  [[0, 0], 16, true],
  [[0, 1], 16, false],
  [[0, 1], 15, true],
  [[0x0f], 4, true],
  [[0x1f], 4, false],
])('leading zero bits of %j', (bytes, bits, expected) => {
  expect(hasLeadingZeroBits(Uint8Array.from(bytes), bits)).toBe(expected)
})

function solve(challenge: string, bits: number): string {
  for (let nonce = 0; ; nonce++) {
    const proof = `${challenge}:${nonce}`
    if (hasLeadingZeroBits(createHash('sha256').update(proof).digest(), bits)) return proof
  }
}
