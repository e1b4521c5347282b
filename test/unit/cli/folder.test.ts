import { createHash } from 'node:crypto'
import { linkSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readFolder } from '../../../cli/content/folder.ts'
import { openProject } from '../../../cli/content/project/project.ts'
import { findSource } from '../../../cli/content/source.ts'

let root: string
let configDir: string

beforeEach(async () => {
  const home = await mkdtemp(path.join(os.tmpdir(), 'dropway-cli-'))
  root = path.join(home, 'site')
  configDir = path.join(home, '.config', 'dropway')
  await mkdir(root)
})
afterEach(async () => {
  await rm(path.dirname(root), { recursive: true, force: true })
})

async function write(name: string, text = name): Promise<void> {
  await mkdir(path.dirname(path.join(root, name)), { recursive: true })
  await writeFile(path.join(root, name), text)
}

test('a folder is its files, sorted, hashed, without what stays at home', async () => {
  for (const name of ['index.html', 'b/x.txt', 'a.txt', '.git/HEAD', '.env', 'skip.me', '.well-known/x'])
    await write(name)
  await write('.dropwayignore', 'skip.me')
  const { files, skipped } = await readFolder(root)
  expect(files.map((file) => file.path)).toEqual(['.well-known/x', 'a.txt', 'b/x.txt', 'index.html'])
  expect(files[1]).toMatchObject({ size: 5, sha256: createHash('sha256').update('a.txt').digest('hex') })
  expect(skipped).toEqual([])
})

test('secrets are found whatever .dropwayignore says; only --include asks for one', async () => {
  const key = '-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n'
  const secrets = {
    '.env': 'A=1',
    '.git/config': '[core]',
    '.NPMRC': 'x',
    'a.txt': key,
    'film.txt': 'a\n'.repeat(1e6) + key,
  }
  for (const [name, content] of Object.entries(secrets)) await write(name, content)
  await write('index.html')
  await write('.dropwayignore', '!.env\n!.git/\n!*\n')
  const { secrets: found, allowsSecrets } = await readFolder(root)
  expect(found.map((file) => file.path)).toEqual(Object.keys(secrets).toSorted())
  expect(allowsSecrets).toBe(false)
  const asked = await readFolder(root, { include: ['a.txt'] })
  expect(asked.secrets.map((file) => file.path)).not.toContain('a.txt')
  expect(asked.allowsSecrets).toBe(true)
})

test('links inside are followed to files, links out and to folders are left out', async () => {
  await write('index.html')
  await symlink('index.html', path.join(root, 'inside.html'))
  await symlink('/etc/hostname', path.join(root, 'outside'))
  await symlink('.', path.join(root, 'loop'))
  const { files, skipped } = await readFolder(root)
  expect(files.map((file) => file.path)).toEqual(['index.html', 'inside.html'])
  expect(skipped.toSorted()).toEqual(['loop', 'outside'])
})

test('a name that is not UTF-8 is named as its bytes, and may be left out; U+FFFD itself is a name like others', async () => {
  await write('index.html')
  await write('sub/odd \uFFFD.txt')
  expect((await readFolder(root)).files.map((file) => file.path)).toContain('sub/odd \uFFFD.txt')
  await writeFile(Buffer.from(`${root}/sub/caf\u00e9.html`, 'latin1'), 'x')
  await expect(readFolder(root)).rejects.toThrow(/"sub\/caf\\xe9\.html" is not UTF-8/)
  await write('.dropwayignore', 'caf*.html')
  expect((await readFolder(root)).files).toHaveLength(2)
})

test('without index.html a folder is refused with what to do', async () => {
  await write('about.html')
  await expect(readFolder(root)).rejects.toThrow(/no index\.html/)
})

test.each([
  [['index.html'], '.'],
  [['dist/index.html'], 'dist'],
  [['build/index.html', 'public/index.html'], 'build'],
  [['package.json', 'index.html', 'dist/index.html'], 'dist'],
  [['package.json', 'index.html'], '.'],
  [['index.html', 'public/index.html'], '.'],
  [['public/logo.png', '_site/index.html'], '_site'],
])('%j publishes %s', async (names, expected) => {
  for (const name of names) await write(name)
  const source = await findSource(root, undefined)
  expect(path.relative(root, source.path) || '.').toBe(expected)
  expect(source.project).toBe(root)
})

test('a named source: build folders belong to their project, files to their folder', async () => {
  for (const name of ['dist/index.html', 'docs/index.html', 'page.md', 'x.zip', 'x.png', 'x.exe']) await write(name)
  expect(await findSource(root, 'dist')).toMatchObject({ kind: 'folder', project: root })
  expect(await findSource(root, 'docs')).toMatchObject({ kind: 'folder', project: path.join(root, 'docs') })
  expect(await findSource(root, 'page.md')).toMatchObject({ kind: 'page', project: root })
  expect(await findSource(root, 'x.zip')).toMatchObject({ kind: 'zip' })
  expect(await findSource(root, 'x.png')).toMatchObject({ kind: 'document' })
  await expect(findSource(root, 'x.exe')).rejects.toThrow(/cannot be published/)
  await expect(findSource(root, 'none')).rejects.toThrow(/does not exist/)
})

test('at every moment of remembering a drop it is linked or found as unfinished, whenever the client is killed', async () => {
  const project = await openProject(root, 'https://one.example', configDir)
  project.announce('one')
  // The file cannot be written: what a client that is killed right before leaves behind.
  await mkdir(path.join(root, `.dropway.json.${process.pid}`))
  await expect(project.remember({ id: 'st_1', slug: 'one' })).rejects.toThrow()
  const again = await openProject(root, 'https://one.example', configDir)
  expect([again.find(), again.unfinished(), again.isLinkedTo('st_1')]).toEqual([undefined, 'one', true])
})

test('a client that is killed while it notes what it did leaves the old note or the new one', async () => {
  const project = await openProject(root, 'https://one.example', configDir)
  project.link('st_old')
  const [note] = readdirSync(path.join(configDir, 'links'))
  // Whoever holds the old file goes on reading the old note: it was replaced, not emptied and written anew.
  const old = path.join(configDir, 'old')
  linkSync(path.join(configDir, 'links', note!), old)
  writeFileSync(path.join(configDir, 'links', `${note}.2147483646`), '{"id"')
  project.link('st_new')
  expect([readFileSync(old, 'utf8'), readdirSync(path.join(configDir, 'links'))]).toEqual([
    expect.stringContaining('st_old'),
    [note],
  ])
  expect((await openProject(root, 'https://one.example', configDir)).isLinkedTo('st_new')).toBe(true)
})

test('the project file remembers folders and files apart, and per service', async () => {
  const first = await openProject(root, 'https://one.example', configDir)
  expect(first.find()).toBeUndefined()
  await first.remember({ id: 'st_1', slug: 'one' })
  await first.remember({ id: 'st_2', slug: 'two' }, '__proto__')
  const again = await openProject(root, 'https://one.example', configDir)
  expect(again.find()).toEqual({ id: 'st_1', slug: 'one' })
  expect(again.find('__proto__')).toEqual({ id: 'st_2', slug: 'two' })
  expect(again.find('toString')).toBeUndefined()
  expect((await openProject(root, 'https://other.example', configDir)).find()).toBeUndefined()
  await writeFile(path.join(root, '.dropway.json'), 'nonsense')
  await expect(openProject(root, 'https://one.example', configDir)).rejects.toThrow(/not valid JSON/)
})
