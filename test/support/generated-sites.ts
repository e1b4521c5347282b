/**
 * What site generators write, as names: the hashes are made up from a seed, in the form that each generator gives them.
 *
 * `{b8}` eight characters of base64url as Rollup and Rolldown write them, `{x8}`, `{x16}`, … so many of hex, `{A8}` eight
 * capitals and digits of base32 (esbuild), `{t13}` thirteen small letters, digits, `_` and `-` (Turbopack), `{own}`, `{own8}` the file's own SHA-256. The same placeholder with a letter
 * behind it (`{b8:a}`) is the same hash again, as a script and its map have it.
 */
import { createHash } from 'node:crypto'

export interface GeneratedSite {
  /** Names with a hash. */
  readonly hashed: readonly string[]
  /** Names without. */
  readonly plain: readonly string[]
  /** What the landing page loads: the first name that begins so. */
  readonly scripts?: readonly string[]
  readonly modules?: readonly string[]
  readonly styles?: readonly string[]
}

const vite = (...names: string[]): GeneratedSite => ({
  hashed: ['index-{b8:a}.js', 'index-{b8:b}.css', ...names].map((name) => `assets/${name}`),
  plain: ['index.html', 'vite.svg', 'robots.txt'],
  modules: ['assets/index-{b8:a}.js'],
  styles: ['assets/index-{b8:b}.css'],
})

export const generators: Readonly<Record<string, GeneratedSite>> = {
  'Next, webpack': {
    hashed: [
      ...['webpack-{x16}.js', 'main-{x16}.js', 'main-app-{x16}.js', 'framework-{x16}.js', 'polyfills-{x16}.js'],
      ...['4bd1b696-{x16}.js', '684-{x16}.js', '964.{x16}.js', 'pages/_app-{x16}.js', 'pages/_error-{x16}.js'],
      ...['app/layout-{x16}.js', 'app/page-{x16}.js', 'app/_not-found/page-{x16}.js', 'app/blog/[slug]/page-{x16}.js'],
    ]
      .map((name) => `_next/static/chunks/${name}`)
      .concat('_next/static/css/{x16}.css', '_next/static/css/{x16}.css')
      .concat('_next/static/media/{x16}-s.p.woff2', '_next/static/media/logo.{x8}.svg'),
    plain: ['index.html', '404.html', 'blog/a.html', 'blog/a.txt', 'favicon.ico', 'next.svg'].concat(
      '_next/static/Xt1n2bQ9ZkLmP0aYc7dRe/_buildManifest.js',
      '_next/static/Xt1n2bQ9ZkLmP0aYc7dRe/_ssgManifest.js',
    ),
  },
  'Next, Turbopack': {
    hashed: ['{x16}.js', '{x16}.js', '{x16}.js', 'turbopack-{x16}.js', '{x16}.css', 'src_app_page_tsx_{x8}._.js']
      .map((name) => `_next/static/chunks/${name}`)
      .concat('_next/static/media/{x16}-s.p.{x8}.woff2', '_next/static/media/favicon.{x8}.ico'),
    plain: ['index.html', 'file.svg', '_next/static/build-7/_buildManifest.js'],
  },
  'Next 16, Turbopack': {
    hashed: ['{t13}.js', '{t13}.js', '{t13}.js', '{t13}.js', 'turbopack-{t13}.js', '{t13}.css']
      .map((name) => `_next/static/chunks/${name}`)
      .concat('_next/static/media/favicon.{t13}.ico', '_next/static/media/logo.{t13}.svg'),
    plain: ['index.html', 'index.txt', '__next._full.txt', '_next/static/nCXWyAz4nRXAZC4EmStt2/_buildManifest.js'],
  },
  'Nuxt 4': {
    hashed: ['{b8}.js', '{b8}.js', '{b8}.js', '{b8}.js', 'entry.{b8}.css', 'error-404.{b8}.css', 'error-500.{b8}.css']
      .concat('logo.{b8}.svg', 'index.{b8}.css')
      .map((name) => `_nuxt/${name}`),
    plain: ['index.html', '200.html', '404.html', '_payload.json', '_nuxt/builds/latest.json', 'favicon.ico'].concat(
      '_nuxt/builds/meta/3f2504e0-4f89-41d3-9a0c-0305e82c3301.json',
    ),
  },
  'Nuxt 3.0': {
    hashed: ['entry.{x8}.js', 'entry.{x8}.css', 'index.{x8}.js', 'error-404.{x8}.js', 'error-component.{x8}.js'].map(
      (name) => `_nuxt/${name}`,
    ),
    plain: ['index.html', '200.html'],
  },
  Astro: {
    hashed: ['index.{b8}.css', 'about.{b8}.css', 'hoisted.{b8}.js', 'client.{b8}.js', 'Counter.{b8}.js']
      .concat(
        'page.astro_astro_type_script_index_0_lang.{b8}.js',
        'photo.{b8:p}_Z1aBcD.webp',
        'photo.{b8:p}_2kQ9xZ.webp',
      )
      .map((name) => `_astro/${name}`),
    plain: ['index.html', 'about/index.html', 'favicon.svg', 'sitemap-0.xml', 'rss.xml'],
  },
  'Starlight, Pagefind': {
    hashed: [
      'common.{b8}.css',
      'index.{b8}.css',
      'Search.astro_astro_type_script_index_0_lang.{b8}.js',
      'ui-core.{b8}.js',
    ]
      .concat('page.{b8}.js', 'print.{b8}.css')
      .map((name) => `_astro/${name}`),
    plain: ['index.html', 'pagefind/pagefind.js', 'pagefind/wasm.en.pagefind', 'pagefind/pagefind-entry.json'],
  },
  SvelteKit: {
    hashed: ['entry/start.{b8}.js', 'entry/app.{b8}.js', 'chunks/{b8}.js', 'chunks/{b8}.js', 'chunks/{b8}.js']
      .concat('nodes/0.{b8}.js', 'nodes/1.{b8}.js', 'nodes/2.{b8}.js', 'assets/0.{b8}.css', 'assets/2.{b8}.css')
      .map((name) => `_app/immutable/${name}`),
    plain: ['index.html', '_app/version.json', '_app/env.js', 'favicon.png'],
  },
  VitePress: {
    hashed: [
      'app.{b8:a}.js',
      'style.{b8:s}.css',
      'index.md.{b8:i}.js',
      'index.md.{b8:i}.lean.js',
      'guide_a.md.{b8:g}.js',
    ]
      .concat('guide_a.md.{b8:g}.lean.js', 'inter-roman-latin.{b8}.woff2', 'inter-italic-greek.{b8}.woff2')
      .concat('chunks/framework.{b8:f}.js', 'chunks/theme.{b8:t}.js', 'chunks/@localSearchIndexroot.{b8}.js')
      .concat('chunks/VPLocalSearchBox.{b8}.js')
      .map((name) => `assets/${name}`),
    plain: ['index.html', 'guide/a.html', 'hashmap.json', 'vp-icons.css', '404.html'],
    modules: ['assets/app.{b8:a}.js', 'assets/chunks/framework.{b8:f}.js', 'assets/chunks/theme.{b8:t}.js'],
    styles: ['assets/style.{b8:s}.css'],
  },
  'Vite, React': vite('react-{b8}.svg', 'Home-{b8}.js', 'About-{b8}.js', 'vendor-{b8:v}.js', 'vendor-{b8:v}.js.map'),
  'Vite, Vue': vite('HomeView-{b8}.js', 'AboutView-{b8}.js', 'AboutView-{b8}.css', '_plugin-vue_export-helper-{b8}.js'),
  'Vite, two files': vite(),
  'Vite with legacy browsers': vite(
    'index-legacy-{b8}.js',
    'polyfills-legacy-{b8}.js',
    'worker-{b8}.js',
    'game-{b8}.wasm',
  ),
  'Vite 4': {
    hashed: [
      'index-{x8:a}.js',
      'index-{x8:b}.css',
      'logo-{x8}.svg',
      'About-{x8}.js',
      'Home-{x8}.js',
      'i18n-{x8}.js',
    ].map((name) => `assets/${name}`),
    plain: ['index.html'],
    modules: ['assets/index-{x8:a}.js'],
    styles: ['assets/index-{x8:b}.css'],
  },
  'React Router': {
    hashed: ['entry.client-{b8:e}.js', 'root-{b8}.js', 'root-{b8:r}.css', '_index-{b8}.js', 'blog.$slug-{b8}.js']
      .concat('chunk-UIGDSWPH-{b8}.js', 'manifest-{x8}.js')
      .map((name) => `assets/${name}`),
    plain: ['index.html', '__spa-fallback.html', 'favicon.ico'],
    modules: ['assets/entry.client-{b8:e}.js'],
    styles: ['assets/root-{b8:r}.css'],
  },
  SolidStart: {
    hashed: ['client-{b8:c}.js', 'client-{b8:d}.css', 'index-{b8}.js', 'about-{b8}.js', 'routing-{b8}.js'].map(
      (name) => `_build/assets/${name}`,
    ),
    plain: ['index.html', '_build/.vite/manifest.json', '_server/assets/x.css'],
    modules: ['_build/assets/client-{b8:c}.js'],
    styles: ['_build/assets/client-{b8:d}.css'],
  },
  Storybook: {
    hashed: ['iframe-{b8:i}.js', 'preview-{b8:p}.css', 'Button.stories-{b8}.js', 'Button-{b8}.css', 'Color-{b8}.js']
      .concat('entry-preview-{b8}.js', 'matchers-{b8}.js', 'DocsRenderer-{b8}.js', 'test-utils-{b8}.js')
      .map((name) => `assets/${name}`),
    plain: ['index.html', 'iframe.html', 'sb-manager/runtime.js', 'index.json'],
    modules: ['assets/iframe-{b8:i}.js'],
    styles: ['assets/preview-{b8:p}.css'],
  },
  Qwik: {
    hashed: ['q-{b8:a}.js', 'q-{b8}.js', 'q-{b8}.js', 'q-{b8}.js', 'q-{b8}.js', 'q-{b8}.js'].map(
      (name) => `build/${name}`,
    ),
    plain: ['index.html', 'q-manifest.json', 'service-worker.js'],
    modules: ['build/q-{b8:a}.js'],
  },
  'Create React App': {
    hashed: ['js/main.{x8:m}.js', 'js/main.{x8:m}.js.map', 'js/main.{x8:m}.js.LICENSE.txt', 'js/453.{x8}.chunk.js']
      .concat('css/main.{x8:c}.css', 'css/main.{x8:c}.css.map', 'media/logo.{x32}.svg', 'media/font.{x20}.woff2')
      .map((name) => `static/${name}`),
    plain: ['index.html', 'asset-manifest.json', 'manifest.json', 'logo192.png', 'robots.txt'],
    scripts: ['static/js/main.{x8:m}.js'],
    styles: ['static/css/main.{x8:c}.css'],
  },
  Rsbuild: {
    hashed: [
      'js/index.{x10:i}.js',
      'js/lib-react.{x10}.js',
      'js/async/318.{x10}.js',
      'css/index.{x10:c}.css',
      'image/a.{x10}.png',
    ].map((name) => `static/${name}`),
    plain: ['index.html', 'favicon.ico'],
    scripts: ['static/js/index.{x10:i}.js'],
    styles: ['static/css/index.{x10:c}.css'],
  },
  Docusaurus: {
    hashed: ['js/main.{x8:m}.js', 'js/main.{x8:m}.js.LICENSE.txt', 'js/runtime~main.{x8:r}.js', 'js/17896441.{x8}.js']
      .concat(
        'js/22dd74f7.{x8}.js',
        'js/3a2db09e.{x8}.js',
        'js/935f2afb.{x8}.js',
        'js/c4f5d8e4.{x8}.js',
        'js/1df93b7f.{x8}.js',
      )
      .concat('css/styles.{x8:c}.css', 'images/docsVersionDropdown-{x32}.png', 'images/localeDropdown-{x32}.png')
      .map((name) => `assets/${name}`),
    plain: ['index.html', 'docs/intro/index.html', 'img/logo.svg', 'sitemap.xml'],
    scripts: ['assets/js/main.{x8:m}.js', 'assets/js/runtime~main.{x8:r}.js'],
    styles: ['assets/css/styles.{x8:c}.css'],
  },
  'Material for MkDocs': {
    hashed: ['javascripts/bundle.{x8:b}.min.js', 'javascripts/bundle.{x8:b}.min.js.map']
      .concat('javascripts/workers/search.{x8:w}.min.js', 'javascripts/workers/search.{x8:w}.min.js.map')
      .concat('stylesheets/main.{x8:m}.min.css', 'stylesheets/main.{x8:m}.min.css.map')
      .concat('stylesheets/palette.{x8:p}.min.css', 'stylesheets/palette.{x8:p}.min.css.map')
      .map((name) => `assets/${name}`),
    plain: [
      'index.html',
      'assets/images/favicon.png',
      'assets/javascripts/lunr/min/lunr.de.min.js',
      'search/search_index.json',
    ],
    scripts: ['assets/javascripts/bundle.{x8:b}.min.js'],
    styles: ['assets/stylesheets/main.{x8:m}.min.css', 'assets/stylesheets/palette.{x8:p}.min.css'],
  },
  'Vue CLI': {
    hashed: [
      'js/app.{x8:a}.js',
      'js/app.{x8:a}.js.map',
      'js/chunk-vendors.{x8:v}.js',
      'js/about.{x8}.js',
      'css/app.{x8:c}.css',
    ].concat('img/logo.{x8}.png', 'fonts/icons.{x8}.woff2'),
    plain: ['index.html', 'favicon.ico'],
    scripts: ['js/app.{x8:a}.js', 'js/chunk-vendors.{x8:v}.js'],
    styles: ['css/app.{x8:c}.css'],
  },
  Ember: {
    hashed: ['app-{x32:a}.js', 'vendor-{x32:v}.js', 'app-{x32:c}.css', 'chunk.143.{x20}.js'].map(
      (name) => `assets/${name}`,
    ),
    plain: ['index.html', 'robots.txt'],
    scripts: ['assets/vendor-{x32:v}.js', 'assets/app-{x32:a}.js'],
    styles: ['assets/app-{x32:c}.css'],
  },
  Expo: {
    hashed: ['js/web/entry-{x32}.js', 'js/web/index-{x32}.js', 'css/global-{x32}.css'].map(
      (name) => `_expo/static/${name}`,
    ),
    plain: ['index.html', '+not-found.html', 'metadata.json'],
  },
  Hugo: {
    hashed: ['css/main.min.{own}.css', 'js/app.{own}.js', 'images/hero.{own}.webp'],
    plain: ['index.html', 'posts/index.html', 'images/hero.jpg', 'index.xml'],
    styles: ['css/main.min.{own}.css'],
  },
  mdBook: {
    hashed: [
      'book-{own8}.js',
      'css/chrome-{own8}.css',
      'css/general-{own8}.css',
      'highlight-{own8}.js',
      'favicon-{own8}.svg',
    ],
    plain: ['index.html', 'print.html', 'fonts/open-sans.woff2'],
    scripts: ['book-{own8}.js'],
  },
  'Observable Framework': {
    hashed: ['_file/data/sales.{own8}.csv', '_file/data/flights.{own8}.parquet'],
    plain: ['index.html'],
  },
  // Their hashed names lie beside index.html and its like: a folder that is not of hashed names only.
  Angular: {
    hashed: ['main-{A8:m}.js', 'polyfills-{A8:p}.js', 'styles-{A8:s}.css', 'chunk-{A8}.js'],
    plain: ['index.html', 'favicon.ico'],
    modules: ['main-{A8:m}.js', 'polyfills-{A8:p}.js'],
    styles: ['styles-{A8:s}.css'],
  },
  Gatsby: {
    hashed: [
      'webpack-runtime-{x20:w}.js',
      'framework-{x20:f}.js',
      'app-{x20:a}.js',
      'component---src-pages-index-js-{x20}.js',
    ],
    plain: ['index.html', 'page-data/index/page-data.json', 'chunk-map.json', 'manifest.webmanifest'],
    scripts: ['webpack-runtime-{x20:w}.js', 'framework-{x20:f}.js', 'app-{x20:a}.js'],
  },
  Parcel: {
    hashed: ['index.{x8:i}.js', 'index.{x8:c}.css'],
    plain: ['index.html'],
    modules: ['index.{x8:i}.js'],
    styles: ['index.{x8:c}.css'],
  },
  // None of their names has a hash.
  Eleventy: {
    hashed: [],
    plain: ['index.html', 'css/index.css', 'img/AbC123dEf4-650.avif', 'img/AbC123dEf4-960.jpeg'],
  },
  Jekyll: {
    hashed: [],
    plain: ['index.html', 'assets/main.css', 'assets/minima-social-icons.svg', 'feed.xml'],
    styles: ['assets/main.css'],
  },
  Sphinx: { hashed: [], plain: ['index.html', '_static/pygments.css', '_static/doctools.js', 'searchindex.js'] },
}

const ALPHABETS: Readonly<Record<string, string>> = {
  b: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
  x: '0123456789abcdef',
  A: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
  t: '0123456789abcdefghijklmnopqrstuvwxyz_-',
}

export interface BuiltFile {
  readonly path: string
  readonly hash: string
}

export interface BuiltSite {
  readonly files: readonly BuiltFile[]
  readonly hashed: readonly string[]
  readonly loaded: {
    readonly scripts: ReadonlySet<string>
    readonly modules: ReadonlySet<string>
    readonly styles: ReadonlySet<string>
  }
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** One build of a generator; another seed is another build. */
export function buildSite(name: string, site: GeneratedSite, seed: number): BuiltSite {
  const files: BuiltFile[] = []
  const write = (template: string, index: number): string => {
    const hash = sha256(`content ${seed} ${name} ${template} ${index}`)
    const path = template.replace(
      /\{(\w)(\d*)(:\w)?\}|\{own(\d*)\}/g,
      (whole, kind: string, length: string, label, own) => {
        if (kind === undefined) return hash.slice(0, own === '' ? 64 : Number(own))
        return madeUp(kind, Number(length), `${seed} ${name} ${label === undefined ? `${template} ${index}` : whole}`)
      },
    )
    files.push({ path, hash })
    return path
  }
  const hashed = site.hashed.map(write)
  site.plain.forEach(write)
  const found = (templates: readonly string[] = []): ReadonlySet<string> =>
    new Set(templates.map((template) => hashed[site.hashed.indexOf(template)] ?? template))
  return {
    files,
    hashed,
    loaded: { scripts: found(site.scripts), modules: found(site.modules), styles: found(site.styles) },
  }
}

/** Rollup and Rolldown write a hash of 128 bits, which begins with B, C or D. */
function madeUp(kind: string, length: number, key: string): string {
  const bytes = createHash('sha512').update(key).digest()
  const alphabet = ALPHABETS[kind] ?? ''
  const text = Array.from({ length }, (_, at) => alphabet[(bytes[at] ?? 0) % alphabet.length]).join('')
  return kind === 'b' ? `${'BCD'[(bytes[63] ?? 0) % 3]}${text.slice(1)}` : text
}
