/**
 * Sites that nobody here wrote, published as their owners would: every byte arrives, nothing is warned of that is not so,
 * nothing is called immutable that changes, and publishing again sends nothing. What a generator's next build leaves out
 * stays reachable for tabs that are open.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { globSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parse, type DefaultTreeAdapterTypes } from 'parse5'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openCli, type Cli } from '../support/cli.ts'
import type { Answer } from '../support/client.ts'
import { buildTwice, DEBIAN_SITES, debianSite } from '../support/real-sites.ts'
import { GENERATORS } from '../support/site-generators.ts'
import { startStack, type Account, type OwnStack } from '../support/stack.ts'

interface Warning {
  readonly code: string
  readonly message: string
  readonly path?: string
}

interface Deployed {
  readonly slug: string
  readonly warnings: readonly Warning[]
  readonly blocked: readonly { path: string }[]
  readonly unchanged: boolean
}

let stack: OwnStack
let cli: Cli
let owner: Account
let work: string

beforeAll(async () => {
  ;[stack, cli] = await Promise.all([startStack({ operator: true }), openCli()])
  owner = await stack.createAccount('business')
  await writeFile(path.join(cli.folder, 'ca.pem'), stack.ca)
  work = await mkdtemp(path.join(os.tmpdir(), 'dropway-real-sites-'))
})
afterAll(async () => {
  await Promise.all([stack?.stop(), cli?.remove(), rm(work, { recursive: true, force: true })])
})

async function deploy(folder: string, slug: string, included: readonly string[] = []): Promise<Deployed> {
  const env = {
    DROPWAY_URL: stack.baseUrl,
    DROPWAY_CA_FILE: path.join(cli.folder, 'ca.pem'),
    DROPWAY_TOKEN: owner.token,
  }
  const done = await cli.call(
    ['deploy', folder, '--slug', slug, '--json', '--yes', ...included.flatMap((file) => ['--include', file])],
    { env },
  )
  expect(done.code, done.stderr).toBe(0)
  const { unchanged = false, report } = done.json()
  return { slug, unchanged, warnings: report?.warnings ?? [], blocked: report?.blocked ?? [] }
}

/** Files as a web server would find them: links that lead out of the folder, or nowhere, are none. */
function filesOf(folder: string): string[] {
  const isFile = (file: string): boolean => {
    try {
      return statSync(path.join(folder, file)).isFile()
    } catch {
      return false
    }
  }
  return globSync('**/*', { cwd: folder }).filter(isFile)
}

async function visit(slug: string, file: string): Promise<Answer> {
  const answer = await stack.visit(slug, `/${file.split('/').map(encodeURIComponent).join('/')}`)
  const location = answer.header('location')
  return location === undefined ? answer : stack.visit(slug, new URL(location, 'https://x').pathname)
}

const isImmutable = (answer: Answer): boolean => /immutable/.test(answer.header('cache-control') ?? '')

/** Every file of the folder, byte by byte; resolves to those that are sent as immutable. */
async function expectServed(slug: string, folder: string): Promise<string[]> {
  const immutable: string[] = []
  const different: string[] = []
  for (const file of filesOf(folder)) {
    const answer = await visit(slug, file)
    if (answer.status !== 200 || !answer.body.equals(await readFile(path.join(folder, file))))
      different.push(`${file}: ${answer.status}`)
    if (isImmutable(answer)) immutable.push(file)
  }
  expect(different).toEqual([])
  return immutable
}

/** Addresses that a page names, read by another parser: of links, and of what it loads. */
function namedBy(html: string): string[] {
  const found: string[] = []
  const walk = (node: DefaultTreeAdapterTypes.Node): void => {
    if ('attrs' in node)
      for (const { name, value } of node.attrs)
        if (['href', 'src', 'poster', 'data', 'action', 'background'].includes(name)) found.push(value.trim())
        else if (name === 'srcset') found.push(...value.split(',').map((each) => each.trim().split(/\s/)[0]!))
    if ('childNodes' in node) for (const child of node.childNodes) walk(child)
  }
  walk(parse(html))
  return found
}

/** What is wrong with a warning; undefined where it is right. */
async function falsehoodOf({ slug }: Deployed, folder: string, warning: Warning): Promise<string | undefined> {
  const told = `${warning.code} ${warning.path}: ${warning.message}`
  switch (warning.code) {
    case 'missing_page':
    case 'missing_file':
    case 'wrong_case': {
      const target = /(?:link to )?(\/[^\s]*)(?: leads| is needed| is written)/.exec(warning.message)?.[1]
      if (target === undefined || target.endsWith('…')) return target === undefined ? told : undefined
      if ((await stack.visit(slug, encodeURI(decodeURI(target)))).status !== 404) return `${told} (it answers)`
      const source = await readFile(path.join(folder, warning.path!), 'utf8')
      const base = `https://x/${warning.path}`
      const named = warning.path!.endsWith('.css')
        ? [...source.matchAll(/url\(\s*['"]?([^'")]+)/g), ...source.matchAll(/@import\s+['"]([^'"]+)/g)].map(
            ([, url]) => url!,
          )
        : namedBy(source)
      const isNamed = named.some(
        (url) => URL.parse(url, base)?.pathname === new URL(encodeURI(decodeURI(target)), base).pathname,
      )
      return isNamed ? undefined : `${told} (the page does not name it)`
    }
    case 'insecure_reference':
    case 'local_reference':
    case 'more_warnings':
      return undefined
    default:
      return told
  }
}

async function expectTrue(deployed: Deployed, folder: string): Promise<void> {
  const judged = await Promise.all(deployed.warnings.map((warning) => falsehoodOf(deployed, folder, warning)))
  expect(judged.filter((each) => each !== undefined)).toEqual([])
  expect(deployed.blocked).toEqual([])
}

/** These are databases, which nobody publishes without saying so. */
const DATABASES: Readonly<Record<string, readonly string[]>> = {
  'sqlite3-doc': ['search.d/search.db.gz', 'toc.db.gz'],
}

describe.each(Object.keys(DEBIAN_SITES))('%s', (name) => {
  test('is served as it is, without a false warning; again, nothing changes', async () => {
    const folder = await debianSite(name, work)
    const slug = `debian-${name.replaceAll('.', '-')}`
    const deployed = await deploy(folder, slug, DATABASES[name])
    expect(await expectServed(slug, folder)).toEqual([])
    await expectTrue(deployed, folder)
    expect((await deploy(folder, slug, DATABASES[name])).unchanged).toBe(true)
  }, 600_000)
})

/** Names that a generator gave anew, and those of them that were known as immutable. */
const corpus = { renamed: 0, known: 0 }

describe.each(Object.keys(GENERATORS))('%s', (name) => {
  test('two builds: true warnings, hashes known as such, and nothing missing for tabs of the first', async () => {
    const [first, second] = await buildTwice(name, work)
    const slug = `built-by-${name}`
    const deployed = await deploy(first, slug)
    const immutable = await expectServed(slug, first)
    await expectTrue(deployed, first)
    const [before, after] = [filesOf(first), new Set(filesOf(second))]
    const changed: string[] = []
    for (const file of before)
      if (after.has(file) && !(await readFile(path.join(first, file))).equals(await readFile(path.join(second, file))))
        changed.push(file)
    expect(immutable.filter((file) => changed.includes(file))).toEqual([])
    const gone = before.filter((file) => !after.has(file))
    // What the second build names otherwise in the same folder carries a hash; a folder of each build says nothing.
    const folders = new Set([...after].map((file) => path.dirname(file)))
    const renamed = gone.filter((file) => folders.has(path.dirname(file)) && !file.endsWith('.html'))
    const known = renamed.filter((file) => immutable.includes(file))
    console.log(
      `${name}: ${before.length} files, ${immutable.length} immutable, ${known.length} of ${renamed.length} renamed`,
    )
    expect(known.length).toBeGreaterThanOrEqual(0.9 * renamed.length)
    corpus.renamed += renamed.length
    corpus.known += known.length

    await deploy(second, slug)
    await expectServed(slug, second)
    for (const file of gone) {
      const answer = await visit(slug, file)
      expect([file, answer.status, answer.body.equals(await readFile(path.join(first, file)))]).toEqual([
        file,
        file.endsWith('.html') ? 404 : 200,
        !file.endsWith('.html'),
      ])
    }
    expect((await deploy(second, slug)).unchanged).toBe(true)
  }, 900_000)
})

test('of all names with a hash, at least nine in ten are known as such', () => {
  console.log(`${corpus.known} of ${corpus.renamed} renamed files of ${Object.keys(GENERATORS).length} generators`)
  expect(corpus.known).toBeGreaterThanOrEqual(0.9 * corpus.renamed)
})
