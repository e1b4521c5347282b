/** What of a known version is left untouched, and that what is remembered of it is not found out again. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { createKnownVersions } from '../../../control/drops/publishing/intake/known-versions.ts'
import type { Reading } from '../../../control/drops/publishing/analysis/analyse.ts'
import type { Manifest, ManifestFile, ManifestFiles } from '../../../shared/contracts/manifest.ts'

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')
const encodings = { br: { hash: hashOf('br'), size: 1000 } }

function entry(path: string, file: Partial<ManifestFile> = {}): ManifestFiles[number] {
  return [path, { hash: hashOf(path), size: 2000, type: 'text/html; charset=utf-8', encodings, ...file }]
}

const siteOf = (...files: ManifestFiles): Manifest => ({ v: 1, files, redirects: [], headers: [], unserved: [] })

function known(readingOf: (path: string) => Reading | undefined = () => ({ key: 'none' })) {
  const asked: string[] = []
  const versions = createKnownVersions({
    get({ path }) {
      asked.push(path)
      return readingOf(path)
    },
  })
  return { versions, asked }
}

const { encodings: _, ...bare } = entry('a')[1]

test.each<[string, ManifestFiles[number], Reading | undefined]>([
  ['the landing page', entry('index.html'), { key: 'none' }],
  ['a page that was rendered', entry('page.html', { source: { path: 'page.html', hash: hashOf('x'), size: 1 } }), {}],
  ['a stylesheet', entry('a.css'), { key: 'none' }],
  ['what lies where generators write hashed names', entry('assets/a.js'), { key: 'none' }],
  ['what is kept for ever, though its name is not that of its content', entry('a.js', { immutable: true }), {}],
  ['a name of its content that is not kept', entry(`a.${hashOf('a').slice(0, 8)}.js`, { hash: hashOf('a') }), {}],
  ['what looks like a secret by its name', entry('.env'), { key: 'none' }],
  ['what was published although it holds a key', entry('note.txt'), { key: 'whole key' }],
  ['a file of rules', entry('vercel.json'), { key: 'none' }],
  ['what no visitor can ask for', entry('.dropway/a.html'), { key: 'none' }],
  ['what is not compressed yet', ['a.html', bare], { key: 'none' }],
  ['a page that is in no memory', entry('a.html'), undefined],
])('%s is looked at', (_name, one, reading) => {
  const { versions } = known(() => reading)
  const { untouched, others } = versions.split(siteOf(one), new Set())
  expect(untouched).toEqual([])
  const { hash, size } = one[1].source ?? one[1]
  expect(others).toEqual([{ path: one[0], hash, size }])
})

test('pages, pictures and downloads are left untouched, with the code that they load', () => {
  const files = [entry('a.html'), entry('b.html'), entry('photo.png', { type: 'image/png' }), entry('z.zip')]
  const code = (path: string) => (path === 'b.html' ? { code: '[["b.js"]]' } : {})
  const { versions } = known((path) => ({ key: 'none', ...code(path) }))
  const split = versions.split(siteOf(...files), new Set(['z.zip']))
  expect(split.untouched).toEqual(files.slice(0, 3))
  expect(split.untouched.every((one, place) => one === files[place])).toBe(true)
  expect([...split.code]).toEqual(['[["b.js"]]'])
  expect(split.others).toEqual([])
})

test('a file is found out about once, in however many versions it is', () => {
  const { versions, asked } = known()
  const files = Array.from({ length: 3000 }, (_each, index) => entry(`page-${index}.html`))
  versions.split(siteOf(...files), new Set())
  expect(asked).toHaveLength(3000)
  const changed = entry('page-7.html', { hash: hashOf('new') })
  expect(versions.split(siteOf(...files.with(7, changed)), new Set()).untouched).toHaveLength(3000)
  expect(asked.slice(3000)).toEqual(['page-7.html'])
})

test('a version is known by each of its manifests', () => {
  const { versions } = known()
  versions.carry('unknown', 'smaller')
  versions.note('made')
  versions.carry('made', 'compressed')
  expect(['unknown', 'smaller', 'made', 'compressed'].map(versions.isKnown)).toEqual([false, false, true, true])
})
