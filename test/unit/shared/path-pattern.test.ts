import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compilePattern, compileTarget } from '../../../shared/path-pattern.ts'

function match(from: string, path: string): Record<string, string> | undefined | string {
  const pattern = compilePattern(from)
  if ('problem' in pattern) return pattern.problem
  const values = pattern.match(path)
  return values && Object.fromEntries(values)
}

describe('a pattern', () => {
  test.each<[string, string, Record<string, string> | undefined]>([
    ['/old', '/old', {}],
    ['/old', '/old/', {}],
    ['/old/', '/old', {}],
    ['/old', '/older', undefined],
    ['/old', '/Old', undefined],
    ['/', '/', {}],
    ['/', '/x', undefined],
    ['/*', '/', { splat: '' }],
    ['/*', '/a/b', { splat: 'a/b' }],
    ['/news/*', '/news', { splat: '' }],
    ['/news/*', '/news/', { splat: '' }],
    ['/news/*', '/news/a/b/', { splat: 'a/b/' }],
    ['/news/*', '/newsletter', undefined],
    ['/*.js', '/a/b.js', { splat: 'a/b' }],
    ['/*.js', '/a/b.jsx', undefined],
    ['/a/*/z', '/a/b/c/z', { splat: 'b/c' }],
    ['/a/*/z', '/a/b/c/z/', { splat: 'b/c' }],
    ['/a/*/z', '/a/z', undefined],
    ['/im*', '/images/x', { splat: 'ages/x' }],
    ['/:a/:b', '/x/y', { a: 'x', b: 'y' }],
    ['/:a/:b', '/x/y/', { a: 'x', b: 'y' }],
    ['/:a/:b', '/x', undefined],
    ['/:a/:b', '/x/y/z', undefined],
    ['/post/:slug/*', '/post/a', { slug: 'a', splat: '' }],
    ['/post/:slug/*', '/post/a/b/c', { slug: 'a', splat: 'b/c' }],
    ['/a.b(c)[d]', '/a.b(c)[d]', {}],
    ['/a.b/*', '/axb/x', undefined],
    ['/caf%C3%A9', '/café', {}],
  ])('%s on %s', (from, path, expected) => {
    expect(match(from, path)).toEqual(expected)
  })

  test.each([
    ['old', /must start with \//],
    ['https://example.com/x', /names a host/],
    ['/a?b', /query/],
    ['/a#b', /query or fragment/],
    ['/a/*/b/*', /more than one \*/],
    ['/a/../b', /\.\./],
    ['/:a/:a', /twice/],
    ['/:1', /placeholder/],
    ['/:a-b', /placeholder/],
    ['/a\\b', /character/],
    ['/a%00', /character/],
    [`/${Array.from({ length: 20 }, (_, index) => `:p${index}`).join('/')}`, /more than 16/],
  ])('%s is refused with a reason', (from, reason) => expect(match(from, '/')).toMatch(reason))

  test('never throws', () => {
    fc.assert(fc.property(fc.string(), fc.string(), (from, path) => void match(`/${from}`, `/${path}`)))
  })

  // Backtracking would need hours for these; then the test ends by its time limit.
  test.each(['/*/:a/:b/:c/:d/z', '/:a/*a/:b/z', '/*a/z'])('%s takes linear time on a hostile path', (from) => {
    expect(match(from, `/${'a/'.repeat(50_000)}`)).toBeUndefined()
    expect(match(from, `/${'a'.repeat(100_000)}`)).toBeUndefined()
  })
})

describe('a target', () => {
  test('holds a value as one value, wherever it lands', () => {
    const ids = new Map([['id', '1&admin=1#x?y=/%+']])
    const at = (to: string): string => {
      const compiled = compileTarget(to, ['id'])
      return 'problem' in compiled ? compiled.problem : compiled.location(ids)
    }
    expect(at('/show?id=:id&z=1')).toBe('/show?id=1%26admin%3D1%23x%3Fy%3D/%25%2B&z=1')
    expect(at('/show#:id')).toBe('/show#1%26admin%3D1%23x%3Fy%3D/%25%2B')
    expect(at('/show/:id')).toBe('/show/1&admin=1%23x%3Fy=/%25+')
    expect(new URL(at('https://example.com/?id=:id')).searchParams.get('id')).toBe('1&admin=1#x?y=/%+')
  })
  test('uses no more placeholders than an address can hold', () => {
    expect(compileTarget(`/${':id'.repeat(16)}`, ['id'])).not.toHaveProperty('problem')
    expect(compileTarget(`/${':id'.repeat(17)}`, ['id'])).toHaveProperty('problem')
  })
  const values = new Map([
    ['slug', 'ü b'],
    ['splat', 'x/?y#z/%'],
  ])
  const target = (to: string): { location: string; path: string } | string => {
    const compiled = compileTarget(to, ['slug', 'splat'])
    return 'problem' in compiled
      ? compiled.problem
      : { location: compiled.location(values), path: compiled.path(values) }
  }
  test('encodes what it is filled with and keeps what was written', () => {
    expect(target('/n/:slug?a=:slug')).toEqual({ location: '/n/%C3%BC%20b?a=%C3%BC%20b', path: '/n/ü b' })
    expect(target('/n/:splat')).toEqual({ location: '/n/x/%3Fy%23z/%25', path: '/n/x/?y#z/%' })
    expect(target('/a%20b/é')).toEqual({ location: '/a%20b/%C3%A9', path: '/a b/é' })
    expect(target('/time/12:30/:other')).toMatchObject({ location: '/time/12:30/:other' })
    expect(target('https://example.com:8443/:slug')).toMatchObject({ location: 'https://example.com:8443/%C3%BC%20b' })
  })
  test.each([
    '//evil.com',
    '/\\evil.com',
    'page',
    'javascript:alert(1)',
    'https://:slug/',
    'https://a.:slug',
    'https://',
    'https://user@host/',
    'https://a\\b/',
  ])('%s is refused', (to) => expect(target(to)).toMatch(/must/))
})
