/** When the copies of a distant store are measured, and how much there may be of them. */
import { expect, test } from 'vitest'
import type { BlobStore } from '../../../shared/blobs/blob-store.ts'
import { createCopies } from '../../../shared/blobs/copies.ts'
import { parseBlobStoreUrl } from '../../../shared/blobs/location.ts'

/** A store that says how often it was listed. A list ends when it is let go. */
function createStore() {
  const waiting: (() => void)[] = []
  let lists = 0
  const store: Pick<BlobStore, 'put' | 'list'> = {
    put: async (bytes) => ({ hash: '', size: bytes.length }),
    async *list() {
      lists += 1
      await new Promise<void>((resolve) => waiting.push(resolve))
      yield* []
    },
  }
  return {
    store: store as BlobStore,
    lists: () => lists,
    async endList() {
      waiting.shift()?.()
      for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
    },
  }
}

test('what is added while they are measured makes it due again, and nothing else does', async () => {
  const { store, lists, endList } = createStore()
  const copies = createCopies({ store, maxBytes: 1000 })
  await copies.add(Buffer.alloc(100))
  await copies.add(Buffer.alloc(100))
  expect(lists()).toBe(1)
  await endList()
  expect(lists()).toBe(2)
  await endList()
  await copies.add(Buffer.alloc(10))
  expect(lists()).toBe(2)
})

test.each([
  ['', 2e9],
  ['&cache_mb=0', 0],
  ['&cache_mb=250', 25e7],
])('BLOB_STORE with %j: room for %i bytes of copies', (limit, cacheBytes) => {
  const url = `s3://key:secret@bucket?endpoint=https://s3.example&cache=/copies${limit}`
  expect(parseBlobStoreUrl(url)).toMatchObject({ cacheBytes })
})

test.each(['-1', '2GB', '', 'NaN', '1.5'])('BLOB_STORE with cache_mb=%s is refused, and says no secret', (limit) => {
  const url = `s3://key:secret@bucket?endpoint=https://s3.example&cache=/copies&cache_mb=${limit}`
  expect(() => parseBlobStoreUrl(url)).toThrow(/^cache_mb in BLOB_STORE must be a whole number of megabytes$/)
})
