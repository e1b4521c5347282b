/** The transaction part of a publish: the version, the pointer to it, retention, and the routes. */
import type { Clock } from '../../../../shared/running/clock.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { newId } from '../../../../shared/contracts/ids.ts'
import { quotePath } from '../../../../shared/values/quoted-path.ts'
import { bytesInWords } from '../../../../shared/values/sizes.ts'
import type { WorkflowRun } from '../../../ground/actor.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { orUpgrade, plans, type PlanName } from '../../../ground/terms/plans.ts'
import { inOrder, type Sql } from '../../../ground/database/sql.ts'
import type { RoutingTransaction } from '../../../ground/routing/changes.ts'
import type { AccessInput } from '../../viewers/access.ts'
import type { PreparedVersion } from '../../publishing/contract.ts'
import * as queries from '../queries.ts'
import type { FirstRoutes, RefreshRoutes } from '../routing.ts'
import { UNSET, type RetainedVersion, type SiteFacts, type SpannedVersion } from '../rules.ts'
import { newSiteRow, type Unclaimed, type WantedSite } from '../settings/reservation.ts'
import { NOTHING_KEPT, withheldToRemember, type KeptSummary } from '../../publishing/manifest/kept-files.ts'
import type { Replaced, SiteKeptFiles } from '../kept/kept-files.ts'
import { nameVersion, unnameVersion, type Unnamed } from '../kept/naming.ts'
import { insertChangedVersion, insertVersion, type NewVersion } from '../kept/new-version.ts'
import { listPreviews } from '../kept/queries.ts'
import type { ApiVersion, PublishReport, Purge } from '../schemas.ts'
import { writeFirstPublish } from './first-publish.ts'
import { showVersion, type AddressConfig } from './show-version.ts'

export interface PublishOptions {
  readonly message?: string | undefined
  /** Number of the version that must be live for the publish to go through. */
  readonly ifVersion?: number
  readonly spaFallback?: boolean
  /** Visitors must enter it from this version on: the content is never public in between. */
  readonly password?: string | undefined
  /** Everything older goes with it. */
  readonly purge?: Purge | undefined
  /** The name of a preview, instead of going live. */
  readonly preview?: string | undefined
  /** Threads that the version mends. */
  readonly resolves?: readonly string[] | undefined
  /** The run of a workflow that publishes. */
  readonly source?: WorkflowRun | undefined
  /** Who may see it from this version on; written in the same transaction. */
  readonly access?: AccessInput | undefined
}

/** What a publish or a promotion took the place of. */
export interface Before {
  readonly site: SiteFacts
  /** The versions that retention or a purge dropped. */
  readonly dropped: readonly string[]
  /** Named previews that a purge removed. */
  readonly previews: readonly Unnamed[]
}

/**
 * Adds a version and makes it live. The caller has locked what the caps are counted against. `by`: the user, or null for
 * a drop without an account.
 */
export type CommitVersion = (
  tx: RoutingTransaction,
  site: SiteFacts,
  prepared: PreparedVersion,
  by: string | null,
  options: PublishOptions,
) => Promise<{ version: ApiVersion; addedBytes: number; before: Before }>

export interface CommitDependencies {
  clock: Clock
  refreshRoutes: RefreshRoutes
  keptFiles: Pick<SiteKeptFiles, 'replace'>
  config: AddressConfig
}

export function createCommit({ clock, refreshRoutes, keptFiles, config }: CommitDependencies): CommitVersion {
  return async (tx, site, prepared, by, options) => {
    const now = new Date(clock.now())
    const retained = site.live_version_id === null ? [] : await queries.retainedVersions(tx, site.id)
    const live = retained.find(({ id }) => id === site.live_version_id)
    requireLiveVersion(live, options.ifVersion)
    const { preview = null } = options
    if (preview !== null && options.purge !== undefined)
      throw errors.invalidRequest('purge goes with a publish that goes live, not with a preview.')
    const { paths, contents } = withheldToRemember(prepared.withheld)
    const version = {
      ...newVersionRow(site, prepared, now),
      message: options.message ?? '',
      created_by: by,
      is_preview: preview !== null,
      source: options.source ?? null,
      withheld: paths,
      withheld_contents: contents,
    }
    const isClientRouted = options.spaFallback ?? site.spa_fallback
    const report = reportFor(prepared.report, isClientRouted)
    const insert = (): Promise<void> => insertNewest(tx, { version, report }, prepared, retained[0])
    if (preview !== null) {
      await insert()
      const replaced = await nameVersion(tx, site, preview, version.id, now)
      await queries.updateSite(tx, site.id, { next_version_number: version.number + 1 }, now)
      await refreshRoutes(tx, site.id)
      const before = { site, dropped: [], previews: [] }
      return {
        version: showVersion(config, site, { ...version, report }, preview),
        addedBytes: version.byte_size - (replaced?.byte_size ?? 0),
        before,
      }
    }
    const changes = {
      live_version_id: version.id,
      next_version_number: version.number + 1,
      title: prepared.title,
      published_at: now,
      ...(options.spaFallback === undefined ? {} : { spa_fallback: options.spaFallback }),
    }
    const [, dropped] = await inOrder(
      insert,
      () => queries.dropOldestVersion(tx, site.id, { keep: plans[site.plan].versionsKept, live: version.id }, now),
      () => queries.updateSite(tx, site.id, changes, now),
      () =>
        queries.recordPublish(tx, { site_id: site.id, version_id: version.id, kind: 'upload', user_id: by, at: now }),
    )
    const { versions: purged, previews } = await purge(tx, version, options.purge, now)
    const kept = { purge: options.purge !== undefined, withheld: prepared.withheld }
    const replaced = await keptFiles.replace(tx, { site, version: live }, kept)
    const told = withReplaced(report, replaced)
    if (told !== report) await queries.setReport(tx, version.id, told)
    await refreshRoutes(tx, site.id)
    const gone = [...(dropped ? [dropped] : []), ...purged]
    return {
      version: showVersion(config, site, { ...version, report: told }),
      addedBytes: version.byte_size - gone.reduce((sum, { byte_size }) => sum + byte_size, 0),
      before: { site, dropped: gone.map(({ id }) => id), previews },
    }
  }
}

/**
 * Blobs are told by what changes where the version was made from the newest one, and the open spans are what that one needs.
 * The live version may be another, and a release before may have left spans open.
 */
function insertNewest(
  tx: Sql,
  { version, report }: { version: NewVersion; report: PublishReport },
  { blobs, changes }: Pick<PreparedVersion, 'blobs' | 'changes'>,
  newest: SpannedVersion | undefined,
): Promise<void> {
  const isNewest = newest?.number === version.number - 1 && newest.spans_of === newest.manifest_hash
  return changes && isNewest && newest.manifest_hash === changes.since
    ? insertChangedVersion(tx, version, report, changes)
    : insertVersion(tx, version, report, blobs())
}

function newVersionRow(site: SiteFacts, prepared: PreparedVersion, now: Date) {
  const { compression } = prepared
  return {
    id: newId('v', now.getTime()),
    site_id: site.id,
    number: site.next_version_number,
    manifest_hash: prepared.manifestHash,
    byte_size: prepared.byteSize,
    file_count: prepared.fileCount,
    message: '',
    title: prepared.title,
    created_by: null,
    created_at: now,
    source: null,
    compressed_at: compression === 'open' ? null : now,
    refined_at: compression === 'done' ? now : null,
  }
}

/** The random slug of a new drop is another's. The transaction can be tried again with another one. */
export class RandomSlugTaken extends Error {}

/**
 * A drop without an account comes to be, with its first version live. All that is written is known beforehand, so that it
 * is one turn with Postgres. `meanwhile` is one statement more, whose answer may refuse the whole.
 */
export type CommitUnclaimed = (
  tx: RoutingTransaction,
  owner: Unclaimed,
  wanted: Pick<WantedSite, 'name' | 'accessUntil'>,
  prepared: PreparedVersion,
  meanwhile: () => Promise<unknown>,
) => Promise<{ site: SiteFacts; report: PublishReport }>

export interface CommitUnclaimedDependencies {
  clock: Clock
  firstRoutes: FirstRoutes
  config: Pick<ControlConfig, 'anonymousLifetimeMs'>
}

export function createCommitUnclaimed({ clock, firstRoutes, config }: CommitUnclaimedDependencies): CommitUnclaimed {
  return async (tx, owner, wanted, prepared, meanwhile) => {
    // Looked at once: what is answered is what is stored, to the millisecond.
    const now = new Date(clock.now())
    const row = newSiteRow(owner, wanted, now.getTime(), config)
    const reserved = { ...UNSET, ...row, updated_at: now }
    const version = newVersionRow(reserved, prepared, now)
    const first = {
      live_version_id: version.id,
      next_version_number: version.number + 1,
      title: prepared.title,
      published_at: now,
    }
    const site = { ...reserved, ...first }
    const report = reportFor(prepared.report, site.spa_fallback)
    const blobs = prepared.blobs()
    const routes = firstRoutes(site, version)
    const [, isTaken] = await inOrder(meanwhile, () =>
      writeFirstPublish(tx, { site: { ...row, ...first }, version, report, blobs, routes }),
    )
    if (!isTaken) throw new RandomSlugTaken('the random slug of a new drop is taken')
    return { site, report }
  }
}

/** Everything older than this version; resolves to what went. */
async function purge(
  tx: Sql,
  { id, site_id }: Pick<queries.VersionRow, 'id' | 'site_id'>,
  what: Purge | undefined,
  now: Date,
): Promise<{ versions: queries.DroppedVersion[]; previews: Unnamed[] }> {
  if (what === undefined) return { versions: [], previews: [] }
  const named = await listPreviews(tx, site_id)
  const previews: Unnamed[] = []
  if (what === 'all') for (const preview of named) previews.push(await unnameVersion(tx, preview, now))
  const staying = what === 'all' ? [] : named.map(({ version_id }) => version_id)
  const older = await queries.dropOlderVersions(tx, site_id, [id, ...staying], now)
  return { versions: [...previews.flatMap(({ dropped }) => dropped ?? []), ...older], previews }
}

function requireLiveVersion(live: RetainedVersion | undefined, ifVersion: number | undefined): void {
  if (ifVersion === undefined) return
  const number = live?.number ?? 0
  if (number !== ifVersion)
    throw errors.versionChanged(`Version ${number} is live, not ${ifVersion}. Look at it, then publish again.`)
}

export interface WantedStorage {
  readonly orgId: string
  readonly plan: PlanName
  readonly now: Date
  /** What is about to be added, less what goes with the oldest version; undefined when everything is there already. */
  readonly furtherBytes?: number
  /** Pieces under way that are part of it. */
  readonly pieces?: readonly string[]
}

/**
 * An organisation that is over its cap already keeps what it has, and may replace it: asked only once bytes were added.
 * What is being sent counts like what is kept, so that no caller stores more by not publishing it.
 */
export async function requireStorage(
  sql: Sql,
  { orgId, plan, now, furtherBytes, pieces = [] }: WantedStorage,
): Promise<void> {
  const { storageBytes } = plans[plan]
  const { bytes } = await queries.uploadsUnderWay(sql, orgId, now, pieces)
  const added = bytes + (furtherBytes ?? 0)
  if (furtherBytes !== undefined && added <= 0) return
  // What is kept of former versions makes room by itself, and refuses no publish.
  if ((await queries.storedBytes(sql, orgId)).versions + added <= storageBytes) return
  const sending = bytes === 0 ? '' : ` ${bytesInWords(bytes)} are uploads under way, which end after 12 hours.`
  throw errors.planLimit(
    `Your plan stores ${storageBytes / 1_000_000} MB over all versions.${sending} Delete a drop${orUpgrade()}.`,
  )
}

/** A client-routed app answers paths that no file has: links to them are fine. */
function reportFor({ warnings, blocked }: PreparedVersion['report'], isClientRouted: boolean): PublishReport {
  return {
    blocked: [...blocked],
    kept: keptInReport(NOTHING_KEPT),
    warnings: warnings.filter((warning) => !isClientRouted || warning.code !== 'missing_page'),
  }
}

/** As many as a person reads. */
const MAX_UNHASHED_TOLD = 20

/** The report with what is known once the version is live: what stays of former ones, and what open tabs will notice. */
function withReplaced(report: PublishReport, { kept, unhashed }: Replaced): PublishReport {
  if (kept.files === 0 && unhashed.length === 0) return report
  const remarks = unhashed.slice(0, MAX_UNHASHED_TOLD).map((path) => ({
    code: 'unhashed_asset',
    path,
    count: 1,
    message: `${quotePath(path)} changed and its name did not: a tab that was open before gets the new file. Let your build put a hash into the names of scripts and styles.`,
  }))
  return { ...report, kept: keptInReport(kept), warnings: [...report.warnings, ...remarks] }
}

function keptInReport({ files, bytes, until }: KeptSummary): PublishReport['kept'] {
  return { files, bytes, until: until === null ? null : new Date(until).toISOString() }
}
