import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ByContent } from '../../../control/drops/publishing/manifest/by-content.ts'
import {
  blobSizesOf,
  buildManifest,
  type FactsOf,
  type StoredFile,
} from '../../../control/drops/publishing/manifest/manifest-builder.ts'
import { decodeManifest, encodeManifest } from '../../../shared/contracts/manifest.ts'

const hash = fc.stringMatching(/^[0-9a-f]{64}$/)
const variant = fc.record({ hash, size: fc.nat() })
const name = fc.constantFrom(
  'index.html',
  'a.css',
  '__proto__',
  'constructor',
  'a/b.js',
  'x-4f3d2a1b.js',
  '_redirects',
  '_headers',
  'sub/_headers',
  'ü',
)
const file = fc.record({
  path: name,
  hash,
  size: fc.nat(),
  source: fc.option(fc.record({ path: fc.constant('a.md'), hash, size: fc.nat() }), { nil: undefined }),
})
const facts = fc.record({
  charset: fc.constantFrom('utf-8' as const, null),
  injection: fc.option(fc.record({ head: fc.nat(), body: fc.option(fc.nat()) }), { nil: undefined }),
  encodings: fc.option(fc.record({ br: fc.option(variant, { nil: undefined }), gzip: variant }), { nil: undefined }),
})

const uploads = fc
  .uniqueArray(file, { selector: (each) => each.path })
  .chain((files) => fc.tuple(fc.constant(files), fc.array(facts, { minLength: files.length, maxLength: files.length })))
  .map(([files, all]): { files: StoredFile[]; factsOf: FactsOf } => {
    const known = new ByContent(files.map((each, index) => [each, all[index]!]))
    return { files, factsOf: (each) => known.get(each) }
  })

test('a manifest survives encoding, whatever the files are called', () => {
  fc.assert(
    fc.property(uploads, (upload) => {
      const manifest = buildManifest({ ...upload, redirects: [], headers: [] })
      expect(decodeManifest(encodeManifest(manifest))).toEqual(JSON.parse(JSON.stringify(manifest)))
    }),
  )
})

test('the same upload in another order is the same manifest', () => {
  fc.assert(
    fc.property(uploads, (upload) => {
      const build = (files: StoredFile[]) =>
        encodeManifest(buildManifest({ ...upload, files, redirects: [], headers: [] }))
      expect(build(upload.files.toReversed()).equals(build(upload.files))).toBe(true)
    }),
  )
})

test('every file is served or kept as a rule file, and every blob is counted', () => {
  fc.assert(
    fc.property(uploads, (upload) => {
      const manifest = buildManifest({ ...upload, redirects: [], headers: [] })
      const listed = [...manifest.files.map(([path]) => path), ...manifest.unserved.map(([path]) => path)]
      expect(listed.toSorted()).toEqual(upload.files.map((each) => each.path).toSorted())
      expect(manifest.unserved.every(([path]) => path === '_redirects' || path === '_headers')).toBe(true)
      const text = encodeManifest(manifest).toString()
      expect(new Set(blobSizesOf(manifest).keys())).toEqual(new Set(text.match(/(?<="hash":")[0-9a-f]{64}/g) ?? []))
      for (const [, served] of manifest.files) if (served.injection) expect(served.type).toMatch(/^text\/html/)
    }),
  )
})

test('whether a name may be kept for ever is decided anew, also for a file of the live version', () => {
  const hash = 'a'.repeat(64)
  const live = { hash, size: 1, type: 'text/plain' }
  const files = [
    { path: 'report-Q4-final.js', hash, size: 1, live: { ...live, immutable: true } },
    { path: 'app.aaaaaaaa.js', hash, size: 1, live },
  ]
  const manifest = buildManifest({ files, factsOf: () => undefined, redirects: [], headers: [] })
  expect(manifest.files).toEqual([
    ['app.aaaaaaaa.js', { ...live, immutable: true }],
    ['report-Q4-final.js', live],
  ])
})
