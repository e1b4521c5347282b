/** The transaction part of a publish: the version, the pointer to it, retention, and the routes. */
import type { Clock } from '../../../../shared/running/clock.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { newId } from '../../../../shared/contracts/ids.ts'
import { bytesInWords } from '../../../../shared/values/sizes.ts'
import type { WorkflowRun } from '../../../ground/actor.ts'
import { plans, type PlanName } from '../../../ground/terms/plans.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { inOrder, type Sql } from '../../../ground/database/sql.ts'
import type { RoutingTransaction } from '../../../ground/routing/changes.ts'
import type { AccessInput } from '../../viewers/access.ts'
import type { PreparedVersion } from '../../publishing/contract.ts'
import * as queries from '../queries.ts'
import type { RefreshRoutes } from '../routing.ts'
import type { SiteFacts } from '../rules.ts'
import type { ApiVersion, PublishReport } from '../schemas.ts'
import { showVersion } from './show-version.ts'

export interface PublishOptions {
  readonly message?: string | undefined
  /** Number of the version that must be live for the publish to go through. */
  readonly ifVersion?: number
  readonly spaFallback?: boolean
  /** Visitors must enter it from this version on: the content is never public in between. */
  readonly password?: string | undefined
  /** The run of a workflow that publishes. */
  readonly source?: WorkflowRun | undefined
  /** Who may see it from this version on; written in the same transaction. */
  readonly access?: AccessInput | undefined
}

/** What a publish or a promotion took the place of. */
export interface Before extends Pick<SiteFacts, 'live_version_id' | 'title' | 'published_at' | 'spa_fallback'> {
  /** The version that retention dropped. */
  readonly dropped: string | undefined
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
  config: Pick<ControlConfig, 'sitesDomain' | 'publicPort'>
}

export function createCommit({ clock, refreshRoutes, config }: CommitDependencies): CommitVersion {
  return async (tx, site, prepared, by, options) => {
    const now = new Date(clock.now())
    await requireLiveVersion(tx, site, options.ifVersion)
    const version = {
      id: newId('v', clock.now()),
      site_id: site.id,
      number: site.next_version_number,
      manifest_hash: prepared.manifestHash,
      byte_size: prepared.byteSize,
      file_count: prepared.fileCount,
      message: options.message ?? '',
      title: prepared.title,
      created_by: by,
      created_at: now,
      source: options.source ?? null,
    }
    const report = reportFor(prepared.report, options.spaFallback ?? site.spa_fallback)
    const changes = {
      live_version_id: version.id,
      next_version_number: version.number + 1,
      title: prepared.title,
      published_at: now,
      ...(options.spaFallback === undefined ? {} : { spa_fallback: options.spaFallback }),
    }
    const [, dropped] = await inOrder(
      () => queries.insertVersion(tx, version, report, prepared.blobs),
      () => queries.dropOldestVersion(tx, site.id, plans[site.plan].versionsKept, now),
      () => queries.updateSite(tx, site.id, changes, now),
      () =>
        queries.recordPublish(tx, { site_id: site.id, version_id: version.id, kind: 'upload', user_id: by, at: now }),
    )
    await refreshRoutes(tx, site.id)
    return {
      version: showVersion(config, site, { ...version, report }),
      addedBytes: version.byte_size - (dropped?.byte_size ?? 0),
      before: { ...site, dropped: dropped?.id },
    }
  }
}

async function requireLiveVersion(tx: Sql, site: SiteFacts, ifVersion: number | undefined): Promise<void> {
  if (ifVersion === undefined) return
  const live = (await queries.retainedVersions(tx, site.id)).find((version) => version.id === site.live_version_id)
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
  if ((await queries.storedBytes(sql, orgId)) + added <= storageBytes) return
  const sending = bytes === 0 ? '' : ` ${bytesInWords(bytes)} are uploads under way, which end after 12 hours.`
  throw errors.planLimit(
    `Your plan stores ${storageBytes / 1_000_000} MB over all versions.${sending} Delete a drop, or upgrade.`,
  )
}

/** A client-routed app answers paths that no file has: links to them are fine. */
function reportFor({ warnings, blocked }: PreparedVersion['report'], isClientRouted: boolean): PublishReport {
  return {
    blocked: [...blocked],
    warnings: warnings.filter((warning) => !isClientRouted || warning.code !== 'missing_page'),
  }
}
