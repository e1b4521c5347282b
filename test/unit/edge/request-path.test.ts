/** The path of a request target, held against a slow reading of the same rules, byte by byte. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readPath, type RequestPath } from '../../../edge/locate/request-path.ts'

const path = (text: string, query = ''): RequestPath => ({ kind: 'path', path: text, query })
const malformed: RequestPath = { kind: 'malformed' }

describe('a target', () => {
  test.each<[string, RequestPath]>([
    ['/', path('/')],
    ['/a/b.html', path('/a/b.html')],
    ['/a?', path('/a', '?')],
    ['/a?b=c?d', path('/a', '?b=c?d')],
    ['/?a', path('/', '?a')],
    ['/%61?b=%20', path('/a', '?b=%20')],
    ['/%61', path('/a')],
    ['/a%3Fb?c', path('/a?b', '?c')],
    ['//a///b//', path('/a/b/')],
    ['/.a/..b/...', path('/.a/..b/...')],
    ['/a.', path('/a.')],
    ['/a..', path('/a..')],
    ['//', path('/')],
    ['/.', malformed],
    ['/..', malformed],
    ['/a/.', malformed],
    ['/./a', malformed],
    ['/a/..', malformed],
    ['/a/../b', malformed],
    ['/a/%2e%2e', malformed],
    ['/a%2f..%2fb', malformed],
    ['/a%2Fb', { kind: 'unreachable', path: '/a/b' }],
    ['/a%2fb', { kind: 'unreachable', path: '/a/b' }],
    ['/~!$&()*+,;=:@\'"<>^`{|}', path('/~!$&()*+,;=:@\'"<>^`{|}')],
    ['/a b', path('/a b')],
    ['/a\\b', path('/a\\b')],
    ['/a\u007f', malformed],
    ['/a\u001f', malformed],
    ['/a%1F', malformed],
    // UTF-8 that arrives unencoded, as latin1; two runs of it, and a byte that is none.
    ['/\u00c3\u00bcb\u00c3\u00a9', path('/übé')],
    ['/e\u00cc\u0081', path('/é')],
    ['/\u00fc', malformed],
    ['/\u0080', malformed],
    ['/\u0100', malformed],
    ['', malformed],
    ['a', malformed],
    ['a/b', malformed],
    ['?a', malformed],
  ])('%j', (target, expected) => expect(readPath(target)).toEqual(expected))
})

function isControl(char: string): boolean {
  const code = char.codePointAt(0)!
  return code < 0x20 || (code >= 0x7f && code < 0xa0)
}

/** Nothing is fast here, and every rule has its own line. */
function slowly(target: string): RequestPath {
  const [raw = '', ...query] = target.split('?')
  if ([...raw].some((char) => char.codePointAt(0)! > 0xff)) return malformed
  const bytes: number[] = []
  for (let rest = raw; rest !== '';) {
    const escape = /^%([0-9a-f]{2})/i.exec(rest)
    if (rest.startsWith('%') && !escape) return malformed
    bytes.push(escape ? Number.parseInt(escape[1]!, 16) : rest.charCodeAt(0))
    rest = rest.slice(escape ? 3 : 1)
  }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes))
  } catch {
    return malformed
  }
  const segments = text
    .split('/')
    .filter((segment, index, all) => segment !== '' || index === 0 || index === all.length - 1)
  if (!raw.startsWith('/') || [...text].some(isControl)) return malformed
  if (segments.some((segment) => segment === '.' || segment === '..')) return malformed
  const joined = segments.join('/').normalize('NFC')
  if (/%2f/i.test(raw)) return { kind: 'unreachable', path: joined }
  return path(joined, query.length > 0 ? `?${query.join('?')}` : '')
}

test('any target is read as the rules say', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '/',
      '/',
      '.',
      '..',
      '//',
      '%2f',
      '%2E',
      '%',
      '%4',
      '%c3%a9',
      '?',
      '\\',
      '#',
      ' ',
      'a',
      'index.html',
    ),
    fc.constantFrom(
      '\u0000',
      '\u001f',
      '!',
      '~',
      '\u007f',
      '\u0080',
      '\u00c3\u00a9',
      '\u00ff',
      '\u0100',
      'e\u00cc\u0081',
      '%9f',
    ),
    fc.string({ unit: 'binary', maxLength: 2 }),
  )
  const target = fc.tuple(fc.constantFrom('/', '/', '/', ''), fc.array(piece, { maxLength: 8 }))
  fc.assert(
    fc.property(target, ([start, pieces]) => {
      const text = start + pieces.join('')
      expect(readPath(text)).toEqual(slowly(text))
    }),
    { numRuns: 1500 },
  )
})
