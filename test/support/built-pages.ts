/**
 * Pages of documents that nobody here wrote, as generators from npm make them: the READMEs of our dependencies by VitePress
 * with its own theme, and their declarations by TypeDoc. Built in a folder beside the repository; only the deep run has them.
 */
import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { cp, mkdir, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { installFromNpm } from './registries.ts'

const run = promisify(execFile)
const ROOT = path.resolve(import.meta.dirname, '../..')
const FOLDER = path.join(os.tmpdir(), 'dropway-built-pages')
const PACKAGES = [
  'vitepress@1.6.4',
  'vue@3.5.45',
  'typedoc@0.28.20',
  'typescript@5.9.3',
  '@mozilla/readability@0.6.0',
  'linkedom@0.18.12',
]

/** Long enough to be an article; VitePress reads `{{` and tags as code of its own, so those without are taken. */
const README_CHARS = { least: 3000, most: 60_000 }
const READMES = 30
const QUIET = { CI: '1', NODE_OPTIONS: '' }

export interface BuiltPage {
  readonly name: string
  readonly html: string
  /** Text of what Readability takes for the article, by paragraph. */
  readonly article: readonly string[]
}

export async function buildPages(): Promise<BuiltPage[]> {
  await mkdir(path.join(FOLDER, 'docs'), { recursive: true })
  await writeFile(path.join(FOLDER, 'package.json'), '{"type":"module","private":true}')
  const options = { cwd: FOLDER, env: { ...process.env, ...QUIET }, maxBuffer: 50_000_000 }
  await installFromNpm(FOLDER, PACKAGES, ['--legacy-peer-deps'])
  await writeReadmes()
  await run('npx', ['--no-install', 'vitepress', 'build', 'docs'], options)
  await writeDeclarations()
  const typedoc = ['typedoc', '--skipErrorChecking', '--logLevel', 'Error', '--readme', 'none', '--out', 'api']
  await run('npx', ['--no-install', ...typedoc, 'typed/*.d.ts'], options)
  await writeFile(path.join(FOLDER, 'articles.mjs'), READ_ARTICLES)
  const { stdout } = await run(process.execPath, ['articles.mjs'], options)
  return JSON.parse(stdout) as BuiltPage[]
}

async function writeReadmes(): Promise<void> {
  await rm(path.join(FOLDER, 'docs'), { recursive: true, force: true })
  await mkdir(path.join(FOLDER, 'docs/.vitepress'), { recursive: true })
  const config = "export default { title: 'Packages', ignoreDeadLinks: true, markdown: { html: false } }\n"
  await writeFile(path.join(FOLDER, 'docs/.vitepress/config.mjs'), config)
  const readmes = globSync('node_modules/{*,@*/*}/README.md', { cwd: ROOT })
    .toSorted()
    .map((file) => ({ file, text: readFileSync(path.join(ROOT, file), 'utf8') }))
    .filter(({ text }) => text.length >= README_CHARS.least && text.length <= README_CHARS.most)
    .filter(({ text }) => !/\{\{|<[a-z!/]/i.test(text.replace(/```[\s\S]*?```|`[^`\n]*`/g, '')))
    .slice(0, READMES)
  for (const { file, text } of readmes) {
    const name = path
      .dirname(file)
      .replace('node_modules/', '')
      .replaceAll(/[@/.]+/g, '-')
    // Pictures beside a README are not in the package.
    await writeFile(path.join(FOLDER, 'docs', `${name}.md`), text.replaceAll(/!\[[^\]]*\]\([^)]*\)/g, ''))
  }
}

async function writeDeclarations(): Promise<void> {
  await mkdir(path.join(FOLDER, 'typed'), { recursive: true })
  for (const name of ['lru-cache/dist/esm/index.d.ts', 'yazl/index.d.ts', 'uqr/dist/index.d.mts'])
    await cp(path.join(ROOT, 'node_modules', name), path.join(FOLDER, 'typed', `${name.split('/')[0]}.d.ts`)).catch(
      () => undefined,
    )
  await writeFile(
    path.join(FOLDER, 'tsconfig.json'),
    '{"compilerOptions":{"skipLibCheck":true,"module":"nodenext","target":"es2024","types":[]},"include":["typed"]}',
  )
}

/** Another reader's opinion of what the article is: Firefox's. */
const READ_ARTICLES = `
import { readFileSync, globSync } from 'node:fs'
import { Readability } from '@mozilla/readability'
import { parseHTML } from 'linkedom'
const BLOCKS = 'p, li, h1, h2, h3, h4, td, th, dd, dt, blockquote'
const files = [...globSync('docs/.vitepress/dist/*.html'), ...globSync('api/{classes,interfaces,functions,types,modules}/*.html')].toSorted()
const pages = files.filter((file) => !file.endsWith('404.html')).flatMap((file) => {
  const html = readFileSync(file, 'utf8')
  const article = new Readability(parseHTML(html).document).parse()
  if (!article) return []
  const { document } = parseHTML('<html><body>' + article.content + '</body></html>')
  const blocks = [...document.querySelectorAll(BLOCKS)].filter((block) => !block.querySelector(BLOCKS) && !block.closest('pre'))
  return [{ name: file, html, article: blocks.map((block) => block.textContent) }]
})
process.stdout.write(JSON.stringify(pages))
`
