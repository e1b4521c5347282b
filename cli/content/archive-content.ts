/**
 * What the service would find in a .zip, by the service's own judgement: its gate for archives, the folder that it
 * unwraps and the secrets that it keeps back. Nothing is unpacked to disk: contents are hashed and forgotten.
 */
import { createHash } from 'node:crypto'
import { extractEntries, verifyEntries } from '../../control/drops/publishing/archive/extract.ts'
import { inspectArchive } from '../../control/drops/publishing/archive/gate.ts'
import { unwrapFolder } from '../../control/drops/publishing/intake/bundle.ts'
import { siftSecrets } from '../../control/drops/publishing/intake/withhold.ts'
import type { BlobStore, BlobWriter, StoredBlob } from '../../shared/blobs/blob-store.ts'
import { ApiError } from '../../shared/contracts/errors.ts'
import { MAX_BUNDLE_FILES } from '../../shared/contracts/limits.ts'
import { createKeySearch, keyInBytes } from '../../shared/content/key-text.ts'
import type { KeyTrace } from '../../shared/content/private-key.ts'
import type { SecretFile } from '../../shared/content/secret-files.ts'
import { unservedKindOf } from '../../shared/content/upload-kind.ts'
import { sideBySide } from '../../shared/values/side-by-side.ts'
import { CliError, exitCodes } from '../terminal/failure.ts'

export interface ArchiveContent {
  readonly files: readonly { readonly path: string; readonly size: number; readonly sha256: string }[]
  /** Files that look like secrets: the service would keep them back. */
  readonly blocked: readonly SecretFile[]
}

export async function readArchive(file: string, allowSecrets: boolean): Promise<ArchiveContent> {
  try {
    const keys = new Map<string, KeyTrace>()
    const store = createForgetfulStore(keys)
    // How much the plan takes is the service's to say.
    const { entries } = await inspectArchive(file, { capBytes: Number.POSITIVE_INFINITY, maxFiles: MAX_BUNDLE_FILES })
    await verifyEntries(file, entries)
    const stored = await extractEntries(store, file, entries)
    const found = sideBySide(entries, stored).map(([{ path }, { hash, size }]) => ({ path, hash, size }))
    const served = unwrapFolder(found).filter(({ path }) => unservedKindOf(path) === undefined)
    const { files, blocked } = siftSecrets(served, ({ hash }) => keys.get(hash), allowSecrets ? 'allow' : 'withhold')
    return { files: files.map(({ path, size, hash }) => ({ path, size, sha256: hash })), blocked }
  } catch (error) {
    throw error instanceof ApiError ? new CliError(error.message, exitCodes.failed, error.code) : error
  }
}

/** A store that says what a content is called and keeps none; it notes by hash whether a key is in it. */
function createForgetfulStore(keys: Map<string, KeyTrace>): Pick<BlobStore, 'putAll' | 'writer'> {
  const put = (bytes: Uint8Array): StoredBlob => {
    const hash = createHash('sha256').update(bytes).digest('hex')
    keys.set(hash, keyInBytes(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)))
    return { hash, size: bytes.byteLength }
  }
  return {
    putAll: async (blobs) => blobs.map(put),
    async writer(): Promise<BlobWriter> {
      const hash = createHash('sha256')
      const search = createKeySearch()
      let size = 0
      return {
        async write(chunk) {
          hash.update(chunk)
          search.add(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
          size += chunk.byteLength
        },
        async finish() {
          const name = hash.digest('hex')
          keys.set(name, search.found())
          return { hash: name, size }
        },
        abort: async () => {},
      }
    },
  }
}
