/** Generators from npm, each with a small project of its own: what they write is what people publish. */

interface Generator {
  readonly packages: readonly string[]
  readonly files: Readonly<Record<string, string>>
  readonly build: readonly string[]
  readonly output: string
  /** A source file, and what in it changes between two builds. */
  readonly changed: readonly [file: string, from: string, to: string]
}

const MARKDOWN = '---\ntitle: Start\n---\n\n# Start\n\nFirst words. [Second](./second)\n'

const REACT = ['react@19.3.1', 'react-dom@19.3.1']

/** A page with a script, a style and a script that comes later. */
const VANILLA = {
  'index.html': '<!doctype html><title>Vite</title><div id="app"></div><script type="module" src="/main.js"></script>',
  'main.js': "import './style.css'\nimport('./lazy.js').then(({ say }) => say('first words'))\n",
  'lazy.js': "export const say = (words) => (document.querySelector('#app').textContent = words + ' later')\n",
  'style.css': 'body { color: #123 }',
}

export const GENERATORS: Readonly<Record<string, Generator>> = {
  vite: {
    packages: ['vite@8.3.8'],
    files: VANILLA,
    build: ['vite', 'build'],
    output: 'dist',
    changed: ['lazy.js', "' later'", "' even later'"],
  },
  astro: {
    packages: ['astro@5.9.4'],
    files: {
      'src/pages/index.astro':
        '<html><head><title>Astro</title></head><body><h1>First words</h1><a href="/second/">Second</a><script>import "../say.js"</script></body></html><style>h1 { color: #123 }</style>',
      'src/pages/second.astro': '<html><head><title>Second</title></head><body><a href="/">Start</a></body></html>',
      'src/say.js': "document.title = 'first title, ' + 'x'.repeat(5000)",
    },
    build: ['astro', 'build'],
    output: 'dist',
    changed: ['src/say.js', 'first title', 'second title'],
  },
  vitepress: {
    packages: ['vitepress@1.6.4', 'vue@3.5.45'],
    files: { 'index.md': MARKDOWN, 'second.md': '# Second\n\n[Start](./)\n' },
    build: ['vitepress', 'build'],
    output: '.vitepress/dist',
    changed: ['index.md', 'First words', 'Other words'],
  },
  eleventy: {
    packages: ['@11ty/eleventy@3.0.0'],
    files: { 'index.md': MARKDOWN.replace('./second', '/second/'), 'second.md': '# Second\n\n[Start](/)\n' },
    build: ['eleventy', '--input=.', '--output=_site'],
    output: '_site',
    changed: ['index.md', 'First words', 'Other words'],
  },
  next: {
    packages: ['next@16.4.6', 'react@19.3.1', 'react-dom@19.3.1'],
    files: {
      'next.config.mjs': "export default { output: 'export' }\n",
      'app/layout.jsx': 'export default ({ children }) => <html><body>{children}</body></html>\n',
      'app/page.jsx':
        "import Link from 'next/link'\nimport Say from './say.jsx'\nexport default () => <main><Say /><Link href='/second'>Second</Link></main>\n",
      'app/say.jsx':
        "'use client'\nimport { useState } from 'react'\nexport default () => { const [n, set] = useState(0); return <button onClick={() => set(n + 1)}>first words {n}</button> }\n",
      'app/second/page.jsx': 'export default () => <p>Second</p>\n',
    },
    build: ['next', 'build'],
    output: 'out',
    changed: ['app/say.jsx', 'first words', 'other words'],
  },
  sveltekit: {
    packages: [
      '@sveltejs/kit@3.1.1',
      '@sveltejs/adapter-static@4.0.0',
      '@sveltejs/vite-plugin-svelte@7.3.1',
      'svelte@5.57.3',
      'vite@8.3.8',
    ],
    files: {
      'vite.config.js':
        "import adapter from '@sveltejs/adapter-static'\nimport { sveltekit } from '@sveltejs/kit/vite'\nexport default { plugins: [sveltekit({ adapter: adapter() })] }\n",
      'src/app.html':
        '<!doctype html><html lang="en"><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>',
      'src/routes/+layout.js': 'export const prerender = true\n',
      'src/routes/+page.svelte':
        '<script>let n = $state(0)</script>\n<button onclick={() => n++}>first words {n}</button> <a href="/second">Second</a>\n',
      'src/routes/second/+page.svelte': '<a href="/">Start</a>\n',
    },
    build: ['vite', 'build'],
    output: 'build',
    changed: ['src/routes/+page.svelte', 'first words', 'other words'],
  },
  'vite-react': {
    packages: ['vite@8.3.8', '@vitejs/plugin-react@6.3.0', ...REACT],
    files: {
      'vite.config.js': "import react from '@vitejs/plugin-react'\nexport default { plugins: [react()] }\n",
      'index.html':
        '<!doctype html><title>React</title><div id="root"></div><script type="module" src="/src/main.jsx"></script>',
      'src/main.jsx':
        "import './style.css'\nimport { lazy, Suspense } from 'react'\nimport { createRoot } from 'react-dom/client'\nconst Say = lazy(() => import('./say.jsx'))\ncreateRoot(document.querySelector('#root')).render(<Suspense><Say /></Suspense>)\n",
      'src/say.jsx': "import './say.css'\nexport default () => <p>first words</p>\n",
      'src/say.css': 'p { color: #123 }',
      'src/style.css': 'body { color: #321 }',
    },
    build: ['vite', 'build'],
    output: 'dist',
    changed: ['src/say.jsx', 'first words', 'other words'],
  },
  rollup: {
    packages: ['rollup@4.68.3'],
    files: {
      'main.js': VANILLA['main.js'].replace("import './style.css'\n", ''),
      'lazy.js': VANILLA['lazy.js'],
      'rollup.config.mjs': `const page = {
        generateBundle(_, bundle) {
          const entry = Object.values(bundle).find((chunk) => chunk.isEntry)
          const source = '<!doctype html><div id="app"></div><script type="module" src="/' + entry.fileName + '"></script>'
          this.emitFile({ type: 'asset', fileName: 'index.html', source })
        },
      }
      const names = { entryFileNames: 'assets/[name]-[hash].js', chunkFileNames: 'assets/[name]-[hash].js' }
      export default { input: 'main.js', output: { dir: 'dist', ...names }, plugins: [page] }\n`,
    },
    build: ['rollup', '-c'],
    output: 'dist',
    changed: ['lazy.js', "' later'", "' even later'"],
  },
  webpack: {
    packages: ['webpack@5.112.2', 'webpack-cli@7.3.1', 'html-webpack-plugin@5.6.8'],
    files: {
      'src/index.js': VANILLA['main.js'].replace("import './style.css'\n", ''),
      'src/lazy.js': VANILLA['lazy.js'],
      'webpack.config.mjs': `import Page from 'html-webpack-plugin'
      const names = { filename: 'static/js/[name].[contenthash:8].js', chunkFilename: 'static/js/[name].[contenthash:8].chunk.js' }
      export default { mode: 'production', output: { ...names, publicPath: '/' }, plugins: [new Page()] }\n`,
    },
    build: ['webpack'],
    output: 'dist',
    changed: ['src/lazy.js', "' later'", "' even later'"],
  },
  metalsmith: {
    packages: ['metalsmith@2.7.0', '@metalsmith/markdown@1.10.0'],
    files: {
      'metalsmith.json': '{"source":"src","destination":"build","plugins":[{"@metalsmith/markdown":{}}]}',
      'src/index.md': MARKDOWN.replace('./second', './second.html'),
      'src/second.md': '# Second\n\n[Start](./index.html)\n',
    },
    build: ['metalsmith'],
    output: 'build',
    changed: ['src/index.md', 'First words', 'Other words'],
  },
  typedoc: {
    packages: ['typedoc@0.28.20', 'typescript@5.9.3'],
    files: {
      'tsconfig.json': '{"compilerOptions":{"strict":true},"files":["index.ts"]}',
      'index.ts': '/** Says first words. */\nexport function say(words: string): string {\n  return words\n}\n',
    },
    build: ['typedoc', 'index.ts', '--out', 'site'],
    output: 'site',
    changed: ['index.ts', 'first words', 'other words'],
  },
  jsdoc: {
    packages: ['jsdoc@4.0.5'],
    files: { 'source/index.js': '/** Says first words. */\nexport function say(words) {\n  return words\n}\n' },
    build: ['jsdoc', 'source', '--destination', 'site'],
    output: 'site',
    changed: ['source/index.js', 'first words', 'other words'],
  },
  rsbuild: {
    packages: ['@rsbuild/core@2.2.14'],
    files: {
      'src/index.js': VANILLA['main.js'],
      'src/lazy.js': VANILLA['lazy.js'],
      'src/style.css': VANILLA['style.css'],
    },
    build: ['rsbuild', 'build'],
    output: 'dist',
    changed: ['src/lazy.js', "' later'", "' even later'"],
  },
  honkit: {
    packages: ['honkit@6.1.7'],
    files: {
      'README.md': '# Start\n\nFirst words. [Second](second.md)\n',
      'SUMMARY.md': '# Summary\n\n* [Start](README.md)\n* [Second](second.md)\n',
      'second.md': '# Second\n\n[Start](README.md)\n',
    },
    build: ['honkit', 'build'],
    output: '_book',
    changed: ['README.md', 'First words', 'Other words'],
  },
  'react-router': {
    packages: [
      '@react-router/dev@8.4.0',
      '@react-router/node@8.4.0',
      'react-router@8.4.0',
      'isbot@5.1.31',
      'vite@8.3.8',
      ...REACT,
    ],
    files: {
      'vite.config.js':
        "import { reactRouter } from '@react-router/dev/vite'\nexport default { plugins: [reactRouter()] }\n",
      'react-router.config.js': 'export default { ssr: false }\n',
      'app/routes.js':
        "import { index, route } from '@react-router/dev/routes'\nexport default [index('home.jsx'), route('second', 'second.jsx')]\n",
      'app/root.jsx':
        "import { Links, Meta, Outlet, Scripts } from 'react-router'\nexport default () => <html><head><Meta /><Links /></head><body><Outlet /><Scripts /></body></html>\n",
      'app/home.jsx': 'export default () => <p>first words</p>\n',
      'app/second.jsx': 'export default () => <p>Second</p>\n',
    },
    build: ['react-router', 'build'],
    output: 'build/client',
    changed: ['app/home.jsx', 'first words', 'other words'],
  },
  'vite-legacy': {
    packages: ['vite@8.3.8', '@vitejs/plugin-legacy@8.2.3', 'terser@5.44.1'],
    files: {
      ...VANILLA,
      'vite.config.js': "import legacy from '@vitejs/plugin-legacy'\nexport default { plugins: [legacy()] }\n",
    },
    build: ['vite', 'build'],
    output: 'dist',
    changed: ['lazy.js', "' later'", "' even later'"],
  },
}
