/**
 * Files of former versions that stay reachable. What is kept stands in the manifest that visitors are served, which is
 * the live version's own with these files beside it; each change of what is live writes such a manifest anew.
 *
 * Every method works inside the transaction of the change, with the site locked, and leaves the routes to the caller.
 */
import type { Clock } from '../../../../shared/running/clock.ts'
import { DAY_MS, HOUR_MS } from '../../../../shared/running/clock.ts'
import type { Log } from '../../../../shared/running/log.ts'
import type { KeptFiles, Manifest } from '../../../../shared/contracts/manifest.ts'
import { plans } from '../../../ground/terms/plans.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { inOrder, type Sql } from '../../../ground/database/sql.ts'
import {
  changedUnhashed,
  keepFormer,
  keptBlobSizes,
  MAX_KEPT_BYTES,
  MAX_KEPT_FILES,
  nextEndOf,
  NOTHING_KEPT,
  summaryOf,
  type FormerVersion,
  type KeepTerms,
  type KeptSummary,
} from '../../publishing/manifest/kept-files.ts'
import { losesNothing } from '../../publishing/manifest/differing.ts'
import type { Publishing, Withheld } from '../../publishing/contract.ts'
import { findSite, retainedVersions, storedBytes, uploadsUnderWay } from '../queries.ts'
import { NOT_SERVED, type RetainedVersion, type SiteFacts } from '../rules.ts'
import * as queries from './queries.ts'

/** What was live before a change; `retained` may not name it any more. */
export interface LiveBefore {
  readonly site: SiteFacts
  readonly version: RetainedVersion | undefined
}

export interface SiteKeptFiles {
  /**
   * Another version is live: what the one before had stays beside it. Resolves to what is kept now, and to the code that
   * changed under a name that did not. `purge`: nothing stays; `withheld`: these secrets do not.
   */
  replace(tx: Sql, before: LiveBefore, options: { purge: boolean; withheld: Withheld }): Promise<Replaced>
  /** The same version in another manifest, another setting, or another time: what is over goes. */
  refit(tx: Sql, siteId: string): Promise<void>
  /** Ends what is due by then at one site, or puts it off where it fails; resolves to its id, or to undefined when nothing is due. */
  endNextDue(tx: Sql, now: Date): Promise<string | undefined>
  /** At how many sites something is due by then. */
  countDue(sql: Sql, now: Date): Promise<number>
  /** Nothing is kept any more: the content became private, was taken down or deleted. It does not come back. */
  end(tx: Sql, siteId: string): Promise<void>
  /** A change is taken back: what was served before it is served again. */
  restore(tx: Sql, before: SiteFacts): Promise<void>
}

export interface Replaced {
  readonly kept: KeptSummary
  readonly unhashed: readonly string[]
}

export interface KeptFilesDependencies {
  clock: Clock
  log: Log
  publishing: Pick<Publishing, 'readManifest' | 'writeManifest'>
  config: Pick<ControlConfig, 'keepOldFilesMs'>
  /** Whether every live edge reads manifests with kept files: one of the release before refuses them. */
  edgesReadKept(): boolean
}

export async function endKept(tx: Sql, siteId: string, now: Date): Promise<void> {
  await queries.setServed(tx, siteId, NOT_SERVED)
  await queries.setKeptBlobs(tx, siteId, new Map(), now)
}

export function createKeptFiles({
  clock,
  log,
  publishing,
  config,
  edgesReadKept,
}: KeptFilesDependencies): SiteKeptFiles {
  const keepMsOf = (site: SiteFacts): number =>
    site.keep_old_files_days === null ? config.keepOldFilesMs : site.keep_old_files_days * DAY_MS

  /** What the plan has left after all versions: kept files never make a publish fail, they make room. */
  async function roomOf(tx: Sql, site: SiteFacts): Promise<number> {
    if (site.org_id === null) return MAX_KEPT_BYTES
    const { versions, kept } = await storedBytes(tx, site.org_id, site.id)
    const underWay = await uploadsUnderWay(tx, site.org_id, new Date(clock.now()))
    return Math.max(0, plans[site.plan].storageBytes - versions - kept - underWay.bytes)
  }

  async function termsOf(
    tx: Sql,
    site: SiteFacts,
    retained: readonly RetainedVersion[],
    now = clock.now(),
  ): Promise<KeepTerms> {
    const numbers = new Set(retained.map(({ number }) => number))
    return {
      now,
      keepMs: edgesReadKept() ? keepMsOf(site) : 0,
      bounds: { files: MAX_KEPT_FILES, bytes: MAX_KEPT_BYTES, roomBytes: await roomOf(tx, site) },
      isRetained: (number) => numbers.has(number),
    }
  }

  /** Serves this version with these files beside it. */
  async function serve(
    tx: Sql,
    siteId: string,
    live: { manifest: Manifest; hash: string },
    kept: KeptFiles | undefined,
    terms: Pick<KeepTerms, 'keepMs' | 'isRetained'>,
  ): Promise<KeptSummary> {
    if (kept === undefined) {
      await endKept(tx, siteId, new Date(clock.now()))
      return NOTHING_KEPT
    }
    const { hash } = await publishing.writeManifest({ ...live.manifest, kept })
    const summary = summaryOf(kept, terms.keepMs)
    await queries.setServed(tx, siteId, {
      served_manifest_hash: hash,
      served_for: live.hash,
      kept_files: summary.files,
      kept_bytes: summary.bytes,
      kept_until: dateOf(summary.until),
      kept_ends_at: dateOf(nextEndOf(kept, terms)),
    })
    await queries.setKeptBlobs(tx, siteId, keptBlobSizes(kept).set(hash, 0), new Date(clock.now()))
    return summary
  }

  async function refit(tx: Sql, siteId: string, at = clock.now()): Promise<void> {
    const { site, live, retained } = await liveOf(tx, siteId)
    if (!site || site.served_manifest_hash === null) return
    if (!live) return endKept(tx, siteId, new Date(clock.now()))
    const manifest = await publishing.readManifest(live.manifest_hash)
    const terms = await termsOf(tx, site, retained, at)
    const kept = keepFormer(manifest, undefined, await keptBeside(publishing, site), terms)
    await serve(tx, siteId, { manifest, hash: live.manifest_hash }, kept, terms)
  }

  return {
    async replace(tx, before, { purge, withheld }) {
      // The first version has nothing to keep.
      if (!before.version && before.site.served_manifest_hash === null) return { kept: NOTHING_KEPT, unhashed: [] }
      const { site: now, live, retained } = await liveOf(tx, before.site.id)
      if (!now || !live) return { kept: NOTHING_KEPT, unhashed: [] }
      const manifest = await publishing.readManifest(live.manifest_hash)
      const former = await formerOf(publishing, before, live)
      const unhashed = changedUnhashed(manifest, former?.manifest)
      const beside = purge ? undefined : await keptBeside(publishing, before.site)
      // Most publishes of most drops leave nothing behind, and nothing was kept before.
      const isQuiet =
        before.site.served_manifest_hash === null &&
        (purge || !former || losesNothing(former.manifest.files, manifest.files))
      if (isQuiet) return { kept: NOTHING_KEPT, unhashed }
      const terms = { ...(await termsOf(tx, now, retained)), withheld, purge }
      const kept = keepFormer(manifest, former, beside, terms)
      return { kept: await serve(tx, now.id, { manifest, hash: live.manifest_hash }, kept, terms), unhashed }
    },

    refit: (tx, siteId) => refit(tx, siteId),

    async endNextDue(tx, now) {
      const id = await queries.lockKeptDue(tx, now)
      if (id !== undefined)
        await refit(tx, id, now.getTime()).catch((error: unknown) => putOff(tx, log, { id, now, error }))
      return id
    },

    countDue: queries.countKeptDue,

    end: (tx, siteId) => endKept(tx, siteId, new Date(clock.now())),

    async restore(tx, { id, served_manifest_hash, served_for, kept_files, kept_bytes, kept_until, kept_ends_at }) {
      const kept =
        served_manifest_hash === null ? undefined : (await publishing.readManifest(served_manifest_hash)).kept
      const sizes = keptBlobSizes(kept)
      if (served_manifest_hash !== null) sizes.set(served_manifest_hash, 0)
      await queries.setServed(tx, id, {
        served_manifest_hash,
        served_for,
        kept_files,
        kept_bytes,
        kept_until,
        kept_ends_at,
      })
      await queries.setKeptBlobs(tx, id, sizes, new Date(clock.now()))
    },
  }
}

/** One drop whose manifest cannot be read keeps no other one waiting. */
async function putOff(tx: Sql, log: Log, { id, now, error }: { id: string; now: Date; error: unknown }): Promise<void> {
  log.error({ err: error, site: id }, 'old files of a drop cannot be ended; they are looked at again in an hour')
  await queries.setKeptEnd(tx, id, new Date(now.getTime() + HOUR_MS))
}

async function keptBeside(
  publishing: Pick<Publishing, 'readManifest'>,
  { served_manifest_hash }: SiteFacts,
): Promise<KeptFiles | undefined> {
  return served_manifest_hash === null ? undefined : (await publishing.readManifest(served_manifest_hash)).kept
}

function dateOf(time: number | null): Date | null {
  return time === null ? null : new Date(time)
}

async function liveOf(
  tx: Sql,
  siteId: string,
): Promise<{ site: SiteFacts | undefined; live: RetainedVersion | undefined; retained: RetainedVersion[] }> {
  const [site, retained] = await inOrder(
    () => findSite(tx, siteId),
    () => retainedVersions(tx, siteId),
  )
  return { site, live: retained.find(({ id }) => id === site?.live_version_id), retained }
}

/** The version that was live before, unless the same one is live again. */
async function formerOf(
  publishing: Pick<Publishing, 'readManifest'>,
  { version }: LiveBefore,
  live: RetainedVersion,
): Promise<FormerVersion | undefined> {
  if (!version || version.id === live.id) return undefined
  return { number: version.number, manifest: await publishing.readManifest(version.manifest_hash) }
}
