import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Intent } from '../../../edge/context.ts'
import { locate } from '../../../edge/locate/locate.ts'
import { indexManifest } from '../../../edge/locate/site-index.ts'
import { fileOf, manifestOf } from '../../support/manifests.ts'
import type { Rules } from '../../support/manifests.ts'

const FILES = ['index.html', 'about.html', 'about/index.html', 'blog/index.html', 'page.html'] as const
const MORE = [
  ...FILES,
  'app.js',
  'LICENSE',
  '.env',
  '.well-known/security.txt',
  'old.htm',
  'docs/index.html',
  'docs/404.html',
  'docs/deep/x.html',
  'with space.html',
  'übersicht.html',
  'ordner ü/index.html',
  'a#b.html',
  'q?x.html',
  '100%.html',
  '__proto__',
  'constructor.html',
  '_redirects',
  '.dropway/x.html',
] as const

interface Options {
  readonly spa?: boolean
  readonly dest?: string
  readonly files?: readonly string[]
  readonly rules?: Rules
}

function ask(target: string, { spa = false, dest, files = MORE, rules = {} }: Options = {}): Intent {
  return locate(indexManifest(manifestOf(files, rules)), { target, spaFallback: spa, fetchDest: dest })
}

/** One word for an intent: `200 page.html`, `301 /about/`, `404`, `400`. */
function answer(target: string, options: Options = {}): string {
  const intent = ask(target, options)
  switch (intent.kind) {
    case 'asset':
      return `${intent.status} ${intent.path}`
    case 'redirect':
      return `${intent.status} ${intent.location}`
    case 'missing':
      return '404'
    case 'malformed':
      return '400'
    default:
      return intent satisfies never
  }
}

test('the page of a folder may be called index.htm, unless it has an index.html', () => {
  const files = ['index.html', 'sub/index.htm', 'both/index.html', 'both/index.htm']
  expect(
    ['/sub/', '/sub', '/sub/index.htm', '/both/', '/both', '/sub/index'].map((target) => answer(target, { files })),
  ).toEqual(['200 sub/index.htm', '301 /sub/', '200 sub/index.htm', '200 both/index.html', '301 /both/', '404'])
})

describe('a path finds its file', () => {
  test.each([
    ['/', '200 index.html'],
    ['/index.html', '200 index.html'],
    ['/index', '200 index.html'],
    ['/about.html', '200 about.html'],
    ['/blog/index.html', '200 blog/index.html'],
    ['/blog/index', '200 blog/index.html'],
    ['/about', '301 /about/'],
    ['/blog', '301 /blog/'],
    ['/blog?a=1&b=%20', '301 /blog/?a=1&b=%20'],
    ['/blog?', '301 /blog/'],
    ['/about/', '200 about/index.html'],
    ['/blog/', '200 blog/index.html'],
    ['/page', '200 page.html'],
    ['/page?x', '200 page.html'],
    ['/page/', '301 /page'],
    ['/page/?x=1', '301 /page?x=1'],
    ['/page.html/', '404'],
    ['/missing', '404'],
    ['/app.js', '200 app.js'],
    ['/app.js/', '404'],
    ['/app', '404'],
    ['/LICENSE', '200 LICENSE'],
    ['/.env', '200 .env'],
    ['/.well-known/security.txt', '200 .well-known/security.txt'],
    ['/old', '404'],
    ['/old.htm', '200 old.htm'],
    ['/About', '404'],
    ['/with%20space', '200 with space.html'],
    ['/%C3%BCbersicht', '200 übersicht.html'],
    ['/u%CC%88bersicht', '200 übersicht.html'],
    ['/Ã¼bersicht', '200 übersicht.html'],
    ['/ordner%20%C3%BC', '301 /ordner%20%C3%BC/'],
    ['/a%23b', '200 a#b.html'],
    ['/q%3Fx', '200 q?x.html'],
    ['/100%25', '200 100%.html'],
    ['/%61bout.html', '200 about.html'],
    ['/__proto__', '200 __proto__'],
    ['/constructor', '200 constructor.html'],
    ['/toString', '404'],
  ])('%s → %s', (target, expected) => expect(answer(target)).toBe(expected))

  test('a name that a Mac wrote in two code points is found by the one that people type', () => {
    expect(answer('/caf%C3%A9', { files: ['cafe\u0301.html'] })).toBe('200 café.html')
  })
})

test('a file that is only an extension is not the first page', () => {
  expect(answer('/', { files: ['.html'] })).toBe('404')
  expect(answer('/.html', { files: ['.html'] })).toBe('200 .html')
})

describe('nothing of the service or of no one is served', () => {
  test.each([
    ['/_redirects', '404'],
    ['/_headers', '404'],
    ['/.dropway/x', '404'],
    ['/.dropway', '404'],
    ['/.dropway/unlock', '404'],
    ['/.well-known/acme-challenge/token', '404'],
    ['/.well-known/acme-challenge', '404'],
  ])('%s → %s, also with the fallback on', (target, expected) => {
    expect(answer(target)).toBe(expected)
    expect(answer(target, { spa: true })).toBe(expected)
  })
})

describe('tricks with slashes, dots and bytes', () => {
  test.each([
    ['//evil.com', '404'],
    ['//evil.com/', '404'],
    ['//blog', '301 /blog/'],
    ['///blog', '301 /blog/'],
    ['//blog//', '200 blog/index.html'],
    ['//', '200 index.html'],
    ['/\\evil', '404'],
    ['/\\blog', '404'],
    ['/%5Cevil', '404'],
    ['/%2f%2fevil', '404'],
    ['/%2Fblog', '404'],
    ['/blog%2Findex.html', '404'],
    ['/docs%2F..%2Fpage.html', '400'],
    ['/../page.html', '400'],
    ['/..', '400'],
    ['/blog/../page.html', '400'],
    ['/blog/./index.html', '400'],
    ['/%2e%2e/page.html', '400'],
    ['/.%2e/page.html', '400'],
    ['/...', '404'],
    ['/%', '400'],
    ['/%zz', '400'],
    ['/%C3', '400'],
    ['/%00', '400'],
    ['/page%00.html', '400'],
    ['/page\u0000', '400'],
    ['/page%0d%0aset-cookie:x', '400'],
    ['/%7f', '400'],
    ['', '400'],
    ['page.html', '400'],
    ['*', '400'],
    ['https://evil.com/page.html', '400'],
    ['?x', '400'],
    ['/\u{1F600}', '400'],
    ['/\u0161bout.html', '400'],
  ])('%j → %s', (target, expected) => expect(answer(target)).toBe(expected))

  test('a query cannot smuggle a line break or a backslash into Location', () => {
    expect(answer('/blog?a=\r\nset-cookie: x&b=\\')).toBe('301 /blog/?a=%0D%0Aset-cookie:%20x&b=%5C')
  })
})

describe('a missing path', () => {
  test('with the fallback on is the first page', () => {
    expect(answer('/any/where?x', { spa: true })).toBe('200 index.html')
    expect(answer('/any/where', { spa: true, dest: 'document' })).toBe('200 index.html')
    expect(answer('/any/where', { spa: true, dest: '' })).toBe('200 index.html')
    expect(answer('/api/thing', { spa: true, dest: 'empty' })).toBe('200 index.html')
  })

  test.each(
    `script style image font audio video track manifest json xslt worker sharedworker serviceworker audioworklet
     paintworklet`.split(/\s+/),
  )('with the fallback on is never fed to a %s', (dest) =>
    expect(answer('/missing.js', { spa: true, dest })).toBe('404'),
  )

  test('with the fallback on, real files and redirects stay what they are', () => {
    expect(answer('/page', { spa: true })).toBe('200 page.html')
    expect(answer('/blog', { spa: true })).toBe('301 /blog/')
    expect(answer('/blog%2Fx', { spa: true })).toBe('404')
    expect(answer('/..', { spa: true })).toBe('400')
  })

  test('shows the nearest 404.html up the tree', () => {
    expect(answer('/docs/deep/y')).toBe('404 docs/404.html')
    expect(answer('/docs/y')).toBe('404 docs/404.html')
    expect(answer('/y')).toBe('404')
    const files = [...MORE, '404.html']
    expect(answer('/y/z', { files })).toBe('404 404.html')
    expect(answer('/docs/y', { files })).toBe('404 docs/404.html')
    expect(answer('/docs%2Fy', { files })).toBe('404 docs/404.html')
    expect(answer('/404.html', { files })).toBe('200 404.html')
  })

  test('shows the 404.html of a directory to what is in it alone', () => {
    const files = ['a/404.html', 'a/b/c/404.html', 'abc/x.html']
    expect(answer('/a/b/c/x', { files })).toBe('404 a/b/c/404.html')
    expect(answer('/a/b/c/d/e/x', { files })).toBe('404 a/b/c/404.html')
    expect(answer('/a/b/c', { files })).toBe('404 a/404.html')
    expect(answer('/a/b/', { files })).toBe('404 a/404.html')
    expect(answer('/a', { files })).toBe('404')
    expect(answer('/abc/y', { files })).toBe('404')
    expect(answer('/', { files })).toBe('404')
    expect(answer(`/a/${'x/'.repeat(50)}`, { files })).toBe('404 a/404.html')
    expect(answer(`/${'long'.repeat(50)}/x`, { files: [...files, '404.html'] })).toBe('404 404.html')
  })

  test('shows the nearest 404.html, also where others lie deeper', () => {
    const files = ['404.html', 'a/404.html', 'x/y/z/404.html']
    expect(answer('/a/q', { files })).toBe('404 a/404.html')
    expect(answer('/q', { files })).toBe('404 404.html')
    expect(answer('/x/y/q', { files })).toBe('404 404.html')
  })

  test('has no page among files that only end like one', () => {
    expect(answer('/x', { files: ['not-404.html'] })).toBe('404')
    expect(answer('/a/x', { files: ['a/x404.html'] })).toBe('404')
  })

  test('in a drop without a first page stays missing with the fallback on', () => {
    expect(answer('/x', { spa: true, files: ['a.html'] })).toBe('404')
  })
})

describe('_redirects', () => {
  const rules: Rules = {
    redirects: [
      '/old /page 301',
      '/old /never 302',
      '/temp /page?from=temp#top 302',
      '/news/* /blog/:splat 301',
      '/post/:year/:slug /blog/:slug/:year 308',
      '/out https://example.com/landing 302',
      '/out/* https://example.com/:splat 307',
      '/see /page 303',
      '/page /elsewhere 301',
      '/about.html /elsewhere 301!',
      '/app/* /index.html 200',
      '/clean /docs 200',
      '/lost/* /missing.html 200',
      '/secret/* /page.html 404',
      '/hidden/* /nothing.html 404',
      '/self /self 301',
      '/slash /slash/ 301',
      '/a%20b /page 301',
      '/ünder /page 301',
      '/to-ü /ünder 301',
      '/proxy https://example.com/ 200',
      '/evil/* //evil.com/:splat 301',
      '/host/:name https://:name.example.com/ 301',
      '/empty/* /:splat/x 301',
      '/frag /page#a#b 302',
      '/top /#top 302',
      '/gone /docs/404.html 404',
      '/gone-page /docs 404',
      '/gone-away https://example.com/ 404',
    ],
  }
  test.each([
    ['/old', '301 /page'],
    ['/old/', '301 /page'],
    ['/old?x=1', '301 /page?x=1'],
    ['/older', '404'],
    ['/temp?x=1', '302 /page?from=temp&x=1#top'],
    ['/news', '301 /blog/'],
    ['/news/', '301 /blog/'],
    ['/news/a/b%20c?x', '301 /blog/a/b%20c?x'],
    ['/newsletter', '404'],
    ['/post/2024/hello', '308 /blog/hello/2024'],
    ['/post/2024/', '404'],
    ['/post/2024/a/b', '404'],
    ['/out', '302 https://example.com/landing'],
    ['/out/a?b', '307 https://example.com/a?b'],
    ['/out//evil.com', '307 https://example.com/evil.com'],
    ['/out/@evil.com', '307 https://example.com/@evil.com'],
    ['/see', '303 /page'],
    ['/page', '200 page.html'],
    ['/about.html', '301 /elsewhere'],
    ['/app/x/y', '200 index.html'],
    ['/app', '200 index.html'],
    ['/app.js', '200 app.js'],
    ['/clean', '200 docs/index.html'],
    ['/lost/x', '404'],
    ['/secret/x', '404 page.html'],
    ['/hidden/x', '404'],
    ['/self', '404'],
    ['/slash', '301 /slash/'],
    ['/slash/', '404'],
    ['/a%20b', '301 /page'],
    ['/%C3%BCnder', '301 /page'],
    ['/to-%C3%BC', '301 /%C3%BCnder'],
    ['/proxy', '404'],
    ['/evil/x', '404'],
    ['/host/evil.com%23', '404'],
    ['/empty/', '301 /x'],
    ['/empty//evil.com', '301 /evil.com/x'],
    ['/empty/%5Cevil.com', '301 /%5Cevil.com/x'],
    ['/news/%0d%0a', '400'],
    ['/news/%2F%2Fevil.com', '404'],
    ['/frag?x=1#y', '302 /page?x=1#y#a#b'],
    ['/top?x', '302 /?x#top'],
    ['/gone', '404 docs/404.html'],
    ['/gone-page', '404 docs/index.html'],
    ['/gone-away', '404'],
  ])('%s → %s', (target, expected) => expect(answer(target, { rules })).toBe(expected))

  test('the first rule that matches wins, also over a later forced one', () => {
    const redirects = ['/* /index.html 200', '/page /elsewhere 301!']
    expect(answer('/page', { rules: { redirects } })).toBe('200 page.html')
    expect(answer('/page', { rules: { redirects: redirects.toReversed() } })).toBe('301 /elsewhere')
  })

  test('a rule for everything does not loop on its own target', () => {
    const redirects = ['/* /landing 302!']
    expect(answer('/x', { rules: { redirects } })).toBe('302 /landing')
    expect(answer('/landing', { rules: { redirects } })).toBe('404')
    expect(answer('/landing', { rules: { redirects }, files: [...MORE, 'landing.html'] })).toBe('200 landing.html')
  })

  test('a rule that answers 404 shows its page to whatever asks, or the nearest one', () => {
    const rules = { redirects: ['/docs/old/* /page.html 404', '/docs/gone/* /none.html 404'] }
    expect(answer('/docs/old/x', { rules, dest: 'script' })).toBe('404 page.html')
    expect(answer('/docs/gone/x', { rules })).toBe('404 docs/404.html')
    expect(answer('/docs/gone/x', { rules, spa: true })).toBe('404 docs/404.html')
  })

  test('no rule shows the rules', () => {
    expect(answer('/x', { rules: { redirects: ['/x /_redirects 200'] } })).toBe('404')
  })

  test('a rewrite to what is not a page is for scripts too', () => {
    const rules = { redirects: ['/lib/* /app.js 200'] }
    expect(answer('/lib/1.2/app.js', { rules, dest: 'script' })).toBe('200 app.js')
  })

  test('a forced rewrite without its page leaves what no one has to the fallback', () => {
    const rules = { redirects: ['/page /none.html 200!'] }
    expect(answer('/page', { rules })).toBe('404')
    expect(answer('/page', { rules, spa: true })).toBe('200 index.html')
  })

  test('a rule may lead to the same path elsewhere', () => {
    expect(answer('/here', { rules: { redirects: ['/here https://example.com/here 301'] } })).toBe(
      '301 https://example.com/here',
    )
  })

  test('a rewrite to a page that is served under another path takes it from there', () => {
    expect(answer('/x', { rules: { redirects: ['/x /page/ 200'] } })).toBe('200 page.html')
    expect(answer('/x', { rules: { redirects: ['/x /nothing/ 200'] } })).toBe('404')
  })

  test('rules that cannot be read are none', () => {
    const rules: Rules = {
      redirects: ['/a/*/* /page 301', '/:1 /page 301', '/b //evil.com 301', '/c /page 301'],
      headers: [
        ['/a/*/*', [['x-a', '1']]],
        ['/c', [['x-a', '2']]],
      ],
    }
    const index = indexManifest(manifestOf(MORE, rules))
    expect(index.redirects.rules.map(({ rule }) => rule.from)).toEqual(['/c'])
    expect(index.headers.for('/c').list).toEqual([['x-a', '2']])
    expect(answer('/a/b/c', { rules })).toBe('404')
    expect(answer('/b', { rules })).toBe('404')
  })

  test('a rewrite of everything is a single-page app', () => {
    const rules = { redirects: ['/* /index.html 200'] }
    expect(answer('/any', { rules })).toBe('200 index.html')
    expect(answer('/any', { rules, dest: 'script' })).toBe('404')
    expect(answer('/blog', { rules })).toBe('301 /blog/')
    expect(answer('/', { rules, files: ['a.html'] })).toBe('404')
  })

  test('a page that was not scanned is a page too: no script gets it', () => {
    const manifest = manifestOf([], { redirects: ['/* /index.html 200'] })
    manifest.files.push(['index.html', fileOf('index.html', { injection: undefined })])
    const index = indexManifest(manifest)
    const kindFor = (fetchDest: string): string => locate(index, { target: '/any', spaFallback: false, fetchDest }).kind
    expect([kindFor('document'), kindFor('script')]).toEqual(['asset', 'missing'])
  })
})

describe('what a rule makes of a path', () => {
  const rules = { redirects: ['/s/* /:splat/:splat/:splat 302', '/q/:id /show?id=:id 302'] }
  test('is an address that can be sent, or 400', () => {
    expect(answer('/s/a', { rules })).toBe('302 /a/a/a')
    expect(answer(`/s/${'a'.repeat(8000)}`, { rules })).toBe('400')
    // 16,384 characters with the slashes are the most.
    expect(answer(`/s/${'a'.repeat(5459)}?bcd`, { rules })).toMatch(/^302 .{16384}$/)
    expect(answer(`/s/${'a'.repeat(5459)}?bcde`, { rules })).toBe('400')
  })
  test('lets no one add a parameter', () => {
    expect(answer('/q/1%26admin=1', { rules })).toBe('302 /show?id=1%26admin%3D1')
    expect(answer('/q/1%26admin=1?b=2', { rules })).toBe('302 /show?id=1%26admin%3D1&b=2')
  })
})

describe('_headers', () => {
  test('that no client takes are an error, those that fit are shared', () => {
    const long = (count: number): Rules => ({
      headers: Array.from({ length: count }, (_, index) => [`/*`, [[`x-${index}`, 'v'.repeat(1000)]]]),
    })
    expect(() => ask('/page', { rules: long(40) })).toThrow('bytes of headers')
    const index = indexManifest(manifestOf(MORE, long(20)))
    expect(index.headers.for('/page')).toBe(index.headers.for('/about/'))
  })
  test('may be 32,768 bytes, names and values counted', () => {
    const sized = (chars: number): Rules => ({
      headers: [
        ['/*', [['x-long', 'v'.repeat(30_000)]]],
        [
          '/page',
          [
            ['x-rest', 'v'.repeat(chars)],
            ['x-none', null],
          ],
        ],
      ],
    })
    expect(() => ask('/page', { rules: sized(32_768 - 30_000 - 18) })).not.toThrow()
    expect(() => ask('/page', { rules: sized(32_768 - 30_000 - 17) })).toThrow('32769 bytes of headers')
    expect(() => ask('/about/', { rules: sized(32_768) })).not.toThrow()
  })
  test('of one set have one name, whichever version they are of, and no rule means no name', () => {
    const indexOf = (value: string, from = '/page') =>
      indexManifest(manifestOf(MORE, { headers: [[from, [['x-a', value]]]] })).headers
    expect(indexOf('1').for('/page').id).toMatch(/^[\w-]{16}$/)
    expect(indexOf('1').for('/page').id).toBe(indexOf('1', '/*').for('/page').id)
    expect(indexOf('1').for('/page').id).not.toBe(indexOf('2').for('/page').id)
    expect(indexOf('1').for('/about/')).toEqual({ id: '', list: [] })
    expect(indexManifest(manifestOf(MORE)).headers.for('/page')).toEqual({ id: '', list: [] })
  })
  test('are put together once for up to 64 sets', () => {
    const numbers = Array.from({ length: 65 }, (_, number) => number)
    const headers = numbers.map((number) => [`/${number}`, [['x-a', `${number}`]]] as const)
    const index = indexManifest(manifestOf([], { headers }))
    const first = index.headers.for('/0')
    for (const number of numbers.slice(0, 64)) index.headers.for(`/${number}`)
    expect(index.headers.for('/0')).toBe(first)
    index.headers.for('/64')
    expect(index.headers.for('/0')).toEqual(first)
    expect(index.headers.for('/0')).not.toBe(first)
  })
  const rules: Rules = {
    headers: [
      [
        '/*',
        [
          ['x-a', '1'],
          ['cache-control', 'max-age=60'],
        ],
      ],
      [
        '/docs/*',
        [
          ['x-a', '2'],
          ['cache-control', 'max-age=90'],
          ['x-b', 'b'],
        ],
      ],
      [
        '/docs/deep/*',
        [
          ['x-b', null],
          ['link', '</a>'],
          ['link', '</b>'],
        ],
      ],
    ],
  }
  const custom = (target: string): unknown => {
    const intent = ask(target, { rules })
    return intent.kind === 'asset' ? Object.fromEntries(intent.custom.list) : intent
  }
  test('every matching rule counts: single values are replaced, lists grow, null removes', () => {
    expect(custom('/page')).toEqual({ 'x-a': '1', 'cache-control': 'max-age=60' })
    expect(custom('/docs/')).toEqual({ 'x-a': '1, 2', 'cache-control': 'max-age=90', 'x-b': 'b' })
    expect(custom('/docs/deep/x')).toEqual({
      'x-a': '1, 2',
      'cache-control': 'max-age=90',
      'x-b': null,
      link: '</a>, </b>',
    })
  })
  test('they apply to the path that was asked for', () => {
    expect(ask('/page', { rules: { headers: [['/page.html', [['x-a', '1']]]] } })).toMatchObject({
      custom: { list: [] },
    })
  })
})

describe('whatever is asked', () => {
  const index = indexManifest(
    manifestOf([...MORE, '404.html'], {
      redirects: [
        '/r/* /:splat 301',
        '/s/:a/:b /:b/:a 302',
        '/x/* https://example.com/:splat 301',
        '/w/* /:splat 200',
        '/f/* /:splat 308!',
      ],
      headers: [['/*', [['x-a', '1']]]],
    }),
  )
  const piece = fc.oneof(
    fc.constantFrom(
      '/',
      '//',
      '\\',
      '%2f',
      '%5c',
      '%2e%2e',
      '..',
      '.',
      '%00',
      '%',
      '%C3%BC',
      '?',
      '#',
      '@',
      ':',
      'evil.com',
      '\t',
      '\r\n',
    ),
    fc.constantFrom('r', 's', 'x', 'w', 'f', 'about', 'blog', 'docs', 'index', '.html', '.dropway', '__proto__'),
    fc.string({ unit: 'binary', maxLength: 4 }),
  )
  const target = fc.oneof(
    fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join('')}`),
    fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('/')),
    fc.string({ unit: 'binary' }),
  )

  test('it is answered, from this drop, and never leads elsewhere by a trick', () => {
    fc.assert(
      fc.property(
        target,
        fc.boolean(),
        fc.option(fc.constantFrom('script', 'document', ''), { nil: undefined }),
        (asked, spaFallback, fetchDest) => {
          const intent = locate(index, { target: asked, spaFallback, fetchDest })
          if (intent.kind === 'asset') {
            expect(index.files.get(intent.path)).toBe(intent.file)
            expect(intent.path).not.toBe('_redirects')
          }
          if (intent.kind === 'redirect') {
            expect(intent.location).toMatch(/^(?:\/(?!\/)|https:\/\/example\.com\/)[\x21-\x5b\x5d-\x7e]*$/)
          }
        },
      ),
      { numRuns: 5000 },
    )
  })

  test('a plain path and its fully encoded form have the same answer', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^(?:\/[a-z._-]{1,8}){0,4}\/?$/), (path) => {
        const encoded = path.replace(/[^/]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
        const request = { spaFallback: false, fetchDest: undefined }
        expect(locate(index, { ...request, target: encoded })).toEqual(locate(index, { ...request, target: path }))
      }),
    )
  })
})

describe('files of former versions', () => {
  const LIVE = ['index.html', 'app.js', 'docs/index.html', 'team.html']
  const KEPT = ['old.js', 'app.js', 'docs', 'team', 'moved/x.js', 'rewritten/x.js', 'gone/x.js', 'with space.css']
  const RULES = `/moved/* /elsewhere/:splat 301
/rewritten/* /index.html 200
/gone/* /index.html 404`

  function answerWith(
    target: string,
    { rules = '', spa = false, dest }: { rules?: string; spa?: boolean; dest?: string } = {},
  ) {
    const [file] = manifestOf(['x.js'], {}).files.map(([, each]) => each)
    const headers = [[['cache-control', 'max-age=7'] as [string, string]]]
    const kept = {
      files: KEPT.map((path) => [path, { file: file!, since: 1, version: 1, headers: 0 }] as const),
      headers,
    }
    const manifest = { ...manifestOf(LIVE, { redirects: rules === '' ? [] : rules.split('\n') }), kept: kept as never }
    const intent = locate(indexManifest(manifest), { target, spaFallback: spa, fetchDest: dest })
    if (intent.kind !== 'asset') return intent.kind === 'redirect' ? `${intent.status} ${intent.location}` : intent.kind
    return `${intent.status} ${intent.path}${intent.custom.list.length > 0 ? ' of a former version' : ''}`
  }

  test.each([
    ['/old.js', {}, '200 old.js of a former version'],
    ['/old.js?v=2', {}, '200 old.js of a former version'],
    ['/with%20space.css', {}, '200 with space.css of a former version'],
    ['/app.js', {}, '200 app.js'],
    ['/docs', {}, '301 /docs/'],
    ['/team', {}, '200 team.html'],
    ['/old', {}, 'missing'],
    ['/old.js/', {}, 'missing'],
    ['/older.js', {}, 'missing'],
    ['/moved/x.js', { rules: RULES }, '301 /elsewhere/x.js'],
    ['/rewritten/x.js', { rules: RULES }, '200 rewritten/x.js of a former version'],
    ['/rewritten/y.js', { rules: RULES }, '200 index.html'],
    ['/gone/x.js', { rules: RULES }, '200 gone/x.js of a former version'],
    ['/old.js', { rules: '/* /index.html 200' }, '200 old.js of a former version'],
    ['/old.js', { rules: '/* /index.html 200!' }, '200 index.html'],
    ['/old.js', { rules: '/* /app.js 302' }, '302 /app.js'],
    ['/old.js', { spa: true }, '200 old.js of a former version'],
    ['/older.js', { spa: true, dest: 'script' }, 'missing'],
    [`/${'x'.repeat(500)}`, {}, 'missing'],
  ])('%s %o: %s', (target, options, wanted) => {
    expect(answerWith(target, options)).toBe(wanted)
  })
})
