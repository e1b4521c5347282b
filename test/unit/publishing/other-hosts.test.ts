/** Files of other hosts: what is taken from them means what it meant there, and what is not taken is told. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parseAllHeaders } from '@netlify/headers-parser'
import { parseAllRedirects } from '@netlify/redirect-parser'
import { getTransformedRoutes } from '@vercel/routing-utils'
import { afterAll, describe, expect, test } from 'vitest'
import type { TranslatedFile } from '../../../control/drops/publishing/manifest/other-hosts/host-file.ts'
import { isHostFile } from '../../../control/drops/publishing/manifest/other-hosts/host-file.ts'
import { translateHostFile } from '../../../control/drops/publishing/manifest/other-hosts/translate.ts'
import { parseSiteRules, type SiteRules } from '../../../control/drops/publishing/manifest/site-rules.ts'
import { compileHeaders } from '../../../shared/content/header-sets.ts'
import { compileDestination, compilePattern } from '../../../shared/content/path-pattern.ts'
import { createRandom } from '../../support/random.ts'

const LAYOUT = { hasFlatPages: true, hasFolderPages: true }
const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-hosts-'))
afterAll(() => rmSync(folder, { recursive: true }))

function rulesOf(file: TranslatedFile, text: string, own = { redirects: '', headers: '' }): SiteRules {
  return parseSiteRules(own, [{ path: file, ...translateHostFile(file, text, LAYOUT) }])
}

const ignoredIn = (rules: SiteRules): readonly string[] => rules.hostFiles.flatMap(({ ignored }) => ignored)

function written(name: string, text: string): string {
  const file = path.join(folder, name)
  writeFileSync(file, text)
  return file
}

/** Rules that both spell alike; every other one has a detail of its own. */
function generatedRedirects(count: number, seed: number) {
  const random = createRandom(seed)
  return Array.from({ length: count }, (_, index) => {
    const from = `/${random.pick(['old', 'blog', 'a/b', 'docs'])}${index}${random.pick(['', '/*', '/:id', '/:year/:slug'])}`
    const name = from.endsWith('*') ? '/:splat' : (/\/:.*$/.exec(from)?.[0] ?? '')
    const to = random.pick([`/new${name}`, `https://example.org/x${name}`, '/index.html', '/search?q=1'])
    const status = random.pick(to.startsWith('https') ? [301, 302, 307, 308] : [200, 301, 302, 303, 307, 308, 404])
    return { from, to, status, force: random.chance(0.3) }
  })
}

describe('netlify.toml', () => {
  const redirects = generatedRedirects(120, 3)
  const toml = redirects
    .map(
      ({ from, to, status, force }) =>
        `[[redirects]]\nfrom = ${JSON.stringify(from)}\nto = ${JSON.stringify(to)}\nstatus = ${status}\nforce = ${force}\n`,
    )
    .join('\n')

  test('redirects are those that its own parser reads, and so are those of _redirects', async () => {
    const theirs = await parseAllRedirects({
      redirectsFiles: [],
      netlifyConfigPath: written('netlify.toml', toml),
      configRedirects: [],
      minimal: true,
    })
    const expected = (theirs.redirects as typeof redirects).map(({ from, to, status, force }) => ({
      from,
      to,
      status,
      force,
    }))
    const taken = ({ redirects: rules }: SiteRules) =>
      rules.map(({ from, to, status, force }) => ({ from, to, status, force }))
    expect(theirs.errors).toEqual([])
    expect(expected).toHaveLength(redirects.length)
    expect(taken(rulesOf('netlify.toml', toml))).toEqual(expected)
    const lines = redirects
      .map(({ from, to, status, force }) => `${from} ${to} ${status}${force ? '!' : ''}`)
      .join('\n')
    expect(taken(parseSiteRules({ redirects: lines, headers: '' }))).toEqual(expected)
  })

  test('headers are those that its own parser reads, and so are those of _headers', async () => {
    const random = createRandom(5)
    const values = {
      'Cache-Control': 'max-age=60',
      'X-Frame-Options': 'DENY',
      'X-A': 'b',
      'Referrer-Policy': 'no-referrer',
    }
    const blocks = Array.from({ length: 60 }, (_, index) => ({
      from: `/${random.pick(['assets', 'blog'])}${index}${random.pick(['', '/*', '/:id'])}`,
      set: Object.entries(values).filter(([name], at) => at === 0 || random.chance(0.5) || name === ''),
    }))
    const config = blocks
      .map(({ from, set }) => {
        const lines = set.map(([name, value]) => `${JSON.stringify(name)} = ${JSON.stringify(value)}`)
        return `[[headers]]\nfor = ${JSON.stringify(from)}\n[headers.values]\n${lines.join('\n')}\n`
      })
      .join('\n')
    const theirs = await parseAllHeaders({
      headersFiles: [],
      netlifyConfigPath: written('headers.toml', config),
      configHeaders: [],
      minimal: true,
    })
    const expected = theirs.headers.map(({ for: from, values: set }) => ({ from, set: lowerCase(Object.entries(set)) }))
    const taken = ({ headers }: SiteRules) => headers.map(({ from, set }) => ({ from, set }))
    expect(theirs.errors).toEqual([])
    expect(taken(rulesOf('netlify.toml', config))).toEqual(expected)
    const text = blocks.map(({ from, set }) => `${from}\n${set.map(([n, v]) => `  ${n}: ${v}`).join('\n')}`).join('\n')
    expect(taken(parseSiteRules({ redirects: '', headers: text }))).toEqual(expected)
  })

  const lowerCase = (entries: [string, string][]): [string, string][] =>
    entries.map(([name, value]) => [name.toLowerCase(), value])

  test('what it says beside that is named', () => {
    const rules = rulesOf(
      'netlify.toml',
      `[build]\npublish = "dist"\n[[plugins]]\npackage = "x"\n
       [[redirects]]\nfrom = "/a"\nto = "/b"\nconditions = { Country = ["de"] }
       [[redirects]]\nfrom = "/proxy/*"\nto = "https://api.example.org/:splat"\nstatus = 200
       [[redirects]]\nfrom = "/c"\nto = "/d"\nquery = {}`,
    )
    expect(rules.redirects.map(({ from }) => from)).toEqual(['/c'])
    expect(ignoredIn(rules)).toEqual([
      expect.stringMatching(/^redirects\[0\]: conditions/),
      expect.stringMatching(/^build, plugins: /),
      expect.stringMatching(/^redirects\[1\]: Status 200/),
    ])
  })
})

/** Where a visitor of a path is sent by our rules: the first that matches. */
function location(rules: SiteRules, visited: string): [number, string] | undefined {
  for (const { from, to, status } of rules.redirects) {
    const pattern = compilePattern(from)
    const values = 'match' in pattern ? pattern.match(visited) : undefined
    if (!values || 'problem' in pattern) continue
    const destination = compileDestination(to, pattern.names)
    if ('location' in destination) return [status, destination.location(values)]
  }
  return undefined
}

describe('vercel.json', () => {
  const redirects = [
    { source: '/old', destination: '/new' },
    { source: '/once', destination: '/twice', permanent: false },
    { source: '/see', destination: '/other', statusCode: 303 },
    { source: '/blog/:slug', destination: '/posts/:slug', permanent: true },
    { source: '/docs/:path*', destination: '/manual/:path*' },
    { source: '/guide/:rest(.*)', destination: 'https://example.org/:rest', permanent: false },
    { source: '/:year/:month/archive', destination: '/archive/:month/:year' },
    { source: '/img/(.*)', destination: '/images/$1' },
  ]
  const visited = [
    '/old',
    '/once',
    '/see',
    '/blog/one',
    '/docs/a',
    '/docs/a/b/c',
    '/guide/x/y',
    '/2024/05/archive',
  ].concat(['/img/a.png', '/img/a/b.png', '/nothing', '/blog', '/blog/a/b', '/oldest', '/2024/archive'])

  test('redirects lead where its own routes lead', () => {
    const { routes, error } = getTransformedRoutes({ redirects })
    expect(error).toBeNull()
    const theirs = (target: string): [number, string] | undefined => {
      for (const route of routes ?? []) {
        const { src, headers, status } = route as { src: string; headers?: { Location?: string }; status?: number }
        const match = headers?.Location === undefined ? null : new RegExp(src).exec(target)
        if (!match) continue
        return [status!, headers!.Location!.replace(/\$(\d)/g, (_, group: string) => match[Number(group)] ?? '')]
      }
      return undefined
    }
    const rules = rulesOf('vercel.json', JSON.stringify({ redirects }))
    expect(ignoredIn(rules)).toEqual([])
    expect(visited.map((target) => location(rules, target))).toEqual(visited.map(theirs))
    expect(rules.redirects.every(({ force }) => force)).toBe(true)
  })

  test('clean URLs lead where its own routes lead', () => {
    const rules = rulesOf('vercel.json', JSON.stringify({ cleanUrls: true }))
    expect(location(rules, '/about.html')).toEqual([308, '/about'])
    expect(location(rules, '/a/b.html')).toEqual([308, '/a/b'])
    expect(location(rules, '/index.html')).toEqual([308, '/'])
    expect(location(rules, '/docs/index.html')).toEqual([308, '/docs/'])
    expect(location(rules, '/about')).toBeUndefined()
  })

  test('rewrites come after files, headers are set, the rest is named', () => {
    const rules = rulesOf(
      'vercel.json',
      JSON.stringify({
        rewrites: [
          { source: '/(.*)', destination: '/index.html' },
          { source: '/api/(.*)', destination: 'https://x.example/$1' },
        ],
        headers: [{ source: '/assets/(.*)', headers: [{ key: 'Cache-Control', value: 'max-age=60' }] }],
        redirects: [
          { source: '/a', has: [{ type: 'cookie', key: 'b' }], destination: '/b' },
          { source: '/p/:id(\\d+)', destination: '/q/:id' },
        ],
        functions: {},
        trailingSlash: false,
      }),
    )
    expect(rules.redirects).toEqual([{ from: '/*', to: '/index.html', status: 200, force: false, line: 1 }])
    expect(rules.headers).toEqual([{ from: '/assets/*', set: [['cache-control', 'max-age=60']], line: 1 }])
    expect(ignoredIn(rules)).toEqual([
      expect.stringMatching(/^trailingSlash: /),
      expect.stringMatching(/^redirects\[0\]: the condition "has"/),
      expect.stringMatching(/^redirects\[1\]: its source/),
      expect.stringMatching(/^functions: /),
      expect.stringMatching(/^rewrites\[1\]: Status 200/),
    ])
  })
})

test('firebase.json', () => {
  const rules = rulesOf(
    'firebase.json',
    JSON.stringify({
      hosting: {
        public: 'dist',
        cleanUrls: true,
        redirects: [
          { source: '/foo', destination: '/bar', type: 301 },
          { source: '/blog/:post*', destination: 'https://blog.example/:post', type: 302 },
          { regex: '/x(\\d)', destination: '/y', type: 301 },
        ],
        rewrites: [
          { source: '/api/**', function: 'api' },
          { source: '**', destination: '/index.html' },
        ],
        headers: [{ source: '**/*.@(js|css)', headers: [{ key: 'Cache-Control', value: 'max-age=60' }] }],
        appAssociation: 'AUTO',
      },
      firestore: {},
    }),
  )
  expect(rules.redirects.slice(3).map(({ from, to, status, force }) => [from, to, status, force])).toEqual([
    ['/foo', '/bar', 301, true],
    ['/blog/*', 'https://blog.example/:splat', 302, true],
    ['/*', '/index.html', 200, false],
  ])
  expect(location(rules, '/a/b.html')).toEqual([301, '/a/b'])
  expect(rules.headers.map(({ from }) => from)).toEqual(['/*.js', '/*.css'])
  expect(compileHeaders(rules.headers).for('/deep/in/app.css').list).toEqual([['cache-control', 'max-age=60']])
  expect(ignoredIn(rules)).toEqual([
    expect.stringMatching(/^hosting\.redirects\[2\]: its source/),
    expect.stringMatching(/^hosting\.rewrites\[0\]: it runs a program/),
    expect.stringMatching(/^appAssociation: /),
    expect.stringMatching(/^firestore: /),
  ])
})

test('staticwebapp.config.json', () => {
  const rules = rulesOf(
    'staticwebapp.config.json',
    JSON.stringify({
      routes: [
        { route: '/old/*', redirect: '/new', statusCode: 301 },
        { route: '/login', rewrite: '/sign-in.html' },
        { route: '/admin/*', allowedRoles: ['administrator'] },
        { route: '/img/*.{png,jpg}', headers: { 'Cache-Control': 'max-age=60' } },
      ],
      navigationFallback: { rewrite: '/index.html', exclude: ['/img/*'] },
      responseOverrides: { 401: { redirect: '/login' } },
      globalHeaders: { 'X-Frame-Options': 'DENY' },
      mimeTypes: {},
    }),
  )
  expect(rules.redirects.map(({ from, to, status, force }) => [from, to, status, force])).toEqual([
    ['/old/*', '/new', 301, true],
    ['/login', '/sign-in.html', 200, true],
    ['/img/*', '/404.html', 404, false],
    ['/*', '/index.html', 200, false],
  ])
  expect(rules.headers.map(({ from }) => from)).toEqual(['/*', '/img/*.png', '/img/*.jpg'])
  expect(ignoredIn(rules)).toEqual([
    expect.stringMatching(/^routes\[2\]: allowedRoles protects nothing here; everyone can read \/admin\/\*/),
    expect.stringMatching(/^responseOverrides\.401: /),
    expect.stringMatching(/^mimeTypes: /),
  ])
})

describe('our own files win', () => {
  const config = JSON.stringify({
    redirects: [
      { source: '/a', destination: '/theirs' },
      { source: '/b', destination: '/theirs' },
    ],
    headers: [
      {
        source: '/(.*)',
        headers: [
          { key: 'X-A', value: 'theirs' },
          { key: 'Link', value: '<theirs>' },
        ],
      },
    ],
  })
  const rules = rulesOf('vercel.json', config, {
    redirects: '/a /ours 302',
    headers: '/x/*\n  Link: <ours>\n/x/y\n  Link: <more>',
  })

  test('the first redirect that matches is ours', () => {
    expect(location(rules, '/a')).toEqual([302, '/ours'])
    expect(location(rules, '/b')).toEqual([308, '/theirs'])
  })

  test('headers of ours are joined with each other, and not with theirs', () => {
    const headers = (visited: string) => Object.fromEntries(compileHeaders(rules.headers).for(visited).list)
    expect(headers('/x/y')).toEqual({ 'x-a': 'theirs', link: '<ours>, <more>' })
    expect(headers('/z')).toEqual({ 'x-a': 'theirs', link: '<theirs>' })
  })

  test('and so do ours within the limits', () => {
    const many = Array.from({ length: 1999 }, (_, index) => `/own${index} /x`).join('\n')
    const full = rulesOf('vercel.json', config, { redirects: many, headers: '' })
    expect(full.redirects).toHaveLength(2000)
    expect(full.redirects.at(-1)).toMatchObject({ from: '/a' })
    expect(ignoredIn(full)).toEqual([expect.stringMatching(/^redirects\[1\]: only 2000 rules count/)])
  })
})

describe('what cannot be read is told and costs nothing', () => {
  test.each<[TranslatedFile, string]>([
    ['netlify.toml', '[[redirects\nfrom ='],
    ['netlify.toml', 'a = '.repeat(1000)],
    ['netlify.toml', `a = ${'['.repeat(5000)}`],
    ['netlify.toml', `${'[a.'.repeat(2000)}`],
    ['vercel.json', '{'],
    ['vercel.json', `${'['.repeat(100_000)}`],
    ['firebase.json', ''],
    ['staticwebapp.config.json', '\u0000'],
    ['vercel.json', ' '.repeat(600_000)],
  ])('%s %#', (file, text) => {
    const { redirects, headers, hostFiles } = rulesOf(file, text)
    expect([redirects, headers]).toEqual([[], []])
    expect(hostFiles[0]?.ignored[0]).toMatch(
      /^It (?:cannot be read: .{1,200}|is larger than 500 kB and was not read\.)$/,
    )
  })

  test.each<[TranslatedFile, unknown]>([
    [
      'vercel.json',
      { redirects: [null, 1, 'x', {}, { source: 1, destination: [] }], headers: { a: 1 }, rewrites: 'x' },
    ],
    ['vercel.json', [1]],
    ['firebase.json', { hosting: [{}, {}] }],
    [
      'firebase.json',
      { hosting: { redirects: [{ source: '/a b', destination: '/c d' }], headers: [{ source: '/x' }] } },
    ],
    [
      'staticwebapp.config.json',
      { routes: [null, { route: 'x' }], navigationFallback: 3, globalHeaders: { 'a b': 'c\nd' } },
    ],
    [
      'vercel.json',
      {
        headers: [
          {
            source: '/a',
            headers: [
              { key: 'Set-Cookie', value: 'a' },
              { key: 'X', value: 'a\r\nb: c' },
            ],
          },
        ],
      },
    ],
  ])('%s %#: odd values', (file, value) => {
    const { redirects, headers } = rulesOf(file, JSON.stringify(value))
    expect(redirects.every(({ from }) => from.startsWith('/'))).toBe(true)
    expect(headers).toEqual([])
  })
})

test.each([
  ['netlify.toml', true],
  ['sub/netlify.toml', false],
  ['.htaccess', true],
  ['sub/.HTACCESS', true],
  ['Web.config', true],
  ['_worker.js', true],
  ['_worker.js/index.js', true],
  ['my_worker.js', false],
  ['vercel.json.txt', false],
  ['web.config.md', false],
])('%s is for another host: %s', (name, expected) => {
  expect(isHostFile(name)).toBe(expected)
})
