import { describe, expect, test } from 'vitest'
import { isHostname, parseAuthority, parsePreviewHost, previewHost, slugProblem } from '../../../shared/http/hosts.ts'
import { similarSlugs } from '../../../shared/values/readable-slug.ts'

/** A host of so many characters: labels of 63, and what is left. */
const long = (chars: number): string => `${`${'a'.repeat(63)}.`.repeat(3)}${'b'.repeat(chars - 192)}`

test.each([
  ['a', true],
  ['a-b.c1.test', true],
  ['xn--bcher-kva.example', true],
  [`${'a'.repeat(63)}.test`, true],
  [`${'a'.repeat(64)}.test`, false],
  [long(253), true],
  [long(254), false],
  ['', false],
  ['.', false],
  ['a..b', false],
  ['a.test.', false],
  ['-a.test', false],
  ['a-.test', false],
  ['A.test', false],
  ['a_b.test', false],
])('%s is a host name: %s', (host, expected) => expect(isHostname(host)).toBe(expected))

test.each([
  ['a.test', 'a.test'],
  ['A.Test', 'a.test'],
  ['a.test.', 'a.test'],
  ['a.test:443', 'a.test'],
  ['a.test.:443', 'a.test'],
  ['a.test:0', 'a.test'],
  ['a.test:65535', 'a.test'],
  ['a.test:65536', undefined],
  ['a.test:000443', undefined],
  ['a.test:', undefined],
  ['a.test:x', undefined],
  ['a.test:443x', undefined],
  ['a.test..', undefined],
  ['user@a.test', undefined],
  ['a.test/x', undefined],
  ['a.test?x', undefined],
  ['a.test#x', undefined],
  ['a\\a.test', undefined],
  [' a.test', undefined],
  ['[::1]', undefined],
  ['[::1]:443', undefined],
  ['', undefined],
  ['.', undefined],
  [':443', undefined],
  [undefined, undefined],
  [`${long(253)}.:65535`, long(253)],
  [`${long(254)}`, undefined],
])('the authority %j names %s', (authority, host) => expect(parseAuthority(authority)).toBe(host))

test.each([
  ['abc', undefined],
  ['ab', 'invalid'],
  ['a'.repeat(63), undefined],
  ['a'.repeat(64), 'invalid'],
  ['abc_', 'invalid'],
  ['abc-', 'invalid'],
  ['1-2', undefined],
  ['example', 'reserved'],
  ['no-reply', 'reserved'],
  ['webmail', 'reserved'],
  ['xt-0123456789abcdef', undefined],
  ['t-0123456789abcdef0', undefined],
  ['ab--c', 'prefixed'],
  ['a1--c', 'prefixed'],
  ['1--c', 'prefixed'],
  ['ab1--c', undefined],
])('the slug %s: %s', (slug, problem) => expect(slugProblem(slug)).toBe(problem))

describe('preview addresses', () => {
  test('lead back to the version and the host', () => {
    expect(previewHost(12, 'slug', 'sites.test')).toBe('12--slug.sites.test')
    expect(parsePreviewHost('12--slug.sites.test')).toEqual({ versionNumber: 12, siteHost: 'slug.sites.test' })
  })
  test('fit into a label, or there is none', () => {
    expect(previewHost(7, 'a'.repeat(60), 'sites.test')).toBe(`7--${'a'.repeat(60)}.sites.test`)
    expect(previewHost(7, 'a'.repeat(61), 'sites.test')).toBeUndefined()
  })
  test.each([
    ['123456789--a', 123456789],
    ['1234567890--a', undefined],
    ['0--a', undefined],
    ['01--a', undefined],
    ['--a', undefined],
    ['1--', undefined],
    ['1-a', undefined],
    ['x1--a', undefined],
  ])('%s is of version %s', (host, version) => expect(parsePreviewHost(host)?.versionNumber).toBe(version))
})

test.each([
  ['holiday', ['holiday-2', 'my-holiday', 'the-holiday', 'holiday-site', 'holiday-page']],
  ['Über Uns!', ['uber-uns', 'uber-uns-2', 'my-uber-uns', 'the-uber-uns', 'uber-uns-site', 'uber-uns-page']],
  ['--a', ['a-2', 'my-a', 'the-a', 'a-site', 'a-page']],
  ['admin', ['admin-2', 'my-admin', 'the-admin', 'admin-site', 'admin-page']],
  ['', []],
])('what is like %j can be offered instead', (text, others) => {
  expect(similarSlugs(text)).toEqual(others)
})

test('what is like a long name is short enough', () => {
  const others = similarSlugs('x'.repeat(80))
  expect(others.length).toBe(6)
  for (const slug of others) expect(slug.length).toBeLessThanOrEqual(63)
})
