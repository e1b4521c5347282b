import { describe, expect, test } from 'vitest'
import type { Snippets } from '../../../edge/context.ts'
import { assetHeaders, markupOf, redirectHeaders } from '../../../edge/rewrite/headers.ts'
import type { AssetFacts } from '../../../edge/rewrite/headers.ts'
import { fileOf } from '../../support/manifests.ts'

const snippets: Snippets = {
  markup: 'html',
  key: 'k1',
  head: Buffer.from(''),
  body: Buffer.from(''),
  csp: { scriptSrc: ["'sha256-x'"], connectSrc: [], imgSrc: [], styleSrc: [], frameSrc: [] },
  variesByLanguage: true,
}
const variant = { hash: 'b'.repeat(64), size: 1 }

function headers(changes: Partial<AssetFacts> = {}): Record<string, string> {
  const list = assetHeaders({
    file: fileOf('page.html'),
    status: 200,
    custom: [],
    encoding: 'identity',
    snippets: undefined,
    versionNumber: 7,
    isProtected: false,
    isPreview: false,
    ...changes,
  })
  expect(new Set(list.map(([name]) => name)).size, 'no header twice').toBe(list.length)
  return Object.fromEntries(list)
}
const tag = fileOf('page.html').hash.slice(0, 32)

test('a page of an ordinary drop', () => {
  expect(headers()).toEqual({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'max-age=0, must-revalidate',
    etag: `"${tag}"`,
    'x-content-type-options': 'nosniff',
    'strict-transport-security': 'max-age=31536000',
    'dropway-version': '7',
  })
})

test('a name that carries a content hash is kept for ever', () => {
  const file = fileOf('app.8f3e2a.js', { immutable: true })
  expect(headers({ file })['cache-control']).toBe('max-age=31536000, immutable')
  expect(headers({ file, isProtected: true })['cache-control']).toBe('private, no-store')
})

test('every representation has its own strong ETag', () => {
  const file = fileOf('page.html', { encodings: { br: variant, gzip: variant } })
  const tags = [
    headers({ file }),
    headers({ file, encoding: 'br' }),
    headers({ file, encoding: 'gzip' }),
    headers({ file, snippets }),
    headers({ file, snippets, encoding: 'br' }),
    headers({ file, snippets: { ...snippets, key: 'k2' } }),
    // Not scanned: the snippets stand elsewhere in it.
    headers({ file: { ...file, injection: undefined }, snippets }),
    headers({ file: { ...file, injection: undefined } }),
  ].map(({ etag }) => etag)
  const names = ['', '-br', '-gzip', '-k1', '-k1-br', '-k2', '-k1-end', '']
  expect(tags).toEqual(names.map((name) => `"${tag}${name}"`))
})

test('vary names exactly what the answer depends on', () => {
  const file = fileOf('page.html', { encodings: { br: variant } })
  expect(headers()['vary']).toBeUndefined()
  expect(headers({ file: fileOf('page.html', { encodings: {} }) })['vary']).toBeUndefined()
  expect(headers({ file })['vary']).toBe('accept-encoding')
  expect(headers({ file, encoding: 'br' })).toMatchObject({ vary: 'accept-encoding', 'content-encoding': 'br' })
  for (const encoding of ['br', 'zstd', 'gzip'] as const)
    expect(headers({ file: fileOf('page.html', { encodings: { [encoding]: variant } }) })['vary']).toBe(
      'accept-encoding',
    )
  // Compressed on the way, as snippets are: nothing is stored, and the answer depends on the header all the same.
  expect(headers({ encoding: 'gzip' })['vary']).toBe('accept-encoding')
  expect(headers({ snippets })['vary']).toBe('accept-language')
  expect(headers({ file, hasMarkdown: true })['vary']).toBe('accept-encoding, accept')
  expect(headers({ isProtected: true, isForProgram: true })['vary']).toBe('cookie, authorization, dropway-guest')
  expect(headers({ file, snippets, isProtected: true })['vary']).toBe('accept-encoding, accept-language, cookie')
})

test('protected drops are for this visitor only, previews are not for search engines', () => {
  expect(headers({ isProtected: true })).toMatchObject({
    'cache-control': 'private, no-store',
    'x-robots-tag': 'noindex',
    'referrer-policy': 'same-origin',
    vary: 'cookie',
  })
  expect(headers({ isPreview: true })).toMatchObject({
    'cache-control': 'no-store',
    'x-robots-tag': 'noindex',
  })
})

test('what a program opened with a token may be read by pages elsewhere, and nothing else may', () => {
  expect(headers({ isProtected: true, isForProgram: true })['access-control-allow-origin']).toBe('*')
  expect(headers({ isProtected: true })['access-control-allow-origin']).toBeUndefined()
})

test('in the frame of the review page its own headers allow that frame too, and nothing is asked elsewhere', () => {
  const custom = [
    ['x-frame-options', 'DENY'],
    ['content-security-policy', "frame-ancestors 'none'; script-src 'self'"],
  ] as const
  const framed = { ...snippets, frameAncestor: 'https://r.test' }
  const shown = headers({ custom, snippets: framed })
  expect(shown['x-frame-options']).toBeUndefined()
  expect(shown['content-security-policy']).toBe("frame-ancestors https://r.test; script-src 'self' 'sha256-x'")
  expect(headers({ snippets: framed })['content-security-policy']).toBeUndefined()
  expect(headers({ custom, snippets })).toMatchObject({
    'x-frame-options': 'DENY',
    'content-security-policy': "frame-ancestors 'none'; script-src 'self' 'sha256-x'",
  })
})

test('a 404 is never stored and has no ETag', () => {
  const custom = [['cache-control', 'max-age=60']] as const
  expect(headers({ status: 404, custom })['cache-control']).toBe('no-store')
  expect(headers({ status: 404 })['etag']).toBeUndefined()
  expect(headers({ status: 404, isProtected: true })['cache-control']).toBe('private, no-store')
})

describe('_headers', () => {
  test('may set content type and cache policy, add headers and remove defaults', () => {
    const custom = [
      ['content-type', 'text/plain'],
      ['cache-control', 'public, max-age=60'],
      ['x-frame-options', 'DENY'],
      ['access-control-allow-origin', '*'],
    ] as const
    expect(headers({ custom })).toMatchObject(Object.fromEntries(custom))
    expect(headers({ custom: [['cache-control', null]] })['cache-control']).toBeUndefined()
    expect(headers({ custom: [['content-type', null]] })['content-type']).toBe('text/html; charset=utf-8')
  })

  test.each([
    'strict-transport-security',
    'x-content-type-options',
    'dropway-version',
    'dropway-anything',
    'location',
    'content-length',
    'etag',
    'content-encoding',
    'vary',
    'set-cookie',
    'x-accel-redirect',
    'x-sendfile',
    'x-litespeed-location',
    'transfer-encoding',
    'connection',
    'date',
    'bad name',
    '',
  ])('may not touch %j', (name) => {
    expect(headers({ custom: [[name, 'x']] })).toEqual(headers())
    expect(headers({ custom: [[name, null]] })).toEqual(headers())
  })

  test('says nothing on a protected drop, and cannot index a preview', () => {
    const custom = [
      ['cache-control', 'public'],
      ['x-robots-tag', 'all'],
      ['x-a', '1'],
    ] as const
    expect(headers({ custom, isProtected: true })).toEqual(headers({ isProtected: true }))
    expect(headers({ custom, isPreview: true })['x-robots-tag']).toBe('noindex')
  })

  test('cannot break the message', () => {
    expect(headers({ custom: [['x-a', 'a\r\nset-cookie: b']] })).toEqual(headers())
    expect(headers({ custom: [['x-a', '\u{1F600}']] })).toEqual(headers())
  })

  test('a policy is extended by what the snippets need, and only then', () => {
    const custom = [['content-security-policy', "script-src 'self'"]] as const
    expect(headers({ custom })['content-security-policy']).toBe("script-src 'self'")
    expect(headers({ custom, snippets })['content-security-policy']).toBe("script-src 'self' 'sha256-x'")
    const reported = [['content-security-policy-report-only', "script-src 'self'"]] as const
    expect(headers({ custom: reported, snippets })).toMatchObject({
      'content-security-policy-report-only': "script-src 'self' 'sha256-x'",
    })
    const other = [['x-policy', "script-src 'self'"]] as const
    expect(headers({ custom: other, snippets })['x-policy']).toBe("script-src 'self'")
  })
})

test('a page is what is served as HTML, scanned or not', () => {
  const page = { file: fileOf('page.html'), custom: [], isProtected: false }
  expect(markupOf(page)).toBe('html')
  expect(markupOf({ ...page, custom: [['content-type', 'text/html;charset=windows-1252']] })).toBe('html')
  expect(markupOf({ ...page, custom: [['content-type', 'text/plain']] })).toBeUndefined()
  expect(markupOf({ ...page, custom: [['content-type', 'text/plain']], isProtected: true })).toBe('html')
  expect(markupOf({ ...page, custom: [['content-type', null]] })).toBe('html')
  expect(markupOf({ ...page, file: fileOf('app.js') })).toBeUndefined()
  expect(markupOf({ ...page, file: fileOf('page.html', { injection: undefined }) })).toBe('html')
  expect(markupOf({ ...page, file: fileOf('about'), custom: [['content-type', 'Text/HTML']] })).toBe('html')
  const about = { ...page, file: fileOf('about') }
  expect(markupOf({ ...about, custom: [['content-type', 'text/html']], isProtected: true })).toBeUndefined()
  // As XML it is a page all the same: no one sheds the badge by a header.
  for (const type of ['application/xhtml+xml', 'Application/XHTML+XML; charset=utf-8'])
    for (const file of [page.file, about.file])
      expect(markupOf({ ...page, file, custom: [['content-type', type]] })).toBe('xhtml')
  expect(markupOf({ ...page, file: fileOf('page.xhtml', { type: 'application/xhtml+xml' }) })).toBe('xhtml')
  expect(markupOf({ ...page, custom: [['content-type', 'application/xml']] })).toBeUndefined()
  for (const type of [
    'text/html5',
    'text/htmlx;a',
    'x-text/html',
    'text/html x',
    'application/xhtml+xml5',
    'x-application/xhtml+xml',
    'application/xhtml+xml x',
  ])
    expect(markupOf({ ...page, custom: [['content-type', type]] }), type).toBeUndefined()
  expect(markupOf({ ...page, custom: [['content-type', ' text/html ; a']] })).toBe('html')
  expect(markupOf({ ...page, custom: [['content-type', ' application/xhtml+xml ; a']] })).toBe('xhtml')
  // A scanned page is one, whatever its type is said to be; a header of its own decides.
  const scanned = fileOf('page.html', { type: 'text/x-page' })
  expect(markupOf({ ...page, file: scanned })).toBe('html')
  expect(markupOf({ ...page, file: scanned, custom: [['content-type', 'text/plain']] })).toBeUndefined()
})

test('a redirect is never kept for long, nor by others on a protected drop', () => {
  const facts = { versionNumber: 7, isProtected: false, isPreview: false }
  expect(Object.fromEntries(redirectHeaders(facts))).toEqual({
    'cache-control': 'max-age=0, must-revalidate',
    'x-content-type-options': 'nosniff',
    'strict-transport-security': 'max-age=31536000',
    'dropway-version': '7',
  })
  expect(Object.fromEntries(redirectHeaders({ ...facts, isProtected: true }))).toMatchObject({
    'cache-control': 'private, no-store',
  })
})
