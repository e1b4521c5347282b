import fc from 'fast-check'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { PathSet, pathProblem } from '../../../control/drops/publishing/files/paths.ts'
import { quotePath } from '../../../shared/values/quoted-path.ts'

describe('paths that may be published', () => {
  test.each([
    'index.html',
    'a/b/c.txt',
    '.well-known/x',
    '.env',
    '...',
    'a b',
    'ü/ñ',
    '__proto__',
    'a..b',
    '%2e%2e/x',
    'x'.repeat(255),
  ])('%j', (name) => {
    expect(pathProblem(name)).toBeUndefined()
  })

  test.each([
    '',
    '/',
    'a/',
    '/a',
    'a//b',
    '.',
    '..',
    'a/..',
    './a',
    'a\\b',
    'C:a',
    'a\0',
    'a\nb',
    '\u007f',
    '\ud800',
    'x'.repeat(256),
    'é'.repeat(128),
    'a/'.repeat(32) + 'b',
  ])('not %j', (name) => {
    expect(pathProblem(name)).toBeDefined()
  })

  test('whatever passes stays inside any folder it is joined to', () => {
    const text = fc.string({ unit: fc.constantFrom('.', '..', '/', '\\', 'a', ':', '\0', ' ', 'é'), maxLength: 12 })
    fc.assert(
      fc.property(text, (name) => {
        if (pathProblem(name) !== undefined) return
        expect(path.posix.join('/root', name)).toBe(`/root/${name}`)
        expect(path.win32.normalize(`root\\${name}`)).toMatch(/^(?:\.\\)?root\\/)
      }),
      { numRuns: 3000 },
    )
  })
})

test('a quoted path is one short, printable line', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (name) => {
      const quoted = quotePath(name)
      expect(quoted.isWellFormed()).toBe(true)
      // oxlint-disable-next-line no-control-regex -- that is the point
      expect(quoted).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/)
      expect(quoted.length).toBeLessThanOrEqual(130)
    }),
  )
})

test('a set of paths refuses what could not lie in one folder', () => {
  const paths = new PathSet()
  expect(['a/b', 'c', 'A/B'].map((name) => paths.add(name))).toEqual([undefined, undefined, undefined])
  expect(paths.add('a/b')).toBe('appears twice')
  expect(paths.add('a')).toBe('is both a file and a folder')
  expect(paths.add('c/d')).toBe('lies in a folder that is also a file')
})
