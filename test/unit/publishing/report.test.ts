import { describe, expect, test } from 'vitest'
import { scanHtml } from '../../../control/drops/publishing/html/scan.ts'
import { cssLinks, encodeLinks, htmlLinks } from '../../../control/drops/publishing/analysis/links.ts'
import { MAX_WARNINGS, packFiles, unpackFiles, writeReport } from '../../../control/drops/publishing/analysis/report.ts'
import { secretFiles } from '../../../shared/content/secret-files.ts'
import { parseSiteRules } from '../../../control/drops/publishing/manifest/site-rules.ts'

/** Path → content; the report of a site that consists of exactly these, secrets among them. */
function report(
  site: Record<string, string>,
  { redirects = '', unserved = [] as string[], isOver = (): boolean => false } = {},
) {
  const files = Object.entries(site).map(([path, content]) => {
    const links = linksOf(path, content)
    return { path, size: content.length, ...(links && { links: encodeLinks(links) }) }
  })
  const rules = parseSiteRules({ redirects, headers: '' })
  // As a thread is told of them.
  const told = unpackFiles(structuredClone(packFiles(files)))
  return writeReport({ files: told, rules, unserved, secrets: secretFiles(files) }, isOver).warnings
}

function linksOf(path: string, content: string) {
  if (path.endsWith('.html')) return htmlLinks(path, scanHtml(Buffer.from(content)))
  return path.endsWith('.css') ? cssLinks(path, content) : undefined
}

describe('links and assets', () => {
  test('what is there is not mentioned, however it is written', () => {
    const page = `<a href="/">1</a><a href="about">2</a><a href="about/">3</a><a href="./blog/">4</a><a href="/blog">5</a>
      <a href="blog/index.html?x#y">6</a><a href="#top">7</a><img src="a%20b.png"><a href="mailto:x@y">8</a>
      <a href="https://example.com/missing">9</a><img src="data:image/png;base64,AA"><a href="//example.com/x">10</a>
      <link rel=canonical href="https://me.example/"><a href="javascript:void 0">11</a><a href="tel:1">12</a>`
    expect(
      report({ 'index.html': page, 'about.html': '', 'blog/index.html': '<a href="../about">', 'a b.png': '' }),
    ).toEqual([])
  })

  test('missing pages and files are told apart, with the page they are on', () => {
    const warnings = report({
      'index.html': '<a href="/nowhere">x</a>',
      'sub/a.html': '<img src="pic.png"><script src="/app.js"></script>',
    })
    expect(warnings.map(({ code, path }) => [code, path])).toEqual([
      ['missing_page', 'index.html'],
      ['missing_file', 'sub/a.html'],
      ['missing_file', 'sub/a.html'],
    ])
    expect(warnings[1]!.message).toContain('/sub/pic.png')
  })

  test('wrong letter case says how it is written', () => {
    const [warning] = report({ 'index.html': '<img src="Images/Logo.PNG">', 'images/logo.png': '' })
    expect(warning).toMatchObject({
      code: 'wrong_case',
      path: 'index.html',
      message: expect.stringContaining('/images/logo.png'),
    })
  })

  test('a redirect rule answers for a missing file', () => {
    expect(report({ 'index.html': '<a href="/old/x">' }, { redirects: '/old/* /:splat' })).toEqual([])
  })

  test('a base element moves relative links', () => {
    expect(report({ 'index.html': '<base href="/docs/"><a href="a.html">', 'docs/a.html': '' })).toEqual([])
  })

  test('stylesheets', () => {
    const css =
      '/* url(no.png) */ a{background:url("bg.png")} @import "more.css"; b{src:url(../font.woff2)} c{fill:url(#g)}'
    const warnings = report({ 'index.html': '', 'css/a.css': css, 'font.woff2': '' })
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining('/css/bg.png'),
      expect.stringContaining('/css/more.css'),
    ])
  })

  test('things that work on the publisher’s machine only, and things that browsers block', () => {
    const page =
      '<script src="http://localhost:3000/a.js"></script><img src="http://example.com/a.png"><a href="http://example.com">ok</a><img src="file:///tmp/a.png"><img src="http://localhost.example/a.png">'
    expect(report({ 'index.html': page }).map(({ code }) => code)).toEqual([
      'local_reference',
      'local_reference',
      'insecure_reference',
      'insecure_reference',
    ])
  })

  test('where a tutorial or a manual leads its readers is its own affair', () => {
    const page =
      '<a href="http://localhost:3000/">open</a><a href="http://127.0.0.1/">x</a><a href="file:///usr/share">y</a>'
    expect(report({ 'index.html': page })).toEqual([])
  })

  test.each([
    ...['canonical', 'alternate', 'profile', 'pingback', 'preconnect', 'dns-prefetch', 'next', 'prev', 'up', 'home'],
    ...['contents', 'copyright', 'author', 'license', 'search', 'me', 'EditURI', 'https://api.w.org/', 'shortlink', ''],
  ])('rel=%s loads nothing', (rel) => {
    const page = `<link rel="${rel}" href="gone.html"><link rel="${rel}" href="http://example.com/xmlrpc.php">`
    expect(report({ 'index.html': page })).toEqual([])
  })

  test('a link without rel loads nothing', () => {
    expect(report({ 'index.html': '<link rev="made" href="http://example.com/"><link href="gone.css">' })).toEqual([])
  })

  test.each([
    ...['stylesheet', 'icon', 'Shortcut Icon', 'apple-touch-icon', 'manifest', 'preload', 'modulepreload'],
    ...['alternate stylesheet', 'mask-icon'],
  ])('rel=%s is loaded', (rel) => {
    expect(report({ 'index.html': `<link rel="${rel}" href="gone">` })).toMatchObject([{ code: 'missing_file' }])
  })

  test('what stands in a template is for a script to load', () => {
    const page =
      '<template><img src="x.png"><template><a href="y"></template></template><svg><template><image href="z.png"/>'
    expect(report({ 'index.html': page }).map(({ message }) => message)).toEqual([expect.stringContaining('/z.png')])
  })

  test('a folder whose page is index.htm', () => {
    expect(report({ 'index.html': '<a href="sub/"><a href="sub">', 'sub/index.htm': '' })).toEqual([])
  })
})

describe('files', () => {
  test.each([
    '.env',
    'config/.env.local',
    '.git/config',
    'keys/id_rsa',
    'server.pem',
    'tls.key',
    '.npmrc',
    'backup.sql',
  ])('%s looks like a secret', (path) => {
    expect(report({ 'index.html': '', [path]: '' })).toMatchObject([{ code: 'public_secret', path }])
  })
  test.each(['.env.example', 'environment.js', 'git.html', 'keys.html', 'talk.keynote'])('%s does not', (path) => {
    expect(report({ 'index.html': '', [path]: '' })).toEqual([])
  })
  test('a presentation is no key', () => {
    expect(report({ 'index.html': '', 'talk.key': 'x'.repeat(30_000) })).toEqual([])
  })
  test('a repository is one mistake', () => {
    expect(report({ 'index.html': '', '.git/config': '', '.git/HEAD': '' })).toHaveLength(1)
  })
  test('a project instead of its output', () => {
    expect(report({ 'index.html': '', 'package.json': '', 'dist/index.html': '' })).toMatchObject([
      { code: 'nested_index', message: expect.stringContaining('dist/') },
    ])
  })
  test('bad rules keep their line', () => {
    expect(report({ 'index.html': '' }, { redirects: '\nnonsense' })).toMatchObject([
      { code: 'invalid_rule', path: '_redirects', line: 2 },
    ])
  })
})

describe('one warning for each code and target', () => {
  test('says how many files it is about, and names the first', () => {
    const pages = Array.from({ length: 1169 }, (_, index) => [
      `p${index}.html`,
      '<link rel=stylesheet href="/gone.css"><a href="/nowhere"><img src="http://example.com/a.png">',
    ])
    expect(report(Object.fromEntries(pages))).toMatchObject([
      { code: 'insecure_reference', path: 'p0.html', count: 1169 },
      { code: 'missing_page', path: 'p0.html', count: 1169 },
      { code: 'missing_file', path: 'p0.html', count: 1169 },
    ])
  })

  test('a file that is needed on one page and linked on another is two', () => {
    const warnings = report({ 'index.html': '<img src="a.png">', 'b.html': '<a href="a.png">' })
    expect(warnings.map(({ code, count }) => [code, count])).toEqual([
      ['missing_file', 1],
      ['missing_page', 1],
    ])
  })

  test('what is left out is counted by its kind, once', () => {
    const pages = ['a.html', 'b.html'].map((path) => [
      path,
      Array.from({ length: 30 }, (_, index) => `<a href="/m${index}">`).join(''),
    ])
    expect(report(Object.fromEntries(pages)).at(-1)).toMatchObject({ code: 'more_warnings', count: 10 })
  })
})

test('what is never served is named, each kind once', () => {
  const unserved = ['.DS_Store', 'img/.DS_Store', '__MACOSX/._a', '__MACOSX/img/._b', '__MACOSX/c', 'Thumbs.db'].concat(
    ...['.dropway/x', '.well-known/acme-challenge/token'],
  )
  expect(report({ 'index.html': '' }, { unserved }).map(({ code, path, count }) => [code, path, count])).toEqual([
    ['never_served', '.DS_Store', 2],
    ['never_served', '__MACOSX/._a', 3],
    ['never_served', 'Thumbs.db', 1],
    ['never_served', '.dropway/x', 1],
    ['never_served', '.well-known/acme-challenge/token', 1],
  ])
})

test('a site with a thousand mistakes gets a report that can be read, and secrets come first', () => {
  const links = Array.from({ length: 1000 }, (_, index) => `<a href="/missing-${index}">`).join('')
  const warnings = report({ 'index.html': links, '.env': '' })
  expect(warnings.length).toBeLessThanOrEqual(MAX_WARNINGS)
  expect(warnings[0]!.code).toBe('public_secret')
  expect(warnings.at(-1)!.code).toBe('more_warnings')
})

describe('a report that takes too long', () => {
  const site = { 'index.html': '<a href="/nowhere">', 'a.html': '<a href="/nothing">', '.env': '' }

  test('says that it was cut, and keeps what it has found', () => {
    let calls = 0
    const warnings = report(site, { isOver: () => ++calls > 1 })
    expect(warnings.map(({ code }) => code)).toEqual(['public_secret', 'missing_page', 'report_cut'])
  })

  test('never holds more warnings than can be read', () => {
    const links = Array.from({ length: 400 }, (_, index) => `<a href="/m${index}"><img src="/f${index}">`).join('')
    const pages = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`.env.${index}`, '']))
    let calls = 0
    const warnings = report({ 'index.html': links, ...pages }, { isOver: () => ++calls > 300 })
    expect(warnings.length).toBeLessThanOrEqual(MAX_WARNINGS)
    expect(warnings.slice(-2).map(({ code }) => code)).toEqual(['more_warnings', 'report_cut'])
  })
})

test('links to names that no file can have are not looked at', () => {
  const marks = 'a' + '\u0301'.repeat(40_000) + '\u0323'.repeat(40_000)
  expect(report({ 'index.html': `<a href="/${marks}"><a href="/${'x'.repeat(5000)}">` })).toEqual([])
})
