/** Manifests that are in use stay in memory; those of thousands of pages alone do not. */
import { hash as digestOf } from 'node:crypto'
import { expect, test } from 'vitest'
import { createManifests } from '../../../control/drops/publishing/manifest/manifests.ts'
import { buildManifest } from '../../../control/drops/publishing/manifest/manifest-builder.ts'
import type { Manifest } from '../../../shared/contracts/manifest.ts'

test('of many manifests the last thousand are read from memory, the others from the store', async () => {
  const stored = new Map<string, Buffer>()
  const readHashes: string[] = []
  const manifests = createManifests({
    async put(bytes) {
      const hash = digestOf('sha256', bytes)
      stored.set(hash, Buffer.from(bytes))
      return { hash, size: bytes.length }
    },
    writer: () => Promise.reject(new Error('a short manifest is put whole')),
    async read(hash) {
      readHashes.push(hash)
      return stored.get(hash)!
    },
  })
  const written: string[] = []
  for (let size = 1; size <= 1001; size++) written.push((await manifests.write(pageOf(size))).hash)
  const [oldest = '', second = ''] = written
  expect((await manifests.read(written.at(-1)!)).files).toEqual(pageOf(1001).files)
  await manifests.read(second)
  expect(readHashes).toEqual([])
  expect((await manifests.read(oldest)).files).toEqual(pageOf(1).files)
  expect(readHashes).toEqual([oldest])
})

function pageOf(size: number): Manifest {
  const hash = size.toString(16).padStart(64, '0')
  return buildManifest({
    files: [{ path: 'index.html', hash, size }],
    factsOf: () => undefined,
    redirects: [],
    headers: [],
  })
}
