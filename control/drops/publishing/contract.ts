/**
 * What sites, anonymous drops and MCP ask of publishing: take in files, get back a version that is ready to go live.
 * It touches no SQL: the caller's transaction makes the version real. Implemented by createPublishing (publishing.ts).
 */
import type { Readable } from 'node:stream'
import type { StoredBlob } from '../../../shared/blobs/blob-store.ts'
import type { Manifest } from '../../../shared/contracts/manifest.ts'
import type { Anchor, FoundAnchor } from './comparison/anchors.ts'
import type { TextChange, TextPair } from './comparison/compare-texts.ts'
import type { CardText } from './analysis/card-picture.ts'
import type { BlobChanges } from './manifest/blob-changes.ts'
import type { PageFile, PlaceAnswer, PlaceRequest } from './comparison/place-threads.ts'

/** One for each code and target: what is wrong is told once, however many files have it. */
export interface Warning {
  readonly code: string
  readonly message: string
  /** The file it is about, or the first of them. */
  readonly path?: string
  readonly line?: number
  /** How many files it is about. */
  readonly count: number
}

/** A file that was not published because it looks like a secret; a report names as many as a person reads. */
export interface BlockedFile {
  readonly path: string
  /** Follows "looks like": `a private key`. */
  readonly what: string
}

export interface PublishReport {
  readonly warnings: readonly Warning[]
  readonly blocked: readonly BlockedFile[]
}

/**
 * What becomes of files that look like secrets: `withhold` publishes the rest and lists them in the report, `refuse`
 * publishes nothing, `allow` is for publishers who said so.
 */
export type SecretsPolicy = 'withhold' | 'refuse' | 'allow'

/** What a publish was not allowed to bring. */
export interface Withheld {
  readonly paths: readonly string[]
  /** Hashes of what its content betrayed: under any name the same bytes are the same secret. */
  readonly contents: readonly string[]
}

export interface PreparedVersion {
  readonly manifestHash: string
  /** Sum of the files as uploaded (unpacked). */
  readonly byteSize: number
  readonly fileCount: number
  /** Title of the landing page; blank when it has none. */
  readonly title: string
  /** Every hash that the version needs, each once: files, variants, sources, the manifest itself. */
  blobs(): readonly string[]
  /** How they differ from those of the version that was live; undefined where none was. */
  readonly changes: BlobChanges | undefined
  readonly report: PublishReport
  /** Every file that was not published because it looks like a secret. */
  readonly withheld: Withheld
  /** The landing page as served (for the phishing heuristic). */
  readonly landingHash: string
  readonly compression: Compression
}

/** What compressing is left to do after the publish: everything, the harder pass only, or nothing at all. */
export type Compression = 'open' | 'quick' | 'done'

/** Whose upload it is. Networks have limits of their own, where they come in. */
export type UploadOwner =
  | { readonly kind: 'organisation'; readonly id: string }
  | { readonly kind: 'network'; readonly ip: string }

export interface UnnamedFile {
  readonly size: number
  /** One of several. */
  name(path: string): void
  /** The whole upload: a page, a document or an archive. */
  alone(filename: string): Promise<void>
}

/** A list of files, told by what differs from the live version. */
export interface UploadChanges {
  readonly files: readonly { readonly path: string; readonly hash: string; readonly size: number }[]
  /** Names of the live version's files, as they were uploaded, that are replaced or removed. */
  readonly without: ReadonlySet<string>
  /** How much stays of the live version. */
  readonly staying: { readonly files: number; readonly bytes: number }
}

/** The files of one upload, in the order they arrive. Every method throws an ApiError for bad input. */
export interface Intake {
  addFile(path: string, bytes: AsyncIterable<Uint8Array>): Promise<void>
  /** Stores the bytes now; what they are follows, once all files are known. */
  addUnnamed(bytes: AsyncIterable<Uint8Array>): Promise<UnnamedFile>
  /** One page as the landing page, whatever its name; a document with a page that shows it. Without an account only pages. */
  addSingle(filename: string, bytes: AsyncIterable<Uint8Array>, options: { title?: string | undefined }): Promise<void>
  addZip(bytes: AsyncIterable<Uint8Array>): Promise<void>
  /** A blob that is in the store already; `finish` refuses it when it is not, or has another size. */
  addStored(path: string, hash: string, size: number): Promise<void>
  /**
   * All files of the live version but those of the names `without`, and these, as `addStored` has them: the whole upload.
   * Its names have been checked beside each other (`checkPaths`). It takes little more than the changes do where the live
   * version is one that control has made itself, and had nothing to say about.
   */
  addChanges(changes: UploadChanges): Promise<void>
  /** All blobs are durable when it resolves. `title` overrides that of a Markdown document; secrets are withheld. */
  finish(options?: { title?: string | undefined; secrets?: SecretsPolicy }): Promise<PreparedVersion>
  /** Leaves nothing behind; a no-op after `finish`. */
  abort(): Promise<void>
}

/** A part of a version has been compressed, and all before it. */
export interface Recompressed {
  /** Nothing is left to compress. */
  readonly isWhole: boolean
  /**
   * A manifest with the same content to put in the place of the one before, and how its blobs differ; undefined where
   * nothing got smaller.
   */
  readonly smaller: (Omit<BlobChanges, 'since'> & { readonly manifestHash: string }) | undefined
}

/** What garbage collection asks the database, and as of when. */
export interface GarbageQuestions {
  /** Which of these hashes a version still needs. */
  isReferenced(hashes: readonly string[]): Promise<Set<string>>
  /** Which of these hashes a version has ever needed, as far as the database remembers. */
  isKnown(hashes: readonly string[]): Promise<Set<string>>
  /** When the database began. What is younger was written for it, though it may remember nothing: an upload that broke off. */
  readonly knownSince: number
  /** Whether what was found may go. Asked once, before anything does. */
  mayRemove(found: GarbageFound): Promise<boolean>
  readonly graceMs: number
  readonly now: number
}

/** Numbers of blobs in the whole store. */
export interface GarbageFound {
  readonly blobs: number
  /** Older than the grace period, and nothing references them. */
  readonly unneeded: number
  /** Those that the database knows, needed or not. */
  readonly known: number
  /** The unneeded ones that are older than the database, which does not remember them. */
  readonly unknown: number
}

/** What came of a garbage collection, in blobs. */
export interface Collected {
  readonly removed: number
  /** Unneeded, and kept because they are too many at once: something is wrong, or an operator says so. */
  readonly held: number
}

/** The pages and texts of a version that search reads, some hundreds at most. */
export interface SearchedTexts {
  /** Versions with the same one are found by the same words. */
  readonly digest: string
  /** The words (analysis/words.ts), read in a thread; none of texts that take too long. */
  readWords(): Promise<readonly string[]>
}

export interface Publishing {
  /**
   * `capBytes` bounds the upload as a whole, counted while reading and while unpacking, and `maxFiles` its files. `base` is the manifest of the
   * version that is live now: what is known about files that did not change is taken from it. Owners share the threads,
   * and an organisation has a number of uploads per hour: the first file of one too many is refused (rate_limited).
   */
  receive(options: {
    owner: UploadOwner
    capBytes: number
    maxFiles?: number | undefined
    base?: string | null | undefined
  }): Intake
  /** The page that a Markdown document becomes; it is kept nowhere. */
  renderMarkdown(owner: UploadOwner, document: { filename: string; text: string }): Promise<string>
  /** Like `refine`, quickly, and only what has no encoded variants yet; of a large version one part after the other. */
  compress(manifestHash: string, refinedHash: string | null): AsyncIterable<Recompressed>
  /**
   * Compresses harder what a version serves, after it went live. `refinedHash` is the manifest of an earlier version that
   * was refined: what has not changed since is taken from it.
   */
  refine(manifestHash: string, refinedHash: string | null): AsyncIterable<Recompressed>
  /** Throws invalid_request when one of the paths may not be published, by itself or beside the others. */
  checkPaths(paths: Iterable<string>): void
  /** Whether the paths of this version have been checked so by this control. */
  hasChecked(manifestHash: string): boolean
  readManifest(hash: string): Promise<Manifest>
  /** Durable when it resolves. */
  writeManifest(manifest: Manifest): Promise<StoredBlob>
  readBlob(hash: string): Promise<Buffer>
  /** The bytes of a short blob that was stored a moment ago; undefined of any other. */
  atHand(hash: string): Buffer | undefined
  /** What changed in texts, by the hashes of both, in a thread and within a budget. `orgId`: who shares the threads. */
  compareTexts(orgId: string, pairs: readonly TextPair[]): Promise<readonly TextChange[]>
  /** Where comments are in a version's pages, in a thread and within a budget; those that are left out stay. */
  placeAnchors(orgId: string, requests: readonly PlaceRequest[]): Promise<readonly PlaceAnswer[]>
  /** Where a new comment is in its page; null where the page's own text does not have it. */
  findAnchor(orgId: string, anchor: Anchor, file: PageFile): Promise<FoundAnchor | null>
  /** What of a page was not in an earlier version of it, as quotes of the newer one. */
  changedPassages(orgId: string, before: PageFile | undefined, after: PageFile): Promise<readonly Anchor[]>
  /** What of a version is read for search. */
  searchedTexts(manifestHash: string): Promise<SearchedTexts>
  /** The card of a drop (analysis/card-picture.ts), drawn in a thread and stored; undefined where it takes too long. */
  drawCard(orgId: string, text: CardText): Promise<StoredBlob | undefined>
  /** Streamed zip: `<slug>/<path>` with the bytes as uploaded, what was said about it, and the metadata as JSON. */
  exportZip(
    sites: AsyncIterable<{
      slug: string
      manifest: Manifest | undefined
      metadata: unknown
      threads?: readonly unknown[]
    }>,
  ): Readable
  /** Removes blobs that nothing references, and half-written files, older than the grace period. */
  collectGarbage(questions: GarbageQuestions): Promise<Collected>
  /** Ends the worker threads. */
  close(): Promise<void>
}
