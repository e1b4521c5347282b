/** Which file a path shows. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { locate } from '../../../edge/locate/locate.ts'
import type { SiteIndex } from '../../../edge/context.ts'
import { indexFiles, indexManifest, indexSite } from '../../../edge/locate/site-index.ts'
import { manifestOf } from '../../support/manifests.ts'
import { answer, MORE } from './locating.ts'

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
    const headers = [7, 8].map((seconds) => [['cache-control', `max-age=${seconds}`] as [string, string]])
    const kept = {
      files: [
        ...KEPT.map((path) => [path, { file: file!, since: 1, version: 1, headers: 0 }] as const),
        ['plain.js', { file: file!, since: 1, version: 1 }] as const,
      ],
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
    ['/plain.js', {}, '200 plain.js'],
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

  test('a hit does not look among them, a miss does once, however many there are', () => {
    const index = indexManifest(manifestOf(LIVE, {}))
    let lookups = 0
    const files = new Map(Array.from({ length: 10_000 }, (_, number) => [`chunk-${number}.js`, {}] as const))
    files.get = (name) => {
      lookups++
      return Map.prototype.get.call(files, name) as object | undefined
    }
    const beside = { ...index, kept: { files: files as never, longestName: 20 } }
    const lookupsFor = (target: string): number => {
      lookups = 0
      locate(beside, { target, spaFallback: false, fetchDest: undefined })
      return lookups
    }
    expect(['/', '/app.js', '/team', '/docs'].map(lookupsFor)).toEqual([0, 0, 0, 0])
    expect(['/chunk-77.js', '/nothing.js'].map(lookupsFor)).toEqual([1, 1])
    const ofLength = (length: number): string => `/${'x'.repeat(length)}`
    expect([20, 21].map(ofLength).map(lookupsFor)).toEqual([1, 0])
  })
})

describe('what is looked up for a path that names nothing', () => {
  /** How often a map of the index is asked for each target. */
  function countLookups(files: readonly string[], mapOf: (index: SiteIndex) => ReadonlyMap<string, unknown>) {
    const index = indexManifest(manifestOf(files, {}))
    const map = mapOf(index) as Map<string, unknown>
    let lookups = 0
    map.get = (name) => {
      lookups++
      return Map.prototype.get.call(map, name) as unknown
    }
    map.has = (name) => {
      lookups++
      return Map.prototype.has.call(map, name)
    }
    return (target: string): number => {
      lookups = 0
      locate(index, { target, spaFallback: false, fetchDest: undefined })
      return lookups
    }
  }

  test('no file, where the path is longer than the name of any', () => {
    const lookupsFor = countLookups(['0123456789'], ({ files }) => files)
    const targets = [10, 11, 12, 500].map((length) => `/${'x'.repeat(length)}`)
    expect(targets.map(lookupsFor)).toEqual([2, 2, 0, 0])
  })

  test('pages for what is missing, only as deep as there are any, and as long as the names of their folders', () => {
    const lookupsFor = countLookups(['404.html', 'docs/404.html'], ({ notFoundPages }) => notFoundPages.byDirectory)
    expect(['/a', '/a/b', '/a/b/c', '/a/b/c/d/e/f', '/docs/a', '/longer/a'].map(lookupsFor)).toEqual([1, 2, 2, 2, 2, 1])
    const atRoot = countLookups(['404.html'], ({ notFoundPages }) => notFoundPages.byDirectory)
    expect(['/a', '/a/b'].map(atRoot)).toEqual([1, 1])
    const deep = countLookups(['one/two/404.html'], ({ notFoundPages }) => notFoundPages.byDirectory)
    expect(['/a/b/c/d', '/one/two/x'].map(deep)).toEqual([3, 3])
  })
})

describe('an index that is made of the parts of a manifest', () => {
  // "café" written in two ways is one name, and the later of the two files counts.
  const names = [...MORE, '404.html', 'cafe\u0301.html', 'caf\u00e9.html', 'a/b/index.htm', '_headers'].toSorted()
  const manifest = manifestOf(names)

  test.each(Array.from({ length: names.length + 1 }, (_, cut) => cut))('is that of the whole, cut at %i', (cut) => {
    const whole = indexManifest(manifest)
    const parts = [manifest.files.slice(0, cut), manifest.files.slice(cut)].map(indexFiles)
    const { files, longestName, folders, notFoundPages } = indexSite({ ...manifest, files: [] }, parts)
    expect([...files]).toEqual([...whole.files])
    expect([longestName, [...folders]]).toEqual([whole.longestName, [...whole.folders]])
    expect({ ...notFoundPages, byDirectory: [...notFoundPages.byDirectory] }).toEqual({
      ...whole.notFoundPages,
      byDirectory: [...whole.notFoundPages.byDirectory],
    })
  })

  test('says what the names say', () => {
    const { files, folders, notFoundPages, longestName } = indexManifest(manifest)
    expect([...files.keys()]).not.toContain('_headers')
    expect(files.get('caf\u00e9.html')).toBe(new Map(manifest.files).get('caf\u00e9.html'))
    expect([...folders]).toEqual(['a/b', 'about', 'blog', 'docs', 'ordner ü'])
    expect([...notFoundPages.byDirectory.keys()]).toEqual(['', 'docs/'])
    expect(longestName).toBe('.well-known/security.txt'.length)
  })
})
