/** What a manifest keeps of former versions: a pure function over manifests. */
import { describe, expect, test } from 'vitest'
import {
  changedUnhashed,
  keepFormer,
  keptBlobSizes,
  MAX_KEPT_FILES,
  nextEndOf,
  summaryOf,
  type KeepTerms,
} from '../../../control/drops/publishing/manifest/kept-files.ts'
import { encodeManifest, decodeManifest, type KeptFiles, type Manifest } from '../../../shared/contracts/manifest.ts'
import { DAY_MS } from '../../../shared/running/clock.ts'

const NOW = Date.UTC(2026, 10, 17)
const KEEP_MS = 30 * DAY_MS
const hashOf = (text: string): string => Buffer.from(text).toString('hex').padEnd(64, '0').slice(0, 64)

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  xhtml: 'application/xhtml+xml',
  js: 'text/javascript',
  css: 'text/css',
  txt: 'text/plain',
}

function manifest(paths: readonly string[], rest: Partial<Manifest> = {}, size = 10): Manifest {
  return {
    v: 1,
    files: paths.map((path) => {
      const type = TYPES[path.slice(path.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
      return [path, { hash: hashOf(path), size, type }]
    }),
    redirects: [],
    headers: [],
    unserved: [],
    ...rest,
  }
}

function terms(changes: Partial<KeepTerms> = {}): KeepTerms {
  return {
    now: NOW,
    keepMs: KEEP_MS,
    bounds: { files: MAX_KEPT_FILES, bytes: 1e9, roomBytes: 1e9 },
    isRetained: () => false,
    ...changes,
  }
}

const withheld = (paths: string[], contents: string[] = []) => ({ paths, contents })
const pathsOf = (kept: KeptFiles | undefined): string[] => (kept?.files ?? []).map(([path]) => path)

const v1 = manifest(['index.html', 'a.js', 'page.xhtml', 'data.bin', 'robots.txt', 'same.css'])
const v2 = manifest(['index.html', 'b.js', 'same.css'])

test('everything that is no page stays, unless the live version has something at its path', () => {
  const kept = keepFormer(v2, { number: 1, manifest: v1 }, undefined, terms())
  expect(pathsOf(kept).toSorted()).toEqual(['a.js', 'data.bin', 'robots.txt'])
  expect(kept?.files[0]?.[1]).toMatchObject({ since: NOW, version: 1 })
  expect(decodeManifest(encodeManifest({ ...v2, kept }))).toEqual({ ...v2, kept })
})

test('what this publish was not allowed to bring does not stay either', () => {
  const kept = keepFormer(v2, { number: 1, manifest: v1 }, undefined, terms({ withheld: withheld(['data.bin']) }))
  expect(pathsOf(kept).toSorted()).toEqual(['a.js', 'robots.txt'])
  const { hash } = v1.files.find(([path]) => path === 'a.js')![1]
  const moved = keepFormer(v2, { number: 1, manifest: v1 }, undefined, terms({ withheld: withheld([], [hash]) }))
  expect(pathsOf(moved).toSorted()).toEqual(['data.bin', 'robots.txt'])
})

test('what was kept stays kept, and comes off the list where the live version has it again', () => {
  const second = keepFormer(v2, { number: 1, manifest: v1 }, undefined, terms())
  const v3 = manifest(['index.html', 'c.js', 'robots.txt'])
  const third = keepFormer(v3, { number: 2, manifest: v2 }, second, terms({ now: NOW + DAY_MS }))
  expect(pathsOf(third)).toEqual(['b.js', 'same.css', 'a.js', 'data.bin'])
  expect(third?.files.map(([, { version }]) => version)).toEqual([2, 2, 1, 1])
  const back = keepFormer(v1, { number: 3, manifest: v3 }, third, terms({ now: NOW + 2 * DAY_MS }))
  expect(pathsOf(back)).toEqual(['c.js', 'b.js'])
})

test('a name that two versions had is the newer one’s', () => {
  const old = keepFormer(manifest(['index.html']), { number: 1, manifest: manifest(['a.js']) }, undefined, terms())
  const newer: Manifest = manifest(['a.js'])
  newer.files[0]![1].hash = hashOf('another')
  const kept = keepFormer(manifest(['index.html']), { number: 2, manifest: newer }, old, terms())
  expect(kept?.files.map(([path, { version, file }]) => [path, version, file.hash])).toEqual([
    ['a.js', 2, hashOf('another')],
  ])
})

describe('how long', () => {
  const kept = keepFormer(v2, { number: 1, manifest: v1 }, undefined, terms())
  test.each([
    ['one millisecond before its time is over', NOW + KEEP_MS - 1, false, KEEP_MS, 3],
    ['when its time is over', NOW + KEEP_MS, false, KEEP_MS, 0],
    ['when its time is over and its version is retained', NOW + 2 * KEEP_MS, true, KEEP_MS, 3],
    ['where nothing is to be kept, retained or not', NOW, true, 0, 0],
  ])('%s', (_case, now, retained, keepMs, files) => {
    const left = keepFormer(v2, undefined, kept, terms({ now, keepMs, isRetained: () => retained }))
    expect(left?.files.length ?? 0).toBe(files)
  })

  test('the summary says until when the last one stays, and when the first is due', () => {
    const v3 = manifest(['index.html'])
    const later = keepFormer(v3, { number: 2, manifest: v2 }, kept, terms({ now: NOW + DAY_MS }))
    expect(summaryOf(later, KEEP_MS)).toEqual({ files: 5, bytes: 50, until: NOW + DAY_MS + KEEP_MS })
    const due = (isRetained: (number: number) => boolean) => nextEndOf(later, { keepMs: KEEP_MS, isRetained })
    expect([due(() => false), due((number) => number === 1), due(() => true)]).toEqual([
      NOW + KEEP_MS,
      NOW + DAY_MS + KEEP_MS,
      null,
    ])
    expect(summaryOf(undefined, KEEP_MS)).toEqual({ files: 0, bytes: 0, until: null })
  })
})

describe('bounds', () => {
  const old = keepFormer(manifest([]), { number: 1, manifest: manifest(['old.js']) }, undefined, terms())
  const next = manifest(['index.html'])
  const former = manifest(['x.js', 'y.js'])
  const within = (files: number, bytes: number, roomBytes = bytes, retained = false) =>
    pathsOf(
      keepFormer(next, { number: 2, manifest: former }, old, {
        ...terms({ isRetained: () => retained }),
        bounds: { files, bytes, roomBytes },
      }),
    )
  test.each([
    ['all fit', 3, 30, ['x.js', 'y.js', 'old.js']],
    ['a file too many', 2, 30, ['x.js', 'y.js']],
    ['a byte too many', 3, 29, ['x.js', 'y.js']],
    ['no room', 3, 9, []],
  ])('%s: what was replaced first goes first', (_case, files, bytes, left) => {
    expect(within(files, bytes)).toEqual(left)
  })

  test('what retained versions store anyway needs no room in the plan', () => {
    expect(within(3, 30, 0)).toEqual([])
    expect(within(3, 30, 0, true)).toEqual(['x.js', 'y.js', 'old.js'])
  })

  test('the same bytes under two names, or in the live version, count once', () => {
    const twice = manifest(['x.js', 'y.js'])
    for (const [, file] of twice.files) file.hash = hashOf('one')
    const bounds = { files: 9, bytes: 10, roomBytes: 10 }
    expect(pathsOf(keepFormer(next, { number: 2, manifest: twice }, undefined, { ...terms(), bounds }))).toHaveLength(2)
    next.files[0]![1].hash = hashOf('one')
    const none = { ...bounds, bytes: 0, roomBytes: 0 }
    expect(
      pathsOf(keepFormer(next, { number: 2, manifest: twice }, undefined, { ...terms(), bounds: none })),
    ).toHaveLength(2)
  })

  test('30 days of 50 publishes a day that each replace 500 chunks', () => {
    const chunksOf = (publish: number) =>
      Array.from({ length: 500 }, (_, index) => `assets/chunk-${index}-${publish}.js`)
    const entry = { file: manifest(['a.js']).files[0]![1], since: NOW, version: 1 }
    const all: KeptFiles['files'] = []
    for (let publish = 1500; publish > 0; publish--)
      for (const path of chunksOf(publish)) all.push([path, { ...entry, version: publish }])
    const live = manifest(['index.html', ...chunksOf(1502)])
    const former = { number: 1501, manifest: manifest(['index.html', ...chunksOf(1501)]) }
    const kept = keepFormer(live, former, { files: all, headers: [] }, terms())
    expect(kept?.files).toHaveLength(MAX_KEPT_FILES)
    expect(kept?.files[0]?.[1].version).toBe(1501)
    expect(kept?.files.at(-1)?.[1].version).toBe(1501 - MAX_KEPT_FILES / 500 + 1)
    expect(encodeManifest({ ...live, kept }).length).toBeLessThan(5_000_000)
  })
})

test('files keep the headers of their own version, each list once; a page by its header does not stay', () => {
  const headers: Manifest['headers'] = [
    { from: '/*.js', set: [['cache-control', 'max-age=7']], line: 1 },
    { from: '/shown.txt', set: [['content-type', 'text/html']], line: 3 },
  ]
  const former = manifest(['a.js', 'b.js', 'plain.css', 'shown.txt'], { headers })
  const kept = keepFormer(manifest(['index.html']), { number: 1, manifest: former }, undefined, terms())
  expect(kept?.headers).toEqual([[['cache-control', 'max-age=7']]])
  expect(kept?.files.map(([path, { headers: list }]) => [path, list])).toEqual([
    ['a.js', 0],
    ['b.js', 0],
    ['plain.css', undefined],
  ])
  const live = manifest(['a.js', 'b.js'])
  expect(keepFormer(live, undefined, kept, terms())?.headers).toEqual([])
})

test('the blobs of kept files count with their bytes, those of variants with nothing', () => {
  const former = manifest(['a.js'])
  former.files[0]![1].encodings = { br: { hash: hashOf('br'), size: 3 } }
  const kept = keepFormer(manifest([]), { number: 1, manifest: former }, undefined, terms())
  expect(keptBlobSizes(kept)).toEqual(
    new Map([
      [hashOf('br'), 0],
      [hashOf('a.js'), 10],
    ]),
  )
})

test('code that changed under the same name is told, unless the name is known to change with the content', () => {
  const former = manifest(['index.html', 'app.js', 'style.css', 'photo.bin', 'same.js', 'chunk.js'])
  const next = structuredClone(former)
  for (const [path, file] of next.files) if (path !== 'same.js') file.hash = hashOf(`new ${path}`)
  next.files.find(([path]) => path === 'chunk.js')![1].immutable = true
  expect(changedUnhashed(next, former)).toEqual(['app.js', 'style.css'])
  expect(changedUnhashed(next, undefined)).toEqual([])
})
