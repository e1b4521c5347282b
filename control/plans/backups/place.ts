/**
 * Where backups are: a directory, or an S3-compatible bucket. Both hold the same names:
 *
 *   blobs/ab/<hash>                     content, shared by all snapshots of the place: a second one adds what is new
 *   snapshots/<time>/tables/<t>.gz      each table, a row per line of JSON, all of one moment
 *   snapshots/<time>/blobs.gz           the hashes of its content, so that what no snapshot needs can go
 *   snapshots/<time>/ca.sealed          the local certificate authority, where one is used
 *   snapshots/<time>/pages.json         the operator's own texts, where there are any
 *   snapshots/<time>/backup.json        what is in it; written last, so a snapshot without it is not one
 */
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, openAsBlob } from 'node:fs'
import { access, mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import type { BlobStore } from '../../../shared/blobs/blob-store.ts'
import { createDirectoryBlobStore } from '../../../shared/blobs/directory-store.ts'
import { sweepDrafts } from '../../../shared/blobs/drafts.ts'
import { parseBlobStoreUrl, type ParsedLocation } from '../../../shared/blobs/location.ts'
import { createS3Client, type S3Client } from '../../../shared/blobs/s3-client.ts'
import { createS3BlobStore } from '../../../shared/blobs/s3-store.ts'

export interface BackupPlace {
  /** In words for people, without a secret. */
  readonly description: string
  readonly blobs: BlobStore
  /** Writes a whole file, or none. */
  write(name: string, bytes: AsyncIterable<Uint8Array>): Promise<void>
  /** Undefined when it is not there. */
  read(name: string): Promise<Readable | undefined>
  /** Names of complete snapshots, the oldest first. */
  snapshots(): Promise<string[]>
  /** Names of those without an end, the oldest first: they are being taken, or their process died. */
  unfinished(): Promise<string[]>
  /** Takes a snapshot away, its end first, so that it is never half of one. */
  remove(snapshot: string): Promise<void>
  /** Removes what processes were writing when they died: drafts that were last written before that time. */
  sweep(writtenBefore: number): Promise<void>
}

const SNAPSHOTS = 'snapshots'
const END = 'backup.json'

/** The name of a file in a snapshot. */
export function inSnapshot(snapshot: string, file: string): string {
  return `${SNAPSHOTS}/${path.basename(snapshot)}/${file}`
}

export const snapshotEnd = (snapshot: string): string => inSnapshot(snapshot, END)
export const blobList = (snapshot: string): string => inSnapshot(snapshot, 'blobs.gz')

export async function hasFile(place: BackupPlace, name: string): Promise<boolean> {
  const file = await place.read(name)
  file?.destroy()
  return file !== undefined
}

/**
 * `<directory>`, `file:<directory>` or `s3://key:secret@bucket[/prefix]?endpoint=…`. Throws with a message that does not
 * repeat a secret. Drafts of what goes to a bucket are in `draftsDir`.
 */
export function openBackupPlace(text: string, draftsDir: string): BackupPlace {
  const location = parseBackupPlace(text, draftsDir)
  return location.kind === 'directory' ? openDirectory(location.directory) : openBucket(location, draftsDir)
}

export function parseBackupPlace(text: string, draftsDir: string): ParsedLocation {
  if (!/^(?:file|s3):/.test(text)) return { kind: 'directory', directory: path.resolve(text) }
  const url = text.startsWith('s3:') ? URL.parse(text) : null
  // A place for backups keeps no copies; the parser wants to know where they would be.
  url?.searchParams.set('cache', draftsDir)
  try {
    return parseBlobStoreUrl(url?.href ?? text)
  } catch (error) {
    throw new Error((error as Error).message.replace('BLOB_STORE', 'The place of backups'), { cause: error })
  }
}

function openDirectory(directory: string): BackupPlace {
  const blobs = createDirectoryBlobStore(path.join(directory, 'blobs'))
  const fileOf = (name: string): string => path.join(directory, ...name.split('/'))
  const isThere = (name: string): Promise<boolean> =>
    access(fileOf(name)).then(
      () => true,
      () => false,
    )
  async function named(isComplete: boolean): Promise<string[]> {
    const names = await readdir(fileOf(SNAPSHOTS)).catch(() => [])
    const found = await Promise.all(
      names.map(async (name) => ((await isThere(snapshotEnd(name))) === isComplete ? [name] : [])),
    )
    return found.flat().toSorted()
  }
  return {
    description: directory,
    blobs,
    async write(name, bytes) {
      const file = fileOf(name)
      await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
      await writeDraft(`${file}.draft`, bytes)
      await rename(`${file}.draft`, file)
    },
    read: async (name) => ((await isThere(name)) ? createReadStream(fileOf(name)) : undefined),
    snapshots: () => named(true),
    unfinished: () => named(false),
    async remove(snapshot) {
      await rm(fileOf(snapshotEnd(snapshot)), { force: true })
      await rm(path.dirname(fileOf(snapshotEnd(snapshot))), { recursive: true, force: true })
    },
    async sweep(writtenBefore) {
      await blobs.sweep(writtenBefore)
    },
  }
}

function openBucket({ settings }: ParsedLocation & { kind: 's3' }, draftsDir: string): BackupPlace {
  const s3 = createS3Client(settings)
  const blobs = createS3BlobStore({ ...settings, prefix: `${settings.prefix}blobs/` }, path.join(draftsDir, 'blobs'))
  const remove = async (key: string): Promise<void> => {
    const answer = await s3({ method: 'DELETE', key })
    await answer.body?.cancel()
    if (!answer.ok && answer.status !== 404) throw new Error(`the S3 store answered ${answer.status} to DELETE`)
  }
  async function named(isComplete: boolean): Promise<string[]> {
    const keys = new Set(await listKeys(s3, settings.prefix))
    const names = new Set([...keys].map((key) => key.split('/')[1] ?? ''))
    return [...names].filter((name) => keys.has(snapshotEnd(name)) === isComplete).toSorted()
  }
  return {
    description: `s3://${settings.bucket}/${settings.prefix} at ${settings.endpoint}`,
    blobs,
    async write(name, bytes) {
      await mkdir(draftsDir, { recursive: true, mode: 0o700 })
      const draft = path.join(draftsDir, randomBytes(12).toString('hex'))
      try {
        const { hash, size } = await writeDraft(draft, bytes)
        // The service compares the bytes with the hash it was promised.
        const headers = { 'x-amz-content-sha256': hash, 'content-length': String(size) }
        const answer = await s3({ method: 'PUT', key: name, headers, body: await openAsBlob(draft) })
        const said = await answer.text()
        if (!answer.ok) throw new Error(`the S3 store answered ${answer.status} to PUT: ${said.slice(0, 200)}`)
      } finally {
        await rm(draft, { force: true })
      }
    },
    async read(name) {
      const answer = await s3({ method: 'GET', key: name })
      if (answer.status === 404) return undefined
      if (!answer.ok || !answer.body) throw new Error(`the S3 store answered ${answer.status} to GET ${name}`)
      return Readable.fromWeb(answer.body as ReadableStream<Uint8Array>)
    },
    snapshots: () => named(true),
    unfinished: () => named(false),
    async remove(snapshot) {
      await remove(snapshotEnd(snapshot))
      const folder = inSnapshot(snapshot, '')
      for (const key of await listKeys(s3, settings.prefix)) if (key.startsWith(folder)) await remove(key)
    },
    async sweep(writtenBefore) {
      await sweepDrafts(draftsDir, writtenBefore)
      await blobs.sweep(writtenBefore)
    },
  }
}

/** Every key below `snapshots/`, without the prefix. Names here are of our own making: none needs decoding. */
async function listKeys(s3: S3Client, prefix: string): Promise<string[]> {
  const keys: string[] = []
  let continuation: string | undefined
  do {
    const answer = await s3({
      method: 'GET',
      query: {
        'list-type': '2',
        prefix: `${prefix}${SNAPSHOTS}/`,
        ...(continuation !== undefined && { 'continuation-token': continuation }),
      },
    })
    const xml = await answer.text()
    if (!answer.ok) throw new Error(`the S3 store answered ${answer.status} to list: ${xml.slice(0, 200)}`)
    for (const [, key = ''] of xml.matchAll(/<Key>([^<]*)<\/Key>/g)) keys.push(key.slice(prefix.length))
    continuation = /<NextContinuationToken>([^<]*)<\/NextContinuationToken>/.exec(xml)?.[1]
  } while (continuation !== undefined)
  return keys
}

async function writeDraft(file: string, bytes: AsyncIterable<Uint8Array>): Promise<{ hash: string; size: number }> {
  const handle = await open(file, 'w', 0o600)
  const digest = createHash('sha256')
  let size = 0
  try {
    for await (const chunk of bytes) {
      digest.update(chunk)
      size += chunk.length
      await handle.writeFile(chunk)
    }
    await handle.sync()
  } finally {
    await handle.close()
  }
  return { hash: digest.digest('hex'), size }
}
