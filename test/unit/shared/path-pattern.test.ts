import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  compilePattern,
  compileDestination,
  encodePath,
  encodeUnsafe,
  oneSlash,
} from '../../../shared/content/path-pattern.ts'

function match(from: string, path: string): Record<string, string> | undefined | string {
  const pattern = compilePattern(from)
  if ('problem' in pattern) return pattern.problem
  const values = pattern.match(path)
  return values && Object.fromEntries(pattern.names.map((name, index) => [name, values[index]!]))
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
    ['/*/:a/:b', '/x/y/1/2', { splat: 'x/y', a: '1', b: '2' }],
    ['/:a/*/:b/:c/', '/0/x/y/1/2/', { a: '0', splat: 'x/y', b: '1', c: '2' }],
    ['/a*/:b', '/axy/1', { splat: 'xy', b: '1' }],
    ['/a*', '/a', { splat: '' }],
    ['/a*', '/a/b/', { splat: '/b/' }],
    ['/.well-known/*', '/.well-known/x', { splat: 'x' }],
    ['/..a/b..', '/..a/b..', {}],
    ['/to/https://a.test', '/to/https://a.test', {}],
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
    ['/a/..', /\.\./],
    ['/a/./b', /segments/],
    ['/.', /segments/],
    ['HTTP://example.com/x', /names a host/],
    ['/:', /placeholder/],
    ['/a/:/b', /placeholder/],
    ['/:a/:a', /twice/],
    ['/:1', /placeholder/],
    ['/:a-b', /placeholder/],
    ['/a\\b', /character/],
    ['/a%00', /character/],
    [`/${Array.from({ length: 20 }, (_, index) => `:p${index}`).join('/')}`, /more than 16/],
  ])('%s is refused with a reason', (from, reason) => expect(match(from, '/')).toMatch(reason))

  test('may have sixteen placeholders', () => {
    const names = Array.from({ length: 16 }, (_, index) => `p${index}`)
    const path = names.map((_, index) => `/${index}`).join('')
    expect(match(names.map((name) => `/:${name}`).join(''), path)).toEqual(
      Object.fromEntries(names.map((name, index) => [name, `${index}`])),
    )
  })

  test('never throws', () => {
    fc.assert(fc.property(fc.string(), fc.string(), (from, path) => void match(`/${from}`, `/${path}`)))
  })

  // Backtracking would need hours for these; then the test ends by its time limit.
  test.each(['/*/:a/:b/:c/:d/z', '/:a/*a/:b/z', '/*a/z'])('%s takes linear time on a hostile path', (from) => {
    expect(match(from, `/${'a/'.repeat(50_000)}`)).toBeUndefined()
    expect(match(from, `/${'a'.repeat(100_000)}`)).toBeUndefined()
  })
})

describe('a destination', () => {
  test('holds a value as one value, wherever it lands', () => {
    const ids = ['1&admin=1#x?y=/%+']
    const at = (to: string): string => {
      const compiled = compileDestination(to, ['id'])
      return 'problem' in compiled ? compiled.problem : compiled.location(ids)
    }
    expect(at('/show?id=:id&z=1')).toBe('/show?id=1%26admin%3D1%23x%3Fy%3D/%25%2B&z=1')
    expect(at('/show#:id')).toBe('/show#1%26admin%3D1%23x%3Fy%3D/%25%2B')
    expect(at('/show/:id')).toBe('/show/1&admin=1%23x%3Fy=/%25+')
    expect(new URL(at('https://example.com/?id=:id')).searchParams.get('id')).toBe('1&admin=1#x?y=/%+')
  })
  test('writes each value as its own place wants it', () => {
    const compiled = compileDestination('/:a/:b/x:a?c=:a&d=:b&:a#:b', ['a', 'b'])
    const values = ['1/&/', '=2']
    expect('problem' in compiled ? compiled.problem : compiled.location(values)).toBe(
      '/1/&//=2/x1/&/?c=1/%26/&d=%3D2&1/%26/#%3D2',
    )
  })
  test('is not a placeholder where only its name is written', () => {
    expect(destination('/slug')).toEqual({ location: '/slug', path: '/slug' })
    expect(destination('/slug/splat')).toEqual({ location: '/slug/splat', path: '/slug/splat' })
  })
  test.each([
    ['/a//b///c', '', '/a/b/c'],
    ['/a/:v', '/x', '/a/x'],
    ['/a/:v/b', 'x/', '/a/x/b'],
    ['/:v/:v', '', '/'],
    [':v', '', undefined],
  ])('%s with %j is the path %s', (to, value, path) => {
    const compiled = compileDestination(to, ['v'])
    expect('problem' in compiled ? undefined : compiled.path([value])).toBe(path)
  })
  test('knows where it leads without building it', () => {
    const text = fc.array(fc.constantFrom('/', 'a', 'b', 'é', ':x', ':y'), { maxLength: 6 }).map((all) => all.join(''))
    const value = fc
      .array(fc.constantFrom('/', 'a', 'b', 'é'), { maxLength: 3 })
      .map((all) => all.join('').replace(/\/+/g, '/'))
    fc.assert(
      fc.property(text, value, value, text, (to, x, y, other) => {
        const compiled = compileDestination(`/${to.replace(/^\/+/, '')}`, ['x', 'y'])
        fc.pre(!('problem' in compiled))
        const values = [x, y]
        const path = compiled.path(values)
        expect(compiled.leadsTo(path, values)).toBe(true)
        for (const elsewhere of [`${path}a`, path.slice(0, -1), path.slice(1), other, `/${other}`])
          expect(compiled.leadsTo(elsewhere, values), elsewhere).toBe(elsewhere === path)
      }),
      { numRuns: 1000 },
    )
  })
  test('uses no more placeholders than an address can hold', () => {
    expect(compileDestination(`/${':id'.repeat(16)}`, ['id'])).not.toHaveProperty('problem')
    expect(compileDestination(`/${':id'.repeat(17)}`, ['id'])).toHaveProperty('problem')
  })
  const values = ['ü b', 'x/?y#z/%']
  const destination = (to: string): { location: string; path: string } | string => {
    const compiled = compileDestination(to, ['slug', 'splat'])
    return 'problem' in compiled
      ? compiled.problem
      : { location: compiled.location(values), path: compiled.path(values) }
  }
  test('encodes what it is filled with and keeps what was written', () => {
    expect(destination('/n/:slug?a=:slug')).toEqual({ location: '/n/%C3%BC%20b?a=%C3%BC%20b', path: '/n/ü b' })
    expect(destination('/n/:splat')).toEqual({ location: '/n/x/%3Fy%23z/%25', path: '/n/x/?y#z/%' })
    expect(destination('/a%20b/é')).toEqual({ location: '/a%20b/%C3%A9', path: '/a b/é' })
    expect(destination('/time/12:30/:other')).toMatchObject({ location: '/time/12:30/:other' })
    expect(destination('https://example.com:8443/:slug')).toMatchObject({
      location: 'https://example.com:8443/%C3%BC%20b',
    })
    expect(destination('HTTP://Example.com:1?a')).toMatchObject({ location: 'HTTP://Example.com:1?a' })
    expect(destination('https://example.com:65535')).toMatchObject({ location: 'https://example.com:65535' })
    expect(destination('/to/https://example.com/')).toMatchObject({ location: '/to/https://example.com/' })
    expect(destination('/\u{1F600}"<a')).toMatchObject({ location: '/%F0%9F%98%80%22%3Ca' })
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
    'https://a:/',
    'https://a:123456/',
    'x https://a/',
  ])('%s is refused', (to) => expect(destination(to)).toMatch(/must/))
  test('without a host is told so', () => expect(destination('https://')).toMatch(/plain host/))
})

test.each([
  ['/a', '/a'],
  ['/', '/'],
  ['/a//b', '/a//b'],
  ['//evil.com', '/evil.com'],
  ['///evil.com', '/evil.com'],
  ['/\\evil.com', '/evil.com'],
  ['\\\\evil.com', '/evil.com'],
  ['evil.com//x', '/evil.com//x'],
  ['?a', '/?a'],
  ['', '/'],
])('%j as an address on this host is %s', (location, expected) => expect(oneSlash(location)).toBe(expected))

test('half of a character is written as the sign for what cannot be read', () => {
  const half = 'a\ud800b'
  expect(encodePath(half)).toBe('a%EF%BF%BDb')
  expect(encodeUnsafe(half)).toBe('a%EF%BF%BDb')
  const compiled = compileDestination('/?q=:q', ['q'])
  expect('problem' in compiled ? '' : compiled.location([half])).toBe('/?q=a%EF%BF%BDb')
})
