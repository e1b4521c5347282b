/**
 * Sites that nobody here wrote: documentation of Debian packages, and what generators from npm make of a small project.
 * Fetched and built in a folder of the caller's; only the deep run has them.
 */
import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Package → the folder in it that is a site. */
export const DEBIAN_SITES: Readonly<Record<string, string>> = {
  'postgresql-doc-15': 'usr/share/doc/postgresql-doc-15/html',
  'git-doc': 'usr/share/doc/git-doc',
  'sqlite3-doc': 'usr/share/doc/sqlite3',
  'python-django-doc': 'usr/share/doc/python-django-doc/html',
  'apache2-doc': 'usr/share/doc/apache2-doc/manual',
  'nodejs-doc': 'usr/share/doc/nodejs/api',
  'debian-policy': 'usr/share/doc/debian-policy/policy.html',
  'developers-reference': 'usr/share/developers-reference',
  'docbook-xsl-doc-html': 'usr/share/doc/docbook-xsl-doc-html/doc',
  'exim4-doc-html': 'usr/share/doc/exim4-doc-html/spec_html',
  'python-flask-doc': 'usr/share/doc/python-flask-doc/html',
  'haproxy-doc': 'usr/share/doc/haproxy/lua',
  'vim-doc': 'usr/share/doc/vim/html',
  'libglib2.0-doc': 'usr/share/gtk-doc/html/glib',
  'debian-faq': 'usr/share/doc/debian/FAQ',
}

/** The folder of a Debian package's site, under `work`. */
export async function debianSite(name: string, work: string): Promise<string> {
  const folder = path.join(work, name)
  await mkdir(folder, { recursive: true })
  await run('apt-get', ['download', '-q', name], { cwd: folder })
  const [archive] = globSync('*.deb', { cwd: folder })
  await run('dpkg-deb', ['-x', archive!, folder], { cwd: folder })
  return path.join(folder, DEBIAN_SITES[name]!)
}

interface Generator {
  readonly packages: readonly string[]
  readonly files: Readonly<Record<string, string>>
  readonly build: readonly string[]
  readonly output: string
  /** A source file, and what in it changes between two builds. */
  readonly changed: readonly [file: string, from: string, to: string]
}

const MARKDOWN = '---\ntitle: Start\n---\n\n# Start\n\nFirst words. [Second](./second)\n'

export const GENERATORS: Readonly<Record<string, Generator>> = {
  vite: {
    packages: ['vite@8.3.8'],
    files: {
      'index.html':
        '<!doctype html><title>Vite</title><div id="app"></div><script type="module" src="/main.js"></script>',
      'main.js': "import './style.css'\nimport('./lazy.js').then(({ say }) => say('first words'))\n",
      'lazy.js': "export const say = (words) => (document.querySelector('#app').textContent = words + ' later')\n",
      'style.css': 'body { color: #123 }',
    },
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
}

/** Two builds of a project, with a change in between: the folders of what they wrote. */
export async function buildTwice(name: string, work: string): Promise<[first: string, second: string]> {
  const { packages, files, build, output, changed } = GENERATORS[name]!
  const project = path.join(work, name)
  for (const [file, text] of Object.entries({ 'package.json': '{"type":"module","private":true}', ...files })) {
    await mkdir(path.dirname(path.join(project, file)), { recursive: true })
    await writeFile(path.join(project, file), text)
  }
  const options = { cwd: project, env: { ...process.env, ...QUIET }, maxBuffer: 50_000_000 }
  await run('npm', ['install', '--no-audit', '--no-fund', ...packages], options)
  const builds: string[] = []
  for (const turn of ['first', 'second']) {
    if (turn === 'second') {
      const [file, from, to] = changed
      const source = path.join(project, file)
      await writeFile(source, (await readFile(source, 'utf8')).replace(from, to))
    }
    await rm(path.join(project, output), { recursive: true, force: true })
    await run('npx', ['--no-install', ...build], options)
    const kept = path.join(work, `${name}-${turn}`)
    await cp(path.join(project, output), kept, { recursive: true })
    builds.push(kept)
  }
  return builds as [string, string]
}

/** Builds send no word about themselves. */
const QUIET = {
  NEXT_TELEMETRY_DISABLED: '1',
  ASTRO_TELEMETRY_DISABLED: '1',
  CI: '1',
  NODE_ENV: 'production',
  NODE_OPTIONS: '',
}
