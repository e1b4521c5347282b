import { expect, test } from 'vitest'
import { extendPolicies, extendPolicy, MAX_POLICIES } from '../../../edge/rewrite/csp.ts'
import type { CspNeeds } from '../../../edge/rewrite/csp.ts'

const needs: CspNeeds = {
  scriptSrc: ["'sha256-S'", 'https://s.test'],
  connectSrc: ['https://c.test'],
  imgSrc: [],
  styleSrc: ["'sha256-Y'"],
  frameSrc: [],
}

test.each([
  // Nothing restricts it: nothing to add.
  ["frame-ancestors 'none'", "frame-ancestors 'none'"],
  ["script-src 'self'", "script-src 'self' 'sha256-S' https://s.test"],
  ["SCRIPT-SRC 'self'", "script-src 'self' 'sha256-S' https://s.test"],
  ["script-src 'none'", "script-src 'sha256-S' https://s.test"],
  ["script-src 'NONE'", "script-src 'sha256-S' https://s.test"],
  ['script-src', "script-src 'sha256-S' https://s.test"],
  ["script-src-elem 'self'; script-src 'none'", "script-src-elem 'self' 'sha256-S' https://s.test; script-src 'none'"],
  // Only default-src governs: each kind gets a directive of its own, default-src stays.
  [
    "default-src 'self'",
    "default-src 'self'; script-src 'self' 'sha256-S' https://s.test; connect-src 'self' https://c.test; style-src 'self' 'sha256-Y'",
  ],
  // A hash would switch 'unsafe-inline' off, and with it the page's own scripts.
  ["script-src 'unsafe-inline'", "script-src 'unsafe-inline' https://s.test"],
  ["script-src 'unsafe-inline' 'nonce-a'", "script-src 'unsafe-inline' 'nonce-a' 'sha256-S' https://s.test"],
  ["script-src 'unsafe-inline' 'sha384-a'", "script-src 'unsafe-inline' 'sha384-a' 'sha256-S' https://s.test"],
  ["script-src 'nonce-a' 'strict-dynamic'", "script-src 'nonce-a' 'strict-dynamic' 'sha256-S' https://s.test"],
  ["style-src 'unsafe-inline'", "style-src 'unsafe-inline'"],
  // What is allowed already is not repeated; of two directives the first counts, as in a browser.
  ["script-src 'sha256-S' https://s.test", "script-src 'sha256-S' https://s.test"],
  ['script-src a; script-src b', "script-src a 'sha256-S' https://s.test"],
  ['  ;; connect-src   a\tb ; ', 'connect-src a b https://c.test'],
  ['upgrade-insecure-requests', 'upgrade-insecure-requests'],
  ['', ''],
])('%s', (policy, expected) => expect(extendPolicy(policy, needs)).toBe(expected))

test('every policy of a header is extended, since all of them apply', () => {
  expect(extendPolicies("connect-src 'self', connect-src 'none'; img-src a,", needs)).toBe(
    "connect-src 'self' https://c.test, connect-src https://c.test; img-src a",
  )
})

test('policies that nobody writes by hand stay as they are', () => {
  const many = Array.from({ length: MAX_POLICIES + 1 }, () => "script-src 'self'").join(', ')
  expect(extendPolicies(many, needs)).toBe(many)
  const few = many.split(', ').slice(1).join(', ')
  expect(extendPolicies(few, needs)).toContain('https://s.test')
})
