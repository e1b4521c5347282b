/** All that a person published, as one streamed zip: bytes as they were uploaded, each read when its turn comes. */
import { addAbortSignal, PassThrough, type Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import yazl from 'yazl'
import type { BlobStore } from '../../../../shared/blobs/blob-store.ts'
import type { Manifest } from '../../../../shared/contracts/manifest.ts'
import { isCompressible, mediaTypeOf } from '../files/types.ts'

/** At the root, where no drop can be: a slug has no dot. */
const METADATA_FILE = 'dropway-export.json'
const THREADS_FILE = 'threads.json'

export interface ExportedSite {
  readonly slug: string
  /** Undefined for a drop of which nothing is published: it has no files. */
  readonly manifest: Manifest | undefined
  readonly metadata: unknown
  /** What was said about it; a file of its own where there is something. */
  readonly threads?: readonly unknown[]
}

export function exportZip(blobs: BlobStore, sites: AsyncIterable<ExportedSite>): Readable {
  const zip = new yazl.ZipFile()
  const output = new PassThrough()
  const fail = (error: Error): unknown => output.destroy(error)
  // A file that is not as large as the manifest says is told here; unheard it would end the process.
  zip.on('error', fail)
  zip.outputStream.on('error', fail)
  zip.outputStream.pipe(output)
  // A caller who leaves early ends the file that is being read.
  const closed = new AbortController()
  output.once('close', () => closed.abort())
  addSites(zip, blobs, sites, closed.signal).catch(fail)
  return output
}

/** One entry at a time: the next file is opened when the one before has been sent, so memory stays flat. */
async function addSites(
  zip: yazl.ZipFile,
  blobs: BlobStore,
  sites: AsyncIterable<ExportedSite>,
  closed: AbortSignal,
): Promise<void> {
  const metadata: unknown[] = []
  for await (const site of sites) {
    metadata.push(site.metadata)
    for (const file of site.manifest ? uploadedFiles(site.manifest) : []) {
      if (closed.aborted) return
      const stream = addAbortSignal(closed, blobs.stream(file.hash))
      const name = `${site.slug}/${file.path}`
      zip.addReadStream(stream, name, { size: file.size, compress: isCompressible(mediaTypeOf(name)) })
      await finished(stream)
    }
    const { threads = [] } = site
    if (threads.length > 0) zip.addBuffer(jsonBytes({ threads }), `${site.slug}/${threadsFileOf(site.manifest)}`)
  }
  zip.addBuffer(jsonBytes({ sites: metadata }), METADATA_FILE)
  zip.end()
}

function jsonBytes(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value, undefined, 2))
}

/** A publisher's own file of that name keeps it. */
function threadsFileOf(manifest: Manifest | undefined): string {
  const names = new Set(manifest?.files.map(([path]) => path))
  let name = THREADS_FILE
  while (names.has(name)) name = `_${name}`
  return name
}

/** What was uploaded in place of what is served: the source of a rendered page, the rule files. */
function* uploadedFiles(manifest: Manifest): Generator<{ path: string; hash: string; size: number }> {
  const served = new Set(manifest.files.map(([path]) => path))
  for (const [path, file] of manifest.files) {
    // A document that a page shows is served too.
    if (file.source && file.source.path !== path && served.has(file.source.path)) continue
    yield file.source ?? { path, hash: file.hash, size: file.size }
  }
  for (const [path, file] of manifest.unserved) yield { path, ...file }
}
