/** What `_redirects` makes of a path. */
import { describe, expect, test } from 'vitest'
import { locate } from '../../../edge/locate/locate.ts'
import { indexManifest } from '../../../edge/locate/site-index.ts'
import { fileOf, manifestOf } from '../../support/manifests.ts'
import type { Rules } from '../../support/manifests.ts'
import { answer, MORE } from './locating.ts'

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
