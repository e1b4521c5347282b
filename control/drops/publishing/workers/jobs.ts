/** The jobs that publishing gives to worker threads, and what comes back. */
import type { ArchiveLimits } from '../archive/gate.ts'
import type { BlobStoreLocation } from '../../../../shared/blobs/open.ts'
import type { Analysis, AnalysisRequest } from '../analysis/analyse.ts'
import type { ArchiveEntry, InspectedArchive } from '../archive/gate.ts'
import type { Anchor } from '../comparison/anchors.ts'
import type { TextPair } from '../comparison/compare-texts.ts'
import type { PageFile, PlaceRequest } from '../comparison/place-threads.ts'
import type { CardText } from '../analysis/card-picture.ts'
import type { ReadPage } from '../analysis/page-words.ts'
import type { PackedFiles, ReportInput } from '../analysis/report.ts'
import type { RuleFiles } from '../manifest/site-rules.ts'

/** What a content thread is told when it starts. */
export interface ContentWorkerData {
  readonly blobStore: BlobStoreLocation
  /** Below the event loop, Postgres and the edge where others must not notice it; low where no caller waits. */
  readonly priority: 'normal' | 'below normal' | 'low'
}

export type ContentJob =
  | { readonly kind: 'analyse'; readonly files: readonly AnalysisRequest[] }
  /** Walks the directory of an archive and checks every name and size; nothing is inflated yet. */
  | { readonly kind: 'inspect'; readonly archive: string; readonly limits: ArchiveLimits }
  /** Inflates the entries, and keeps nothing. */
  | { readonly kind: 'verify'; readonly archive: string; readonly entries: readonly ArchiveEntry[] }
  | { readonly kind: 'extract'; readonly archive: string; readonly entries: readonly ArchiveEntry[] }
  /** Reads and parses the rule files of a site. */
  | { readonly kind: 'rules'; readonly files: RuleFiles }
  /** What changed in texts from one version to another. */
  | { readonly kind: 'compare'; readonly pairs: readonly TextPair[] }
  /** Where comments are in a version's pages; where a new one is. */
  | { readonly kind: 'place'; readonly requests: readonly PlaceRequest[] }
  | { readonly kind: 'find'; readonly anchor: Anchor; readonly file: PageFile }
  /** What of a page was not in an earlier version of it. */
  | { readonly kind: 'passages'; readonly before: PageFile | undefined; readonly after: PageFile }
  /** Reads what pages are found by. */
  | { readonly kind: 'words'; readonly pages: readonly ReadPage[] }
  /** Draws a card and stores it. */
  | { readonly kind: 'card'; readonly text: CardText }
  /** Looks at the links of a site for no longer than the budget. */
  | {
      readonly kind: 'report'
      readonly input: Omit<ReportInput, 'files'>
      readonly files: PackedFiles
      readonly budgetMs: number
    }

export type InspectResult = InspectedArchive
export type AnalyseResult = readonly Analysis[]

export interface MarkdownJob {
  readonly source: string
  readonly title?: string
  readonly filename?: string
}
