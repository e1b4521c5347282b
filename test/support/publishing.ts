/** Publishing on a blob store in a temporary directory. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Publishing } from '../../control/drops/publishing/contract.ts'
import { createPublishing } from '../../control/drops/publishing/publishing.ts'
import type { BlobStore } from '../../shared/blobs/blob-store.ts'
import { openBlobStore } from '../../shared/blobs/open.ts'

export interface PublishingFixture {
  readonly publishing: Publishing
  readonly blobs: BlobStore
  /** Where the store has its folders, from the first byte that it was given. */
  readonly storeDir: string
  /** Every file below the store and the scratch folder. */
  leftovers(): Promise<string[]>
  close(): Promise<void>
}

export async function startPublishing(options: { markdownTimeoutMs?: number } = {}): Promise<PublishingFixture> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'dropway-publishing-'))
  const storeDir = path.join(root, 'blobs')
  const blobStore = { url: `file:${storeDir}` }
  const blobs = openBlobStore(blobStore)
  const publishing = createPublishing({ blobs, blobStore, scratchDir: path.join(root, 'scratch'), ...options })
  return {
    publishing,
    blobs,
    storeDir,
    leftovers: async () => {
      const found = await readdir(root, { recursive: true, withFileTypes: true })
      return found
        .filter((entry) => entry.isFile())
        .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
    },
    close: async () => {
      await publishing.close()
      await rm(root, { recursive: true, force: true })
    },
  }
}

export async function* chunksOf(content: string | Uint8Array, chunkBytes = 65_536): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(content)
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes)
}

export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}
