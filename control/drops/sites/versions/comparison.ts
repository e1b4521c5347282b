/** The retained versions of a drop beside each other: who published what, and what each one changed. */
import { errors } from '../../../../shared/contracts/errors.ts'
import { MAX_BUNDLE_FILES } from '../../../../shared/contracts/limits.ts'
import type { Manifest } from '../../../../shared/contracts/manifest.ts'
import type { Actor } from '../../../ground/actor.ts'
import type { Pool, Sql } from '../../../ground/database/sql.ts'
import type { TextChange, TextPair } from '../../publishing/comparison/compare-texts.ts'
import type { Publishing } from '../../publishing/contract.ts'
import * as queries from '../queries.ts'
import type { Changes, VersionEntry } from '../schemas.ts'
import type { Sites } from '../sites.ts'
import { showSource, showVersion, type AddressConfig } from './show-version.ts'
import { uploadedFiles } from './uploaded-files.ts'

/** A drop's list of versions names this many promotions: enough to see who went back and forth. */
const MAX_PROMOTIONS = 100

export interface PastVersion extends VersionEntry {
  /** Undefined for the oldest that is kept, and where comparing would take too long. */
  readonly changes: Changes | undefined
}

/** The newest is always compared. 40,000 entries are read and compared in a third of a second on a busy machine. */
const MAX_COMPARED_FILES = 2 * MAX_BUNDLE_FILES

export interface Comparison {
  /** Number of the version that it is compared with; undefined when there is none. */
  readonly with: number | undefined
  readonly changes: Changes
  /** What changed in files that people read. Not more than a page can show. */
  readonly texts: readonly TextChange[]
}

const TEXT_PATH = /\.(?:html?|css|js|mjs|md|markdown|txt|json|svg|xml)$|(?:^|\/)_(?:redirects|headers)$/i
const MAX_TEXTS = 8
const MAX_TEXT_BYTES = 200_000

export interface ComparisonsDependencies {
  sql: Pool
  publishing: Pick<Publishing, 'readManifest' | 'compareTexts'>
  sites: Pick<Sites, 'requireOwn'>
  config: AddressConfig
}

export interface Comparisons {
  /** The retained ones, newest first. */
  list(actor: Actor, siteId: string): Promise<VersionEntry[]>
  /** As `list`, each with what it changed of the retained one before it, until too many files would be compared. */
  history(actor: Actor, siteId: string): Promise<PastVersion[]>
  /** What visitors would notice if this version replaced the live one. */
  changes(actor: Actor, siteId: string, versionId: string): Promise<Changes>
  /** What a version changed or would change, with the texts: the live one beside the one before it, others beside it. */
  compare(actor: Actor, siteId: string, versionId: string): Promise<Comparison>
}

export function createComparisons({ sql, publishing, sites, config }: ComparisonsDependencies): Comparisons {
  async function listed(actor: Actor, siteId: string): Promise<{ version: queries.VersionRow; entry: VersionEntry }[]> {
    const site = await sites.requireOwn(sql, actor, siteId)
    const versions = (await queries.listVersions(sql, siteId)).filter(({ is_preview }) => !is_preview)
    const promotions = await queries.listPromotions(sql, siteId, MAX_PROMOTIONS)
    return versions.map((version) => ({
      version,
      entry: {
        ...showVersion(config, site, version),
        created_at: version.created_at.toISOString(),
        live: version.id === site.live_version_id,
        created_by: version.created_by_email,
        source: version.source && showSource(version.source),
        promotions: promotions
          .filter(({ version_id }) => version_id === version.id)
          .map(({ at, by, from_number }) => ({ at: at.toISOString(), by, from_version_number: from_number })),
      },
    }))
  }

  async function changesBetween(from: WithManifest | undefined, to: WithManifest): Promise<Changes> {
    return compareManifests(
      from && (await publishing.readManifest(from.manifest_hash)),
      await publishing.readManifest(to.manifest_hash),
    )
  }

  return {
    list: async (actor, siteId) => (await listed(actor, siteId)).map(({ entry }) => entry),

    async history(actor, siteId) {
      const all = await listed(actor, siteId)
      const past: PastVersion[] = []
      let comparedFiles = 0
      for (const [index, { entry, version }] of all.entries()) {
        const before = all[index + 1]?.version
        comparedFiles += version.file_count
        const isCompared = before !== undefined && comparedFiles <= MAX_COMPARED_FILES
        past.push({ ...entry, changes: isCompared ? await changesBetween(before, version) : undefined })
      }
      return past
    },

    async changes(actor, siteId, versionId) {
      const site = await sites.requireOwn(sql, actor, siteId)
      const kept = await requireRetained(sql, siteId, versionId)
      const live = site.live_version_id ? await requireRetained(sql, siteId, site.live_version_id) : undefined
      return changesBetween(live, kept)
    },

    async compare(actor, siteId, versionId) {
      const site = await sites.requireOwn(sql, actor, siteId)
      // Another preview was never live: no one has seen this version take its place.
      const kept = (await queries.listVersions(sql, siteId))
        .filter(({ id, is_preview }) => !is_preview || id === versionId)
        .toSorted((one, other) => one.number - other.number)
      const at = kept.findIndex(({ id }) => id === versionId)
      const version = kept[at]
      if (!version) throw errors.notFound('version')
      const isLive = versionId === site.live_version_id
      const other = isLive ? kept[at - 1] : kept.find(({ id }) => id === site.live_version_id)
      const from = other && (await publishing.readManifest(other.manifest_hash))
      const to = await publishing.readManifest(version.manifest_hash)
      const changes = compareManifests(from, to)
      return {
        with: other?.number,
        changes,
        texts: await publishing.compareTexts(actor.orgId, textPairs(from, to, changes.changed)),
      }
    },
  }
}

function hashesOf(manifest: Manifest | undefined): Map<string, string> {
  return new Map([...uploadedFiles(manifest)].map(([path, { hash }]) => [path, hash]))
}

type WithManifest = Pick<queries.VersionRow, 'manifest_hash'>

export async function requireRetained(sql: Sql, siteId: string, versionId: string): Promise<queries.VersionRow> {
  const version = (await queries.listVersions(sql, siteId)).find((candidate) => candidate.id === versionId)
  if (!version) throw errors.notFound('version')
  return version
}

/** The changed files that people read, before and after. */
function textPairs(from: Manifest | undefined, to: Manifest, paths: readonly string[]): TextPair[] {
  const [before, after] = [uploadedFiles(from), uploadedFiles(to)]
  const pairs = paths.flatMap((path): TextPair[] => {
    const [old, fresh] = [before.get(path), after.get(path)]
    if (!old || !fresh || !TEXT_PATH.test(path) || Math.max(old.size, fresh.size) > MAX_TEXT_BYTES) return []
    return [{ path, before: old.hash, after: fresh.hash }]
  })
  return pairs.slice(0, MAX_TEXTS)
}

/** By what was uploaded: the writer of Markdown compares Markdown, not the pages that were made of it. */
function compareManifests(from: Manifest | undefined, to: Manifest): Changes {
  const before = hashesOf(from)
  const after = hashesOf(to)
  const paths = [...after.keys()]
  return {
    added: paths.filter((path) => !before.has(path)),
    changed: paths.filter((path) => before.has(path) && before.get(path) !== after.get(path)),
    removed: [...before.keys()].filter((path) => !after.has(path)),
  }
}
