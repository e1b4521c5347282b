/** Documents name files, headings, commands and packages that exist: a move that forgets them fails here. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const SOURCE_FOLDERS = [
  '.ci',
  '.docker',
  '.github',
  'bench',
  'certs',
  'cli',
  'control',
  'docs',
  'edge',
  'shared',
  'test',
]
/** What our own files end with; anything else in backticks may be a publisher's file. */
const SOURCE_FILE = /^[\w./-]+\.(?:ts|md|sql|sh|css)$/

const inRoot = (...parts: string[]): string => path.join(ROOT, ...parts)
const read = (file: string): string => readFileSync(inRoot(file), 'utf8')

const files = globSync(['*', `{${SOURCE_FOLDERS.join(',')}}/**/*`], {
  cwd: ROOT,
  exclude: (name) => /(?:^|\/)(?:node_modules|dist|output|corpus)(?:\/|$)/.test(name),
})
/** Pages of the product; their links are followed in test/operations/guides.test.ts. */
const PRODUCT_PAGES = 'control/doors/dashboard/public/'
const documents = files
  .filter((file) => file.endsWith('.md') && !file.startsWith(PRODUCT_PAGES))
  .map((file) => ({ file, text: read(file) }))

/** Without blocks of code, where an arrow or a path means something else. */
const prose = (text: string): string => text.replace(/^```[^]*?^```$/gm, '')
const quoted = (text: string): string[] => [...prose(text).matchAll(/`([^`\n]+)`/g)].map(([, words]) => words!)

const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')
const anchorsOf = (text: string): string[] =>
  [...prose(text).matchAll(/^#+ (.+)$/gm)].map(([, line]) => anchorOf(line!))

function isBrokenLink(from: string, link: string): boolean {
  const [target = '', anchor] = link.split('#')
  const file = target === '' ? from : path.join(path.dirname(from), target)
  if (!existsSync(inRoot(file))) return true
  return anchor !== undefined && !anchorsOf(read(file)).includes(anchor)
}

/**
 * A path is written from the root or from the document's folder; a bare name may be of any file below that folder, and in
 * docs/ of any file.
 */
function isLost(document: string, name: string): boolean {
  const folder = path.dirname(document)
  if (existsSync(inRoot(name)) || existsSync(inRoot(folder, name))) return false
  const prefix = ['.', 'docs'].includes(folder) ? '' : `${folder}/`
  return !files.some((file) => file.startsWith(prefix) && file.endsWith(`/${name}`))
}

const isPathOfOurs = (name: string): boolean =>
  SOURCE_FILE.test(name) || (/^[\w./-]+\/$/.test(name) && SOURCE_FOLDERS.includes(name.split('/')[0]!))

test('the documents are really read', () => {
  expect(documents.map(({ file }) => file)).toEqual(expect.arrayContaining(['README.md', 'docs/decisions.md']))
  expect(isBrokenLink('README.md', 'docs/decisions.md#oauth')).toBe(false)
  expect(isBrokenLink('README.md', 'docs/decisions.md#no-such-heading')).toBe(true)
  expect(isLost('edge/README.md', 'pipeline.ts')).toBe(false)
  expect(isLost('edge/README.md', 'no-such-file.ts')).toBe(true)
})

test.each(documents)('links, paths and commands in $file lead somewhere', ({ file, text }) => {
  const links = [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!)
  const scripts = [...text.matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, script]) => script!)
  const known = ['package.json', 'cli/package.json'].flatMap((manifest) =>
    Object.keys((JSON.parse(read(manifest)) as { scripts: Record<string, string> }).scripts),
  )
  expect({
    links: links.filter((link) => !/^[a-z]+:/.test(link) && isBrokenLink(file, link)),
    paths: quoted(text).filter((name) => isPathOfOurs(name) && isLost(file, name)),
    scripts: scripts.filter((script) => !known.includes(script)),
  }).toEqual({ links: [], paths: [], scripts: [] })
})

test('the newcomer reaches the file that decides in two opens', () => {
  const [, walk = ''] = read('CONTRIBUTING.md').split("## A newcomer's walk")
  const rows = [...walk.matchAll(/^\| (.+\?) \| `([^`]+)` \| (?:`([^`]+)` )?\| (.*) \|$/gm)]
  expect(rows.length).toBeGreaterThanOrEqual(10)
  const readme = read('README.md')
  const lost = rows.flatMap(([, question, first, second, marks]) => {
    const last = read(second ?? first!)
    const names = second === undefined ? [] : [second, path.relative(path.dirname(first!), second)]
    const isNamed = names.length === 0 || names.some((name) => read(first!).includes(name))
    const isFound = [...marks!.matchAll(/`([^`]+)`/g)].every(([, mark]) => last.includes(mark!))
    return readme.includes(first!) && isNamed && isFound ? [] : [question]
  })
  expect(lost).toEqual([])
})

test('every dependency has its row', () => {
  const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string>>
  const names = ['dependencies', 'devDependencies', 'optionalDependencies'].flatMap((kind) =>
    Object.keys(manifest[kind]!),
  )
  const text = read('docs/dependencies.md')
  expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([])
})
