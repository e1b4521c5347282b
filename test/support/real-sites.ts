/**
 * Sites that nobody here wrote: documentation of Debian packages, and what generators from npm make of a small project.
 * Fetched and built in a folder of the caller's; only the deep run has them.
 */
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { installFromNpm, unpackFromDebian } from './registries.ts'
import { GENERATORS } from './site-generators.ts'

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
  await unpackFromDebian(folder, name)
  return path.join(folder, DEBIAN_SITES[name]!)
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
  await installFromNpm(project, packages)
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
