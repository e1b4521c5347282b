/** Which files are compressed, and in which order: before a version goes live, right after, and later. */
import { describe, expect, test } from 'vitest'
import { firstScreenOf } from '../../../control/drops/publishing/analysis/first-screen.ts'
import { encodeLinks } from '../../../control/drops/publishing/analysis/links.ts'
import type { Recompressed } from '../../../control/drops/publishing/contract.ts'
import { planFirstScreen, planReading } from '../../../control/drops/publishing/intake/prepare.ts'
import { ByContent } from '../../../control/drops/publishing/manifest/by-content.ts'
import {
  compressionSteps,
  compressVersion,
  planCompression,
  planRefinement,
} from '../../../control/drops/publishing/storage/refine.ts'
import type { Manifest, ManifestFile } from '../../../shared/contracts/manifest.ts'

const MB = 1_000_000
const encodings: ManifestFile['encodings'] = { br: { hash: 'b'.repeat(64), size: 1 } }

function fileOf(path: string, size = 1000, extra: Partial<ManifestFile> = {}): [string, ManifestFile] {
  return [path, { hash: path.padEnd(64, '0'), size, type: 'text/plain', ...extra }]
}

function manifestOf(...files: [string, ManifestFile][]): Manifest {
  return { v: 1, files, redirects: [], headers: [], unserved: [] }
}

function loading(files: readonly string[], pages: readonly string[] = []): string | undefined {
  return encodeLinks({
    local: [
      ...files.map((target) => ({ target, use: 'file' as const })),
      ...pages.map((target) => ({ target, use: 'page' as const })),
    ],
    insecure: [],
    machineLocal: [],
  })
}

describe('the first screens', () => {
  test('are the landing page and what it loads, through stylesheets, in circles too', () => {
    const links: Record<string, string | undefined> = {
      'index.html': loading(['app.js', 'a.css', 'frame.html'], ['about.html']),
      'a.css': loading(['b.css', 'font.ttf']),
      'b.css': loading(['a.css', 'c.svg']),
      'frame.html': loading(['not-first.js']),
      'about.html': loading(['about.js']),
    }
    expect([...firstScreenOf('index.html', (path) => links[path])]).toEqual([
      'index.html',
      'app.js',
      'a.css',
      'frame.html',
      'b.css',
      'font.ttf',
      'c.svg',
    ])
  })

  const stored = (path: string, size: number) => ({ path, hash: path.padEnd(64, '0'), size })
  const linksOf = (path: string) =>
    path === 'index.html' ? loading(['big.js', 'known.js', 'photo.jpg', 'tiny.js']) : undefined

  test('what has no variants yet is made up for, and nothing else', () => {
    const files = [
      ...[stored('index.html', 5 * MB), stored('big.js', 4 * MB), stored('known.js', MB), stored('photo.jpg', MB)],
      ...[stored('tiny.js', 20), stored('other.js', MB)],
    ]
    const factsOf = ({ path }: { path: string }) => (path === 'known.js' ? { charset: null, encodings } : undefined)
    expect(planFirstScreen(files, factsOf, [], linksOf).map(({ path, effort }) => [path, effort])).toEqual([
      ['big.js', 'quick'],
      ['index.html', 'quick'],
    ])
  })

  test('what was tried in vain is not tried again', () => {
    const files = [stored('index.html', 1000), stored('big.js', 2 * MB)]
    const { requests } = planReading(files, new ByContent())
    expect(requests.every(({ effort }) => effort === 'quick')).toBe(true)
    expect(planFirstScreen(files, () => undefined, requests, linksOf)).toEqual([])
  })

  test('no more than a core does in a second', () => {
    const many = Array.from({ length: 10 }, (_, index) => stored(`big${index}.js`, 4 * MB))
    const files = [stored('index.html', 1000), ...many]
    const all = (path: string) => (path === 'index.html' ? loading(many.map((file) => file.path)) : undefined)
    const bytes = planFirstScreen(files, () => undefined, [], all).reduce((sum, { size }) => sum + size, 0)
    expect(bytes).toBeGreaterThan(16 * MB)
    expect(bytes).toBeLessThanOrEqual(24 * MB)
  })
})

describe('after a version went live', () => {
  const manifest = manifestOf(
    fileOf('data.json', 500),
    fileOf('small.js', 1000),
    fileOf('large.js', 2 * MB),
    fileOf('style.css', 3000),
    fileOf('page.html', 9 * MB),
    fileOf('other.html', 4000),
    fileOf('done.html', 4000, { encodings }),
    fileOf('photo.jpg', MB),
    fileOf('tiny.css', 10),
  )

  test('pages come first, then scripts and styles, then the rest, smallest first', () => {
    expect(planCompression(manifest.files, new ByContent()).map(({ path, effort }) => [path, effort])).toEqual([
      ['other.html', 'quick'],
      ['page.html', 'quick'],
      ['small.js', 'quick'],
      ['style.css', 'quick'],
      ['large.js', 'quick'],
      ['data.json', 'quick'],
    ])
  })

  test('what a refined version of the drop has is taken from there', () => {
    const known = new ByContent([[{ path: 'large.js', hash: 'large.js'.padEnd(64, '0') }, encodings]])
    expect(planCompression(manifest.files, known).map(({ path }) => path)).not.toContain('large.js')
  })

  test('everything is compressed again, the smallest the hardest', () => {
    expect(planRefinement(manifest.files, new ByContent()).map(({ path, effort }) => [path, effort])).toEqual([
      ['data.json', 'best'],
      ['small.js', 'best'],
      ['style.css', 'best'],
      ['other.html', 'best'],
      ['done.html', 'best'],
      ['large.js', 'best'],
      ['page.html', 'good'],
    ])
  })
})

test('a large version is compressed in steps, each closed by the file that fills it', () => {
  const sizes = (bytes: number, ...of: number[]) =>
    compressionSteps(
      of.map((size) => ({ size })),
      bytes,
    ).map((step) => step.map(({ size }) => size))
  expect(sizes(10, 4, 5, 1, 9, 30, 2)).toEqual([[4, 5, 1], [9, 30], [2]])
  expect(sizes(Infinity, 4, 5, 1)).toEqual([[4, 5, 1]])
  expect(sizes(10)).toEqual([[]])
})

test('each step of a large version builds on the one before, names its own variants, and writes nothing for nothing', async () => {
  const manifest = manifestOf(...['a.txt', 'b.txt', 'c.txt'].map((path) => fileOf(path, 17 * MB)))
  const written = new Map([['before', manifest]])
  const found: Record<string, ManifestFile['encodings']> = {
    'a.txt': { br: { hash: 'a'.repeat(64), size: 1 } },
    'c.txt': { br: { hash: 'c'.repeat(64), size: 1 } },
  }
  const manifests = {
    read: async (hash: string) => written.get(hash)!,
    async write(one: Manifest) {
      const hash = `written ${written.size}`
      written.set(hash, one)
      return { hash, size: 1 }
    },
  }
  const workers = {
    width: 1,
    refine: () => expect.fail('harder than asked for'),
    compress: async (batch: readonly { path: string }[]) =>
      batch.map(({ path }) => ({ charset: null, encodings: found[path] ?? {} })),
  }
  const carried: string[] = []
  const knownVersions = { carry: (from: string, to: string) => void carried.push(`${from} → ${to}`) }
  const parts: Recompressed[] = []
  for await (const part of compressVersion({ manifests, knownVersions, workers }, 'before', null)) parts.push(part)
  expect(parts).toEqual([
    { isWhole: false, smaller: { manifestHash: 'written 1', added: ['written 1', 'a'.repeat(64)], gone: ['before'] } },
    { isWhole: false, smaller: undefined },
    {
      isWhole: true,
      smaller: { manifestHash: 'written 2', added: ['written 2', 'c'.repeat(64)], gone: ['written 1'] },
    },
  ])
  // What is known of the version holds for each of them.
  expect(carried).toEqual(['before → written 1', 'before → written 2'])
  const [, first, second] = [...written.values()]
  // What is the same object is neither encoded nor compared again.
  expect([second!.files[0] === first!.files[0], second!.files[1] === manifest.files[1]]).toEqual([true, true])
  expect(second!.files.map(([, { encodings: variants }]) => variants)).toEqual([
    found['a.txt'],
    undefined,
    found['c.txt'],
  ])
})
