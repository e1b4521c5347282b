/** Versions: publish, list, promote, compare. The parts are in the files beside this one. */
import { errors } from '../../../../shared/contracts/errors.ts'
import type { Manifest } from '../../../../shared/contracts/manifest.ts'
import { plans, type PlanName } from '../../../ground/terms/plans.ts'
import type { Actor } from '../../../ground/actor.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import type { Sql } from '../../../ground/database/sql.ts'
import type { EnqueueMail } from '../../../ground/mail/mail.ts'
import type { Publishing } from '../../publishing/contract.ts'
import type { Cards } from '../settings/cards.ts'
import type { SiteKeptFiles } from '../kept/kept-files.ts'
import * as queries from '../queries.ts'
import type { RetainedVersion, SiteFacts } from '../rules.ts'
import type { Purge } from '../schemas.ts'
import type { Sites } from '../sites.ts'
import {
  createCommit,
  createCommitUnclaimed,
  requireStorage,
  type CommitDependencies,
  type CommitUnclaimed,
  type CommitUnclaimedDependencies,
  type CommitVersion,
} from './commit.ts'
import { createComparisons, type Comparisons } from './comparison.ts'
import { createPublishVersions, findBySlug, requirePublishable, type PublishVersions } from './publish-version.ts'
import { createRefinement, type Refinement } from './refinement/refinement.ts'
import { createPropagateOrTakeBack, type TakeBackDependencies } from './take-back.ts'

interface VersionsDependencies extends CommitDependencies, CommitUnclaimedDependencies, TakeBackDependencies {
  keptFiles: SiteKeptFiles
  publishing: Pick<Publishing, 'readManifest' | 'compareTexts' | 'placeAnchors' | 'compress' | 'refine'>
  sites: Pick<Sites, 'add' | 'lockOrganisation' | 'lockOwn' | 'requireOwn'>
  cards: Pick<Cards, 'bringUpToDate'>
  enqueueMail: EnqueueMail
  config: CommitDependencies['config'] & CommitUnclaimedDependencies['config'] & Pick<ControlConfig, 'baseUrl'>
}

/** A publish that is about to be sent. */
export interface WantedRoom {
  readonly orgId: string
  /** Undefined when there is none yet. */
  readonly site: SiteFacts | undefined
  readonly plan: PlanName
  readonly byteSize: number
  readonly purge?: Purge | undefined
  readonly preview?: string | undefined
  /** Its files, by hash: those that were sent already count once. */
  readonly pieces?: readonly string[]
}

export interface Versions extends PublishVersions, Comparisons, Refinement {
  commit: CommitVersion
  commitUnclaimed: CommitUnclaimed
  /** Called once bytes were added: an organisation that is over its cap already keeps what it has, and may replace it. */
  requireStorage(sql: Sql, orgId: string, plan: PlanName): Promise<void>
  /** Refuses what a publish of so many bytes would be refused for, before anything is sent. */
  requireRoom(tx: Sql, wanted: WantedRoom): Promise<void>
  /** Checked before a body is read, and again in the transaction. */
  requirePublishable(site: SiteFacts): void
  /** The organisation's site of that slug, without a lock; undefined when it has none. */
  findBySlug(actor: Actor, slug: string | undefined): Promise<SiteFacts | undefined>
  /** What visitors see now; undefined when nothing is published. */
  liveVersion(site: Pick<SiteFacts, 'id' | 'live_version_id'>): Promise<RetainedVersion | undefined>
  /** A version that is kept, by its number. */
  numbered(siteId: string, number: number): Promise<RetainedVersion | undefined>
  liveManifestHash(site: Pick<SiteFacts, 'id' | 'live_version_id'>): Promise<string | undefined>
  liveManifest(siteId: string, liveVersionId: string | null): Promise<Manifest | undefined>
  /** The id of a retained version by its number, or by the id itself. */
  requireId(actor: Actor, siteId: string, version: number | string): Promise<string>
}

export function createVersions(deps: VersionsDependencies): Versions {
  const { sql, clock, publishing, sites } = deps
  const commit = createCommit(deps)

  async function liveVersion(site: Pick<SiteFacts, 'id' | 'live_version_id'>): Promise<RetainedVersion | undefined> {
    return (await queries.retainedVersions(sql, site.id)).find((version) => version.id === site.live_version_id)
  }

  return {
    ...createPublishVersions({ ...deps, commit, propagate: createPropagateOrTakeBack(deps) }),
    ...createComparisons(deps),
    ...createRefinement(deps),
    commit,
    commitUnclaimed: createCommitUnclaimed(deps),
    requireStorage: (tx, orgId, plan) => requireStorage(tx, { orgId, plan, now: new Date(clock.now()) }),
    requirePublishable: (site) => requirePublishable(site, clock.now()),
    findBySlug: (actor, slug) => findBySlug({ sql, sites }, actor, slug),
    liveVersion,
    numbered: async (siteId, number) =>
      (await queries.retainedVersions(sql, siteId)).find((version) => version.number === number),
    liveManifestHash: async (site) => (await liveVersion(site))?.manifest_hash,

    async liveManifest(siteId, liveVersionId) {
      const live = await liveVersion({ id: siteId, live_version_id: liveVersionId })
      return live && publishing.readManifest(live.manifest_hash)
    },

    async requireRoom(tx, { orgId, site, plan, byteSize, pieces, purge, preview }) {
      const keep = plans[plan].versionsKept
      const dropped = site ? await queries.bytesGoing(tx, site.id, { keep, purge, preview }) : 0
      const furtherBytes = byteSize - dropped
      await requireStorage(tx, { orgId, plan, now: new Date(clock.now()), furtherBytes, ...(pieces && { pieces }) })
    },

    async requireId(actor, siteId, version) {
      await sites.requireOwn(sql, actor, siteId)
      const found = (await queries.retainedVersions(sql, siteId)).find(
        ({ id, number }) => id === version || number === version,
      )
      if (!found) throw errors.notFound('version')
      return found.id
    },
  }
}
