import { describe, expect, test } from 'vitest'
import {
  isHostname,
  isShortenedPreview,
  parseAuthority,
  parsePreviewHost,
  previewHost,
  readPreviewLabel,
  slugProblem,
} from '../../../shared/http/hosts.ts'
import { isPass, isPreviewLabelOf, makePass, previewLabelOf } from '../../../shared/secrets/previews.ts'
import { createSecrets } from '../../../shared/secrets/secrets.ts'
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
  ['ab1--c', 'prefixed'],
  ['ab1-c--', 'invalid'],
])('the slug %s: %s', (slug, problem) => expect(slugProblem(slug)).toBe(problem))

describe('preview addresses', () => {
  const site = (slug: string) => ({ id: 'st_1', slug })
  test('lead back to what they show and to the host', () => {
    expect(previewHost('12', site('slug'), 'sites.test')).toBe('12--slug.sites.test')
    expect(parsePreviewHost('12--slug.sites.test')).toEqual({ label: '12', siteHost: 'slug.sites.test' })
    expect(parsePreviewHost('pr-12--my--slug.sites.test')).toEqual({ label: 'pr-12', siteHost: 'my--slug.sites.test' })
  })
  test('fit into a label: a slug that is too long is cut, and told apart by its drop', () => {
    expect(previewHost('7', site('a'.repeat(60)), 'sites.test')).toBe(`7--${'a'.repeat(60)}.sites.test`)
    const [one, other] = ['st_1', 'st_2'].map((id) => previewHost('7', { id, slug: 'a'.repeat(61) }, 'sites.test'))
    expect(one).toMatch(/^7--a{51}-[0-9a-f]{8}\.sites\.test$/)
    expect(one?.split('.')[0]).toHaveLength(63)
    expect(other).not.toBe(one)
    expect([isShortenedPreview('7', 'a'.repeat(60)), isShortenedPreview('7', 'a'.repeat(61))]).toEqual([false, true])
  })
  test.each(['--a', '1--', '1--.sites.test', '1-a', 'a'])('%s is none', (host) => {
    expect(parsePreviewHost(host)).toBeUndefined()
  })

  test.each([
    ['1', { kind: 'number', versionNumber: 1 }],
    ['123456789', { kind: 'number', versionNumber: 123_456_789 }],
    ['1234567890', undefined],
    ['0', undefined],
    ['01', undefined],
    ['12-abcdefgh2345', { kind: 'signed', versionNumber: 12, label: '12-abcdefgh2345' }],
    ['12-abcdefgh234', undefined],
    ['12-abcdefgh23456', undefined],
    ['12-abcdefgh2389', undefined],
    ['pr-12', { kind: 'name', name: 'pr-12' }],
    ['a', { kind: 'name', name: 'a' }],
    ['a'.repeat(40), { kind: 'name', name: 'a'.repeat(40) }],
    ['a'.repeat(41), undefined],
    ['pr-', undefined],
    ['Pr', undefined],
    ['-a', undefined],
    ['12a', undefined],
    ['xn', undefined],
    ['', undefined],
  ])('the label %s: %o', (label, read) => expect(readPreviewLabel(label)).toEqual(read))
})

test('a signed label has a number and 60 bits of its own for each version of each drop', () => {
  const secrets = createSecrets('a test key of at least thirty-two characters')
  const labels = ['st_1', 'st_2'].flatMap((id) => [1, 2, 12].map((number) => previewLabelOf(secrets, id, number)))
  expect(new Set(labels).size).toBe(6)
  for (const label of labels) expect(readPreviewLabel(label)?.kind).toBe('signed')
  expect(isPreviewLabelOf(secrets, 'st_1', 1, labels[0]!)).toBe(true)
  expect(isPreviewLabelOf(secrets, 'st_2', 1, labels[0]!)).toBe(false)
  expect(isPreviewLabelOf(createSecrets('another key, with thirty-two characters'), 'st_1', 1, labels[0]!)).toBe(false)
})

test('a pass is for its drop, its host and its kind, until it ends', () => {
  const secrets = createSecrets('a test key of at least thirty-two characters')
  const made = { kind: 'entry', siteId: 'st_1', host: 'pr--a.test', expiresAt: 1_800_000_000_000 } as const
  const pass = makePass(secrets, made)
  const wanted = { kind: 'entry', siteId: 'st_1', host: 'pr--a.test', now: 1_799_999_999_999 } as const
  expect(isPass(secrets, pass, wanted)).toBe(true)
  for (const other of [
    { siteId: 'st_2' },
    { host: 'pr--b.test' },
    { kind: 'visit' as const },
    { now: 1_800_000_000_000 },
  ])
    expect(isPass(secrets, pass, { ...wanted, ...other })).toBe(false)
  expect(isPass(secrets, `9${pass.slice(1)}`, wanted)).toBe(false)
  expect(isPass(secrets, '', wanted)).toBe(false)
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
