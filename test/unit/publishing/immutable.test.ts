/** Which names browsers may keep for a year: held against what generators write, and against what people write. */
import { describe, expect, test } from 'vitest'
import { immutablePaths, NOTHING_LOADED } from '../../../control/drops/publishing/manifest/immutable.ts'
import { buildSite, generators, sha256 } from '../../support/generated-sites.ts'

/** Builds of each generator that are looked at. */
const SEEDS = Array.from({ length: 40 }, (_, seed) => seed)
/** Their hashed names lie at the root, beside pages: only `_headers` can say so. */
const AT_THE_ROOT = ['Angular', 'Gatsby', 'Parcel']

const CONTENT = sha256('content')

function filesOf(...paths: string[]) {
  return paths.map((path) => ({ path, hash: sha256(path) }))
}

describe('the file’s own SHA-256 in its name', () => {
  const number = BigInt(`0x${CONTENT}`)
  const inBase = (base: bigint, digits: string): string => {
    let text = ''
    for (let rest = number; rest > 0n; rest /= base) text = digits[Number(rest % base)] + text
    return text
  }
  const letters = 'abcdefghijklmnopqrstuvwxyz'
  const forms = {
    hex: CONTENT,
    base36: number.toString(36),
    base62: inBase(62n, `0123456789${letters}${letters.toUpperCase()}`),
    'base62, capitals first': inBase(62n, `0123456789${letters.toUpperCase()}${letters}`),
    base64url: Buffer.from(CONTENT, 'hex').toString('base64url'),
  }
  const isKept = (name: string, hash = CONTENT): boolean =>
    immutablePaths([{ path: name, hash }], NOTHING_LOADED).has(name)

  test.each(Object.entries(forms))('%s', (_, form) => {
    for (const length of [8, 9, 12, 20, form.length])
      for (const name of [
        `app.${form.slice(0, length)}.js`,
        `app-${form.slice(0, length)}.min.css`,
        `a/b/photo_${form.slice(0, length)}_small.jpg`,
        `${form.slice(0, length)}.woff2`,
        form.slice(0, length),
      ])
        expect(isKept(name), name).toBe(true)
    expect(isKept(`app.${form.slice(0, 7)}.js`)).toBe(false)
    expect(isKept(`app${form.slice(0, 8)}.js`)).toBe(false)
    expect(isKept(`app.x${form.slice(0, 8)}.js`)).toBe(false)
    expect(isKept(`app.${form.slice(0, 8)}!.js`)).toBe(false)
    expect(isKept(`app.${form.slice(1, 9)}.js`)).toBe(false)
    expect(isKept(`app.${form.slice(0, 8)}.js`, sha256('other content'))).toBe(false)
    expect(isKept(`${form.slice(0, 16)}/app.js`)).toBe(false)
  })

  test('a hash of base64url with separators in it', () => {
    // These contents have a hash that begins so: found by trying.
    const withSeparator = Array.from({ length: 2000 }, (_, index) => sha256(`try ${index}`))
      .map((hash) => ({ hash, text: Buffer.from(hash, 'hex').toString('base64url') }))
      .filter(({ text }) => /[-_]/.test(text.slice(1, 8)))
    expect(withSeparator.length).toBeGreaterThan(100)
    for (const { hash, text } of withSeparator) {
      expect(isKept(`a-${text.slice(0, 8)}.js`, hash)).toBe(true)
      expect(isKept(`a-${text.slice(0, 8)}-b.js`, hash)).toBe(true)
      expect(isKept(`a-${text.slice(0, 43)}.js`, hash)).toBe(true)
    }
  })

  test('a page is never kept, whatever its name', () => {
    expect(isKept(`page.${CONTENT}.html`)).toBe(false)
    expect(isKept(`page.${CONTENT}.xhtml`)).toBe(false)
  })
})

describe('what generators write', () => {
  const builds = Object.entries(generators).flatMap(([name, site]) =>
    SEEDS.map((seed) => {
      const { files, hashed, loaded } = buildSite(name, site, seed)
      return { name, hashed, kept: immutablePaths(files, loaded) }
    }),
  )

  test('there are more than twenty of them', () => {
    expect(Object.values(generators).filter(({ hashed }) => hashed.length > 0).length).toBeGreaterThanOrEqual(20)
  })

  test('no name without a hash is kept', () => {
    for (const { name, hashed, kept } of builds)
      expect(
        [...kept].filter((path) => !hashed.includes(path)),
        name,
      ).toEqual([])
  })

  test('nine of ten names with a hash are known', () => {
    const all = builds.reduce((sum, { hashed }) => sum + hashed.length, 0)
    const known = builds.reduce((sum, { kept }) => sum + kept.size, 0)
    expect(known / all).toBeGreaterThan(0.9)
  })

  test.each(Object.keys(generators).filter((name) => generators[name]!.hashed.length > 0))('%s', (name) => {
    const ofThis = builds.filter((build) => build.name === name)
    const share = ofThis.reduce((sum, { hashed, kept }) => sum + kept.size / hashed.length, 0) / ofThis.length
    if (AT_THE_ROOT.includes(name)) expect(share).toBe(0)
    else expect(share).toBeGreaterThan(0.75)
  })

  test('one name without a hash, and its folder is asked for again; other folders are not', () => {
    for (const [name, site] of Object.entries(generators)) {
      const { files, hashed, loaded } = buildSite(name, site, 1)
      const before = immutablePaths(files, loaded)
      for (const folder of new Set([...before].map((path) => path.slice(0, path.lastIndexOf('/') + 1)))) {
        const after = immutablePaths([...files, ...filesOf(`${folder}logo.png`)], loaded)
        const isIn = (path: string): boolean => path.slice(0, path.lastIndexOf('/') + 1) === folder
        const own = files.filter(({ path, hash }) => hashed.includes(path) && path.includes(hash.slice(0, 8)))
        expect([...after].filter(isIn), `${name} ${folder}`).toEqual(own.map(({ path }) => path).filter(isIn))
      }
    }
  })

  test('without a page that loads them, names in folders that people make too are asked for again', () => {
    for (const name of ['Vite, React', 'VitePress', 'Create React App', 'Docusaurus', 'Vue CLI', 'Ember']) {
      const { files } = buildSite(name, generators[name]!, 1)
      expect([...immutablePaths(files, NOTHING_LOADED)], name).toEqual([])
    }
  })
})

describe('what people write', () => {
  const everything = (paths: string[]) => ({
    scripts: new Set(paths.filter((path) => path.endsWith('.js'))),
    modules: new Set(paths.filter((path) => path.endsWith('.js'))),
    styles: new Set(paths.filter((path) => path.endsWith('.css'))),
  })

  test.each([
    [
      'report-Q4-final.pdf',
      'holiday-IMG_2041.jpg',
      'invoice-INV00042.pdf',
      'CV-Max_2026.pdf',
      'price-list-Q4-final.js',
    ],
    ['photo-20240101.jpg', 'logo-original.png', 'document-finalone.pdf', 'app-20240501.js', 'style-20240501.css'],
    ['app-Overview.js', 'app-MyHeader.js', 'app-TopPanel.js', 'style-DarkMode.css'],
    ['app-2024Q4v2.js', 'style-2024Q4v2.css', 'logo-2024Q4v2.svg'],
    ['app-2024Q4v2.js', 'style-2024Q4v3.css', 'logo-2025Q1v1.svg'],
    ['app-2024Q4v2.js'],
    ['app-Build123.js', 'style-Build124.css'],
    ['main-MyApp2v1.js', 'style-MyApp2v2.css', 'logo-MyApp3v1.svg'],
    ['page-ToDoList.js', 'page-MyTopBar.js', 'page-iPadMini.js', 'style-AllTheUI.css'],
    ['page-ToDoList.js', 'page-MyTopBar.js', 'page-iPadPro2.js', 'style-Version2.css'],
    ['app-v1_2_3_4.js', 'style-v1_2_3_5.css'],
    ['app.3f2504e0.js', 'style.3f2504e0.css', 'logo.3f2504e0.svg'],
    ['app.20240501.js', 'style.20240502.css', 'logo.19991231.svg'],
    ['app-A1B2C3D4.js', 'style-E5F6G7H8.css'],
    ['annie-spratt-QckxruozjRg-unsplash.jpg', 'jon-tyson-FlHdnPO6dlw-unsplash.jpg', 'style-unsplash.css'],
    ['shoe-B07XJ8C8.jpg', 'hat-B08N5WRW.jpg', 'style-SUMMER24.css'],
    ['a.deadbeef.js', 'b.cafebabe.js', 'c.feedface.css'],
    ['effaced0.js', 'effaced1.css', 'decade20.js'],
    ['app.12345678.js', 'app.87654321.css'],
  ])('%s and its like', (...names) => {
    for (const folder of [
      '',
      'assets/',
      'assets/chunks/',
      'static/js/',
      'static/media/',
      'js/',
      'css/',
      'assets/js/',
      'build/',
    ]) {
      const paths = names.map((name) => folder + name)
      expect([...immutablePaths(filesOf(...paths), everything(paths))], folder).toEqual([])
    }
  })

  test('names of a generator’s folder when its hashes are switched off', () => {
    for (const names of [
      ['_nuxt/entry.js', '_nuxt/index.js'],
      ['_nuxt/settings.js'],
      ['_nuxt/settings.js', '_nuxt/homepage.css'],
      ['_astro/homepage.css', '_astro/page.homepage.js'],
      ['_app/immutable/chunks/homepage.js'],
      ['_next/static/chunks/main.js', '_next/static/chunks/webpack.js'],
      ['_next/static/media/photo-20240101.jpg', '_next/static/media/photo-20240102.jpg'],
      ['_next/static/my-build-3f2504e0/_buildManifest.js'],
      ['_nuxt/builds/meta/3f2504e0-4f89-41d3-9a0c-0305e82c3301.json'],
    ])
      expect([...immutablePaths(filesOf(...names), everything(names))], names.join()).toEqual([])
  })

  test('a date among the hashes of a generator’s folder', () => {
    const { files, loaded } = buildSite('Create React App', generators['Create React App']!, 1)
    const media = [1, 2, 3, 4, 5, 6].map((index) => `static/media/a${index}.${sha256(`${index}`).slice(0, 8)}.png`)
    const all = [...files, ...filesOf(...media)]
    const isMedia = (path: string): boolean => path.startsWith('static/media/')
    expect([...immutablePaths(all, loaded)].filter(isMedia)).toHaveLength(8)
    const dated = [...all, ...filesOf('static/media/photo-20240101.jpg')]
    expect([...immutablePaths(dated, loaded)].filter(isMedia)).toEqual([])
  })

  test('100,000 ordinary names, none of them kept', () => {
    const random = seeded(20_260_101)
    const kept: string[] = []
    for (let site = 0; site < 2000; site++) {
      const folders = Array.from({ length: 2 }, () => pick(random, FOLDERS))
      const paths = [...new Set(Array.from({ length: 50 }, () => `${pick(random, folders)}${ordinaryName(random)}`))]
      const files = paths.map((path) => ({ path, hash: sha256(`${random()}`) }))
      kept.push(...immutablePaths(files, everything(paths)))
    }
    expect(kept).toEqual([])
  })

  test('folders in which every name ends alike, none of them kept', () => {
    const random = seeded(20_260_102)
    const kept: string[] = []
    for (let site = 0; site < 10_000; site++) {
      const label = pick(random, LABELS)
      const folder = pick(random, SHARED_FOLDERS)
      const count = 1 + Math.floor(random() * 5)
      const paths = Array.from({ length: count }, (_, index) => {
        const extension = pick(random, ['js', 'css', 'jpg', 'pdf'])
        return `${folder}${pick(random, WORDS)}${index}${pick(random, ['-', '.'])}${label(random)}.${extension}`
      })
      const files = paths.map((path) => ({ path, hash: sha256(`${random()}`) }))
      kept.push(...immutablePaths(files, everything(paths)))
    }
    expect(kept).toEqual([])
  })
})

/** Mulberry32. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

function pick<One>(random: () => number, from: readonly One[]): One {
  return from[Math.floor(random() * from.length)]!
}

/** Of people, or of people and generators. */
const SHARED_FOLDERS = ['', 'assets/', 'assets/chunks/', 'static/js/', 'static/media/', 'js/', 'css/', 'img/'].concat(
  ...['assets/images/', 'docs/', 'photos/2024/', 'build/', 'media/'],
)
const FOLDERS = [...SHARED_FOLDERS, '_astro/', '_nuxt/', '_app/immutable/assets/', '_next/static/media/']
const WORDS =
  `report invoice holiday photo logo original background document final price list summer winter header footer
  overview calendar product catalog customer contract handbook schedule newsletter component settings homepage Backup Draft
  README Anleitung Rechnung Lebenslauf facade decade effaced app main style index vendor`.split(/\s+/)
const EXTENSIONS = ['pdf', 'jpg', 'png', 'js', 'css', 'svg', 'json', 'woff2', 'mp4', 'docx', 'map', 'txt', 'zip']

const number = (random: () => number, digits: number): string =>
  String(Math.floor(random() * 10 ** digits)).padStart(digits, '0')
const two = (random: () => number, most: number): string => String(1 + Math.floor(random() * most)).padStart(2, '0')
const year = (random: () => number): string => String(1995 + Math.floor(random() * 40))
const capitalised = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

/** What people write behind a name: dates, numbers, versions, cameras, words. Many have eight characters. */
const LABELS: readonly ((random: () => number) => string)[] = [
  (random) => `${year(random)}${two(random, 12)}${two(random, 28)}`,
  (random) => `${two(random, 28)}${two(random, 12)}${year(random)}`,
  (random) => `${year(random)}-${two(random, 12)}-${two(random, 28)}`,
  (random) => `${year(random)}${two(random, 12)}${two(random, 28)}_${number(random, 6)}`,
  (random) => `INV${number(random, 5)}`,
  (random) => `RE-${year(random)}-${number(random, 4)}`,
  (random) => `IMG_${number(random, 4)}`,
  (random) => `DSC${number(random, 5)}`,
  (random) => `P${number(random, 7)}`,
  (random) => `v${number(random, 1)}.${number(random, 2)}.${number(random, 1)}`,
  (random) => `v${number(random, 1)}_${number(random, 1)}_${number(random, 1)}-b${number(random, 1)}`,
  (random) => `Q${1 + Math.floor(random() * 4)}-final`,
  (random) => `Q${1 + Math.floor(random() * 4)}_${year(random)}`,
  (random) => `${capitalised(pick(random, WORDS))}${year(random)}`,
  (random) => capitalised(pick(random, WORDS)) + capitalised(pick(random, WORDS)),
  (random) => pick(random, WORDS),
  (random) => pick(random, WORDS).toUpperCase(),
  (random) => number(random, 8),
  (random) => number(random, 12),
  (random) => `${pick(random, ['iPhone', 'Build', 'Entwurf', 'Version', 'Kapitel'])}${number(random, 2)}`,
  (random) => `${pick(random, ['Max', 'Eva', 'Kim'])}_${year(random)}`,
  (random) => `${number(random, 4)}x${number(random, 4)}`,
  (random) => `${number(random, 3)}KB-${pick(random, ['web', 'print'])}`,
]

function ordinaryName(random: () => number): string {
  const parts = [pick(random, WORDS)]
  while (random() < 0.6 && parts.length < 4)
    parts.push(random() < 0.7 ? pick(random, LABELS)(random) : pick(random, WORDS))
  const suffix = random() < 0.1 ? pick(random, ['.min', ' (2)', '@2x', '-copy', '.chunk']) : ''
  return `${parts.join(pick(random, ['-', '_', '.', ' ']))}${suffix}.${pick(random, EXTENSIONS)}`
}
