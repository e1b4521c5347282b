/** Long manifests of one site in an edge's memory: versions share the files of parts that are the same in both. */
import { expect, test } from 'vitest'
import { indexFiles, indexSite } from '../../../edge/locate/site-index.ts'
import { createSites } from '../../../edge/store/sites.ts'
import { encodeLong, encodePart, LONG_FILES } from '../../../shared/content/manifest-parts.ts'
import type { Manifest, ManifestFiles } from '../../../shared/contracts/manifest.ts'
import { fileOf, manifestOf } from '../../support/manifests.ts'

const first = manifestOf(Array.from({ length: LONG_FILES }, (_, index) => `${String(index).padStart(5, '0')}.txt`))
const LAST = first.files.at(-1)![0]
const second: Manifest = { ...first, files: first.files.with(-1, [LAST, fileOf('changed')]) }
const stored = new Map(
  [first, second].map((one, index) => [String(index), Buffer.concat([...encodeLong(one, encodePart)])]),
)
const blobs = { read: async (hash: string) => stored.get(hash)! }

test.each(['one after the other', 'side by side'])('two versions that are read %s share what is equal', async (how) => {
  const sites = createSites(blobs, { indexFiles, indexSite })
  const load = async (hash: string) => (await sites.load(hash)).files
  const [before, after] =
    how === 'side by side' ? await Promise.all([load('0'), load('1')]) : [await load('0'), await load('1')]
  for (const [files, version] of [
    [before, first],
    [after, second],
  ] as const)
    expect([...files]).toEqual(JSON.parse(JSON.stringify(version.files)))
  const shared = [...before].filter(([path, file]) => after.get(path) === file)
  expect(shared.length).toBeGreaterThan(LONG_FILES / 2)
  expect(after.get(LAST)).not.toBe(before.get(LAST))
})

test('a version whose index cannot be made leaves nothing in memory of what it was to be made of', async () => {
  let read = 0
  const sites = createSites(blobs, {
    indexFiles(files: ManifestFiles) {
      read += files.length
      return indexFiles(files)
    },
    indexSite: () => {
      throw new Error('no index')
    },
  })
  for (const times of [1, 2]) {
    await expect(sites.load('0')).rejects.toThrow('no index')
    expect(read).toBe(times * first.files.length)
  }
})
