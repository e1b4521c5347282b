import { expect, test } from 'vitest'
import { extendPolicies, extendPolicy, withAncestor } from '../../../edge/rewrite/csp.ts'
import { CSP_LIMITS, MAX_CUSTOM_HEADER_BYTES } from '../../../shared/contracts/limits.ts'
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
  ['CONNECT-SRC a', 'connect-src a https://c.test'],
  ['script-src a; SCRIPT-SRC b', "script-src a 'sha256-S' https://s.test"],
  ["style-src-elem 'self'; style-src 'none'", "style-src-elem 'self' 'sha256-Y'; style-src 'none'"],
  [
    "style-src 'self'; default-src 'none'",
    "style-src 'self' 'sha256-Y'; default-src 'none'; script-src 'sha256-S' https://s.test; connect-src https://c.test",
  ],
  ["script-src 'Unsafe-Inline' 'NONCE-a'", "script-src 'Unsafe-Inline' 'NONCE-a' 'sha256-S' https://s.test"],
  ["script-src 'UNSAFE-INLINE'", "script-src 'UNSAFE-INLINE' https://s.test"],
  ["script-src 'unsafe-inline' 'sha256-a'", "script-src 'unsafe-inline' 'sha256-a' 'sha256-S' https://s.test"],
  ["script-src 'unsafe-inline' 'sha512-a'", "script-src 'unsafe-inline' 'sha512-a' 'sha256-S' https://s.test"],
  [
    "script-src 'unsafe-inline' 'strict-dynamic'",
    "script-src 'unsafe-inline' 'strict-dynamic' 'sha256-S' https://s.test",
  ],
  [
    "script-src 'unsafe-inline' https://a.test/'nonce-",
    "script-src 'unsafe-inline' https://a.test/'nonce- https://s.test",
  ],
  [
    'default-src https://c.test; connect-src https://c.test',
    "default-src https://c.test; connect-src https://c.test; script-src https://c.test 'sha256-S' https://s.test; style-src https://c.test 'sha256-Y'",
  ],
  ['upgrade-insecure-requests', 'upgrade-insecure-requests'],
  ['', ''],
])('%s', (policy, expected) => expect(extendPolicy(policy, needs)).toBe(expected))

test.each([
  ["default-src 'none'", "default-src 'none'; img-src https://i.test; frame-src https://f.test"],
  ["img-src 'self'; frame-src 'self'", "img-src 'self' https://i.test; frame-src 'self' https://f.test"],
  [
    "child-src 'self'; default-src 'none'",
    "child-src 'self' https://f.test; default-src 'none'; img-src https://i.test",
  ],
  ['frame-src a; child-src b', 'frame-src a https://f.test; child-src b'],
  // What the page allows already needs no directive of its own.
  ['default-src https://i.test https://f.test', 'default-src https://i.test https://f.test'],
])('images and frames: %s', (policy, expected) => {
  const only = { scriptSrc: [], connectSrc: [], styleSrc: [], imgSrc: ['https://i.test'], frameSrc: ['https://f.test'] }
  expect(extendPolicy(policy, only)).toBe(expected)
})

test('every policy of a header is extended, since all of them apply', () => {
  expect(extendPolicies(" , connect-src 'self', connect-src 'none'; img-src a,", needs)).toBe(
    "connect-src 'self' https://c.test, connect-src https://c.test; img-src a",
  )
})

test.each([
  ["frame-ancestors 'none'", 'frame-ancestors https://r.test'],
  ["FRAME-ANCESTORS 'NONE'; img-src a", 'frame-ancestors https://r.test; img-src a'],
  [
    "script-src 'self'; frame-ancestors 'self' https://a.test",
    "script-src 'self'; frame-ancestors 'self' https://a.test https://r.test",
  ],
  // Without a word about frames it allows every one.
  [" script-src  'self' ", "script-src  'self'"],
  ["img-src a, frame-ancestors 'self'", "img-src a, frame-ancestors 'self' https://r.test"],
])('the frame of the review page beside those of %s', (policy, expected) => {
  expect(withAncestor(policy, 'https://r.test')).toBe(expected)
})

test('policies that no one writes by hand stay as they are', () => {
  const many = Array.from({ length: 33 }, () => "script-src 'self'").join(', ')
  expect(extendPolicies(many, needs)).toBe(many)
  expect(extendPolicies(`${many}, ${many}`, needs)).toBe(`${many}, ${many}`)
  const long = (chars: number): string => "script-src 'self' ".padEnd(chars, 'a')
  expect(extendPolicies(long(65_536), needs)).toContain('https://s.test')
  expect(extendPolicies(long(65_537), needs)).toBe(long(65_537))
  const few = many.split(', ').slice(1).join(', ')
  expect(extendPolicies(few, needs)).toContain('https://s.test')
})

test('everything that control accepts is extended', () => {
  const { inPage, extended } = CSP_LIMITS
  expect(extended.policies).toBeGreaterThanOrEqual(inPage.policies)
  expect(extended.chars).toBeGreaterThanOrEqual(Math.max(inPage.chars, MAX_CUSTOM_HEADER_BYTES))
})
