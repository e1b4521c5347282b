import { expect, test } from 'vitest'
import {
  createProofOfWork,
  guessBits,
  hasLeadingZeroBits,
  PROOF_LIFETIME_MS,
} from '../../../shared/secrets/proof-of-work.ts'
import { createSecrets } from '../../../shared/secrets/secrets.ts'
import { solve } from '../../support/proof-of-work.ts'

const work = createProofOfWork(createSecrets('k'.repeat(32)))
const NOW = 1_800_000_000_000
const asked = work.ask('sign-in ann@example.com', 8, NOW)
const proof = solve(asked.challenge, 8)

test('an answer is good for its purpose, in its time, and names its challenge', () => {
  expect(work.check(proof, 'sign-in ann@example.com', NOW)).toMatch(/^[\w-]{12}$/)
  expect(work.check(proof, 'sign-in ann@example.com', NOW + PROOF_LIFETIME_MS - 1)).toBeDefined()
})

test.each<[string, string | undefined, string, number]>([
  ['none', undefined, 'sign-in ann@example.com', NOW],
  ['an empty one', '', 'sign-in ann@example.com', NOW],
  ['the question itself', asked.challenge, 'sign-in ann@example.com', NOW],
  ['one for another purpose', proof, 'sign-in bob@example.com', NOW],
  ['one that is too old', proof, 'sign-in ann@example.com', NOW + PROOF_LIFETIME_MS],
  ['one with fewer bits than asked for', proof.replace('~8~', '~1~'), 'sign-in ann@example.com', NOW],
  [
    'one of another service',
    solve(createProofOfWork(createSecrets('x'.repeat(32))).ask('p', 8, NOW).challenge, 8),
    'p',
    NOW,
  ],
  ['a very long one', `${proof}${'0'.repeat(1000)}`, 'sign-in ann@example.com', NOW],
])('%s is not', (_, given, purpose, now) => {
  expect(work.check(given, purpose, now)).toBeUndefined()
})

test('zero bits are counted from the left', () => {
  expect(hasLeadingZeroBits(Uint8Array.of(0, 0x0f), 12)).toBe(true)
  expect(hasLeadingZeroBits(Uint8Array.of(0, 0x0f), 13)).toBe(false)
})

test.each([
  [0.5, undefined],
  [1, undefined],
  [1.01, 19],
  [2, 20],
  [7, 21],
  [40, 24],
  [1e6, 24],
])('after %f times the allowance a guess takes %s bits of work', (used, bits) => {
  expect(guessBits(used)).toBe(bits)
})
