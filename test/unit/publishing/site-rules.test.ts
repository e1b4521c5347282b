import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseHeaders, parseRedirects, parseSiteRules } from '../../../control/drops/publishing/manifest/site-rules.ts'
import { headerRuleSchema, redirectRuleSchema } from '../../../shared/contracts/manifest.ts'

describe('_redirects', () => {
  test.each([
    ['/old /new', { from: '/old', to: '/new', status: 301, force: false }],
    ['/old   /new\t302', { from: '/old', to: '/new', status: 302, force: false }],
    ['/* /index.html 200', { from: '/*', to: '/index.html', status: 200, force: false }],
    ['/a /b 308!', { from: '/a', to: '/b', status: 308, force: true }],
    [
      '/blog/:year/:slug /:slug?y=:year 301',
      { from: '/blog/:year/:slug', to: '/:slug?y=:year', status: 301, force: false },
    ],
    [
      '/out/* https://example.com/:splat 302 # moved',
      { from: '/out/*', to: 'https://example.com/:splat', status: 302, force: false },
    ],
    ['/gone /404.html 404', { from: '/gone', to: '/404.html', status: 404, force: false }],
    ['/a /b#part', { from: '/a', to: '/b#part', status: 301, force: false }],
  ])('%s', (line, rule) => expect(parseRedirects(line)).toEqual({ rules: [{ ...rule, line: 1 }], invalid: [] }))

  test('comments, blank lines, a byte order mark and any line ending do not count', () => {
    expect(parseRedirects('\ufeff# note\r\n\r\n  /a /b\n\t# more\n').rules).toEqual([
      { from: '/a', to: '/b', status: 301, force: false, line: 3 },
    ])
  })

  test.each([
    ['/only', 'needs a path and a destination'],
    ['old /new', 'must start with /'],
    ['/a /b 999', 'not a status'],
    ['/a /b 301 Country=de', 'not supported'],
    ['/a /b id=:id 301', 'not supported'],
    ['/a https://example.com 200', 'never fetched'],
    ['/a //evil.example', 'starts with one /'],
    ['/a javascript:alert(1)', 'starts with one /'],
    ['/a /a', 'points at itself'],
    ['/a/ /a', 'points at itself'],
    ['/a/* /a/:splat', 'points at itself'],
    ['/* /sub/:splat 301', 'points at itself'],
    ['/a /a 200', 'points at itself'],
    [`/a /${'x'.repeat(2000)}`, 'longer than'],
    ['/a*b*c /x', 'more than one *'],
  ])('the line %s is left out and explained', (line, message) => {
    const { rules, invalid } = parseRedirects(`/ok /fine\n${line}\n/also /good`)
    expect(rules.map((rule) => rule.from)).toEqual(['/ok', '/also'])
    expect(invalid).toEqual([{ path: '_redirects', line: 2, message: expect.stringContaining(message) }])
  })

  test('more rules than anyone writes are cut off with one warning', () => {
    const { rules, invalid } = parseRedirects(Array.from({ length: 3000 }, (_, index) => `/a${index} /b`).join('\n'))
    expect(rules).toHaveLength(2000)
    expect(invalid).toHaveLength(1)
  })
})

describe('_headers', () => {
  test('patterns with their headers, in order', () => {
    const text =
      '/*\n  X-Frame-Options: DENY\n  ! X-Powered-By\n/assets/*\n\tCache-Control: public, max-age=60\n  Link: <a>; rel=b'
    expect(parseHeaders(text)).toEqual({
      rules: [
        {
          from: '/*',
          line: 1,
          set: [
            ['x-frame-options', 'DENY'],
            ['x-powered-by', null],
          ],
        },
        {
          from: '/assets/*',
          line: 4,
          set: [
            ['cache-control', 'public, max-age=60'],
            ['link', '<a>; rel=b'],
          ],
        },
      ],
      invalid: [],
    })
  })

  test.each([
    ['Strict-Transport-Security: max-age=0'],
    ['X-Content-Type-Options: none'],
    ['dropway-version: 9'],
    ['Location: https://evil.example'],
    ['Set-Cookie: a=b'],
    ['X-Accel-Redirect: /private/file'],
    ['X-Sendfile: /private/file'],
    ['X-LiteSpeed-Location: /private/file'],
    ['Content-Length: 5'],
    ['Transfer-Encoding: chunked'],
    ['! strict-transport-security'],
  ])('%s is refused', (line) => {
    const { rules, invalid } = parseHeaders(`/*\n  ${line}\n  X-A: 1`)
    expect(rules).toEqual([{ from: '/*', line: 1, set: [['x-a', '1']] }])
    expect(invalid).toEqual([{ path: '_headers', line: 2, message: expect.stringContaining('cannot be changed') }])
  })

  test.each([
    ['/*\n  no colon', 2, 'name and a value'],
    ['  X-A: 1', 1, 'below the path'],
    ['X-A: 1', 1, 'indented'],
    ['relative\n  X-A: 1', 1, 'must start with /'],
    ['/*\n  bad name: 1', 2, 'not a header name'],
    ['/*\n  X-A: \u0001', 2, 'cannot hold'],
    ['/*\n  X-A: \u20ac', 2, 'cannot hold'],
  ])('%j is explained', (text, line, message) => {
    expect(parseHeaders(text).invalid).toEqual([{ path: '_headers', line, message: expect.stringContaining(message) }])
  })
})

describe('what one line of _headers does to the others', () => {
  test('a header that is not indented is left out alone', () => {
    expect(parseHeaders('/*\n  X-A: 1\nX-B: 2\n  X-C: 3')).toEqual({
      rules: [
        {
          from: '/*',
          line: 1,
          set: [
            ['x-a', '1'],
            ['x-c', '3'],
          ],
        },
      ],
      invalid: [{ path: '_headers', line: 3, message: expect.stringContaining('indented') }],
    })
  })

  test('lines of one list are joined, Cache-Control among them; of a header with one value the last counts', () => {
    const text =
      '/*\n  Cache-Control: public\n  cache-control: max-age=60\n  Link: <a>\n  Link: <b>\n  X-Frame-Options: DENY\n  X-Frame-Options: SAMEORIGIN'
    expect(parseHeaders(text)).toEqual({
      rules: [
        {
          from: '/*',
          line: 1,
          set: [
            ['cache-control', 'public, max-age=60'],
            ['link', '<a>, <b>'],
            ['x-frame-options', 'SAMEORIGIN'],
          ],
        },
      ],
      invalid: [{ path: '_headers', line: 7, message: expect.stringContaining('replaces') }],
    })
  })

  test('a header without a value is left out, and nothing else', () => {
    expect(parseHeaders('/*\n  x-empty:\n  x-a: 1')).toEqual({
      rules: [{ from: '/*', line: 1, set: [['x-a', '1']] }],
      invalid: [{ path: '_headers', line: 2, message: expect.stringContaining('no value') }],
    })
  })
})

describe('headers that no answer could carry', () => {
  const block = (path: string, kilobytes: number): string =>
    [path, ...Array.from({ length: kilobytes }, (_, index) => `  x-${index}: ${'v'.repeat(995)}`)].join('\n')

  test('rules that meet on one path may be so large together', () => {
    const { rules, invalid } = parseHeaders([block('/*', 20), block('/a/*', 20), block('/a/b', 5)].join('\n'))
    expect(rules.map((rule) => rule.from)).toEqual(['/*', '/a/b'])
    expect(invalid).toEqual([{ path: '_headers', line: 22, message: expect.stringContaining('bytes of headers') }])
  })

  test('a wider rule below a narrower one counts too', () => {
    const { rules } = parseHeaders([block('/a/*', 20), block('/*', 20)].join('\n'))
    expect(rules.map((rule) => rule.from)).toEqual(['/a/*'])
  })

  test('rules of different folders do not meet', () => {
    const { rules, invalid } = parseHeaders(
      ['/a/*', '/b/*', '/c/:id/x', '/d'].map((path) => block(path, 20)).join('\n'),
    )
    expect(rules).toHaveLength(4)
    expect(invalid).toEqual([])
  })

  test('all rules of a file together have a bound', () => {
    const { rules, invalid } = parseHeaders(Array.from({ length: 7 }, (_, index) => block(`/${index}`, 20)).join('\n'))
    expect(rules).toHaveLength(5)
    expect(invalid).toHaveLength(2)
  })
})

test('a file of mistakes is not read to its end', () => {
  for (const parse of [parseRedirects, parseHeaders]) {
    const { invalid } = parse('nonsense\n'.repeat(10_000))
    expect(invalid).toHaveLength(201)
    expect(invalid.at(-1)!.message).toContain('ignored')
  }
})

test('any text gives rules that the manifest takes, and never throws', () => {
  const text = fc.string({
    unit: fc.constantFrom(...'/ab:*! \n\t#0123?.é\0'.split(''), '301', 'https://', ' X-A: b', 'Location: x'),
  })
  fc.assert(
    fc.property(text, text, (redirects, headers) => {
      const rules = parseSiteRules({ redirects, headers })
      for (const rule of rules.redirects) redirectRuleSchema.parse(rule)
      for (const rule of rules.headers) {
        headerRuleSchema.parse(rule)
        for (const [name, value] of rule.set) expect(`${name}: ${value}`).not.toMatch(/[\r\n\0]|^location:/)
      }
    }),
    { numRuns: 1000 },
  )
})
