/**
 * Keeps files that look like secrets from becoming public, unless the publisher said that they are meant to be. What
 * counts as one is decided by shared/content/secret-files.ts, for every way in; here its candidates are read where the name
 * alone does not tell.
 */
import type { BlobStore } from '../../../../shared/blobs/blob-store.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { secretFiles, secretIn, type SecretFile } from '../../../../shared/content/secret-files.ts'
import { inParallel } from '../../../../shared/running/turns.ts'
import type { SecretsPolicy } from '../contract.ts'
import { storable } from '../html/text.ts'
import type { StoredFile } from '../manifest/manifest-builder.ts'

/** A key is a small file, with an ending that certificates share or without any. */
const MAX_KEY_BYTES = 20_000
/** No site has more of them; an upload that does has other troubles. */
const MAX_HEADS = 500
const PARALLEL_READS = 8
/** As many as a person reads. */
const MAX_BLOCKED = 100

export interface Sifted {
  readonly files: readonly StoredFile[]
  readonly blocked: readonly SecretFile[]
  /** What looks like a secret and is public, because the publisher said so. */
  readonly allowed: readonly SecretFile[]
}

export async function siftSecrets(
  blobs: Pick<BlobStore, 'read'>,
  files: readonly StoredFile[],
  secrets: SecretsPolicy,
): Promise<Sifted> {
  const heads = await readHeads(blobs, files)
  if (secrets === 'allow') {
    const allowed = secretFiles(files.map((file) => ({ ...file, head: heads.get(file) })))
    return { files, blocked: [], allowed: allowed.map(({ path, what }) => ({ path: storable(path), what })) }
  }
  const found = new Map<StoredFile, string>()
  for (const file of files) {
    const what = secretIn({ ...file, head: heads.get(file) })
    if (what !== undefined) found.set(file, what)
  }
  if (found.size === 0) return { files, blocked: [], allowed: [] }
  const blocked = [...found].slice(0, MAX_BLOCKED).map(([{ path }, what]) => ({ path: storable(path), what }))
  if (secrets === 'refuse') throw errors.secretFiles(blocked)
  return { files: files.filter((file) => !found.has(file)), blocked, allowed: [] }
}

async function readHeads(
  blobs: Pick<BlobStore, 'read'>,
  files: readonly StoredFile[],
): Promise<ReadonlyMap<StoredFile, string>> {
  const heads = new Map<StoredFile, string>()
  const unsure = files.filter(
    ({ path, size }) => size <= MAX_KEY_BYTES && /(?:\.pem|\.key|(?:^|\/)[^./]+)$/i.test(path),
  )
  await inParallel(unsure.slice(0, MAX_HEADS), PARALLEL_READS, async (file) => {
    heads.set(file, (await blobs.read(file.hash)).toString('latin1'))
  })
  return heads
}
