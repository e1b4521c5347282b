/** `next` decides where a browser goes after a form. It never leads to another site. */
import { expect, test } from 'vitest'
import { safeNext } from '../../../shared/http/safe-next.ts'

const HERE = 'https://own.example'

test.each([
  '/',
  '/sites',
  '/a?b=c&d=%20#e',
  '/claim/x?y=1',
  '/a//b',
  '/?next=//evil.example',
  // Browsers do not decode before they resolve: these are odd paths of our own.
  '/%2fevil.example',
  '/%2F%2Fevil.example',
  '/%5cevil.example',
  '/%09/evil.example',
  '/%00',
  // Dots are resolved within the host.
  '/.//evil.example',
  '/..//evil.example',
  '/@evil.example',
  '/:80',
])('%j is a path of ours', (next) => {
  expect(safeNext(next, '/home')).toBe(next)
  expect(new URL(next, HERE).origin).toBe(HERE)
})

test.each([
  '//evil.example',
  '///evil.example',
  '/\\evil.example',
  '/\\/evil.example',
  '\\\\evil.example',
  '\\/evil.example',
  '/\t/evil.example',
  '/\n/evil.example',
  '/\r/evil.example',
  '\t//evil.example',
  ' //evil.example',
  '\u0000//evil.example',
  'https://evil.example',
  'https:evil.example',
  'javascript:alert(1)',
  'evil.example',
  '@evil.example',
  '?next=/sites',
  '/a\\b',
  '/a\r\nset-cookie: x',
  '/a b',
  '/a\u007f',
  '/ü',
  '/\u2028',
  '/\uff0fevil.example',
  '',
  null,
  undefined,
])('%j leads to the fallback', (next) => {
  expect(safeNext(next, '/home')).toBe('/home')
})

test('no beginning of three ASCII characters leads to another site', () => {
  const ascii = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code))
  const tried = ascii.flatMap((first) =>
    ascii.flatMap((second) => ['/', '\\', 'e'].map((third) => `${first}${second}${third}`)),
  )
  const astray = tried.filter((start) => {
    const next = safeNext(`${start}/evil.example/`, '/')
    return new URL(next, HERE).origin !== HERE
  })
  expect(astray).toEqual([])
})
