/**
 * Versions: publish, list, promote, compare.
 * Publish = blobs durable → one transaction (version, pointer, retention, caps, route) → published → acknowledged → reply.
 */
import type { Audit } from '../../../people/audit/audit.ts'
import { MINUTE_MS, type Clock } from '../../../../shared/clock.ts'
import { errors } from '../../../../shared/errors.ts'
import { previewHost, siteHost } from '../../../../shared/hosts.ts'
import { newId } from '../../../../shared/ids.ts'
import type { Log } from '../../../../shared/log.ts'
import { plans, type PlanName } from '../../../../shared/plans.ts'
import { addressOf } from '../../../../shared/settings.ts'
import { MAX_BUNDLE_FILES } from '../../../../shared/limits.ts'
import type { Manifest } from '../../../../shared/manifest.ts'
import type { Actor } from '../../../ground/actor.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { inOrder, transaction, type Pool, type Sql } from '../../../ground/database/sql.ts'
import type { Events } from '../../../ground/events/publish.ts'
import type { PreparedVersion, Publishing } from '../../publishing/contract.ts'
import { preparePassword, writePassword, type WantedPassword } from '../protection.ts'
import * as queries from '../queries.ts'
import type { RefreshRoutes } from '../routing.ts'
import { stateOf, type RetainedVersion, type SiteFacts } from '../rules.ts'
import type { Changes, PublishReport, VersionEntry, ApiVersion } from '../schemas.ts'
import type { Propagated, Sites, WantedSite } from '../sites.ts'

/** A deploy is often followed by the next one, which compressing must not slow down. */
const REFINE_AFTER_MS = MINUTE_MS
/** The store may be back by then; a manifest that cannot be read costs no more than a look. */
const REFINE_RETRY_MS = 10 * MINUTE_MS

/** Of a drop, in its list of versions: enough to see who went back and forth. */
const MAX_PROMOTIONS = 100

interface VersionsDependencies {
  sql: Pool
  clock: Clock
  log: Log
  events: Pick<Events, 'propagate'>
  refreshRoutes: RefreshRoutes
  audit: Audit
  publishing: Pick<Publishing, 'readManifest' | 'readBlob' | 'compress' | 'refine'>
  sites: Pick<Sites, 'add' | 'lockOrganisation' | 'lockOwn' | 'requireOwn'>
  config: Pick<ControlConfig, 'sitesDomain' | 'publicPort'>
}

export interface PublishOptions {
  readonly message?: string | undefined
  /** Number of the version that must be live for the publish to go through. */
  readonly ifVersion?: number
  readonly spaFallback?: boolean
  /** Visitors must enter it from this version on: the content is never public in between. */
  readonly password?: string | undefined
}

/** What a publish or a promotion took the place of. */
interface Before extends Pick<SiteFacts, 'live_version_id' | 'title' | 'published_at' | 'spa_fallback'> {
  /** The version that retention dropped. */
  readonly dropped: string | undefined
}

export interface Published {
  readonly siteId: string
  readonly version: ApiVersion
  /** The site came to be with this version. */
  readonly created: boolean
}

/** Happens with the publish or not at all; `undo` where the publish is taken back. */
export interface Alongside {
  work(tx: Sql): Promise<void>
  undo(tx: Sql): Promise<void>
}

/** Which site a publish goes to. */
interface PublishPlace {
  /** As it is now, before anything is locked; undefined when there is none yet. */
  peek(): Promise<SiteFacts | undefined>
  /** Locked, or made, inside the transaction. */
  find(tx: Sql): Promise<{ site: SiteFacts; created: boolean }>
}

export interface Versions {
  /**
   * The transaction part of a publish. The caller has locked what the caps are counted against. `by`: the user, or
   * null for a drop without an account.
   */
  commit(
    sql: Sql,
    site: SiteFacts,
    prepared: PreparedVersion,
    by: string | null,
    options: PublishOptions,
  ): Promise<{ version: ApiVersion; addedBytes: number }>
  /** Called once bytes were added: an organisation that is over its cap already keeps what it has, and may replace it. */
  requireStorage(sql: Sql, orgId: string, plan: PlanName): Promise<void>
  /** Refuses what a publish of so many bytes would be refused for, before anything is sent. */
  requireRoom(orgId: string, site: SiteFacts | undefined, plan: PlanName, byteSize: number): Promise<void>
  /** Checked before a body is read, and again in the transaction. */
  requirePublishable(site: SiteFacts): void
  /** The organisation's site of that slug, without a lock; undefined when it has none. */
  findBySlug(actor: Actor, slug: string | undefined): Promise<SiteFacts | undefined>
  /** What visitors see now; undefined when nothing is published. */
  liveVersion(site: Pick<SiteFacts, 'id' | 'live_version_id'>): Promise<RetainedVersion | undefined>
  liveManifestHash(site: Pick<SiteFacts, 'id' | 'live_version_id'>): Promise<string | undefined>
  liveManifest(siteId: string, liveVersionId: string | null): Promise<Manifest | undefined>
  /** The id of a retained version by its number, or by the id itself. */
  idOf(actor: Actor, siteId: string, version: number | string): Promise<string>
  publish(
    actor: Actor,
    siteId: string,
    prepared: PreparedVersion,
    options: PublishOptions,
    alongside?: Alongside,
  ): Promise<Propagated<ApiVersion>>
  publishNew(
    actor: Actor,
    wanted: WantedSite,
    prepared: PreparedVersion,
    options: PublishOptions,
  ): Promise<Propagated<Published>>
  /** To the organisation's site that has the slug, which takes the name if one is given, else to a new one. */
  publishBySlug(
    actor: Actor,
    wanted: WantedSite,
    prepared: PreparedVersion,
    options: PublishOptions,
  ): Promise<Propagated<Published>>
  /** The retained ones, newest first. */
  list(actor: Actor, siteId: string): Promise<VersionEntry[]>
  /** As `list`, each with what it changed of the retained one before it, until too many files would be compared. */
  history(actor: Actor, siteId: string): Promise<PastVersion[]>
  /** A pointer flip, recorded as a publish: rolling forward again is the same move. */
  promote(actor: Actor, siteId: string, versionId: string): Promise<Propagated<ApiVersion>>
  /** What visitors would notice if this version replaced the live one. */
  changes(actor: Actor, siteId: string, versionId: string): Promise<Changes>
  /** What a version changed or would change, with the texts: the live one beside the one before it, others beside it. */
  compare(actor: Actor, siteId: string, versionId: string): Promise<Comparison>
  /** Compresses what went live without variants, live versions first; each is served so at once. */
  compressDue(stopping: AbortSignal): Promise<number>
  /** Compresses harder what has gone live since the last run, in the same order. A version keeps its id, number and content. */
  refineDue(stopping: AbortSignal): Promise<number>
}

export function createVersions({
  sql,
  clock,
  log,
  events,
  refreshRoutes,
  audit,
  publishing,
  sites,
  config,
}: VersionsDependencies): Versions {
  function shown(
    site: Pick<SiteFacts, 'slug'>,
    version: Omit<queries.VersionRow, 'created_by_email' | 'site_id' | 'created_at' | 'title'>,
  ): ApiVersion {
    const preview = previewHost(version.number, site.slug, config.sitesDomain)
    return {
      version_id: version.id,
      version_number: version.number,
      byte_size: version.byte_size,
      file_count: version.file_count,
      message: version.message,
      url: addressOf(config, siteHost(site.slug, config.sitesDomain)),
      preview_url: preview === undefined ? null : addressOf(config, preview),
      report: readReport(version.report as StoredReport),
    }
  }

  /** The transaction part of a publish. The caller has locked what the caps are counted against. */
  async function commit(
    tx: Sql,
    site: SiteFacts,
    prepared: PreparedVersion,
    by: string | null,
    options: PublishOptions,
  ): Promise<{ version: ApiVersion; addedBytes: number; before: Before }> {
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
      version: shown(site, { ...version, report }),
      addedBytes: version.byte_size - (dropped?.byte_size ?? 0),
      before: { ...site, dropped: dropped?.id },
    }
  }

  /**
   * Tells the edges. Where one cannot serve the version, everything is as it was before, and the caller hears why; the
   * number is not given again. Where another publish came since, that stands: it replaced this one anyway.
   */
  async function propagate<Value>(
    value: Value,
    { siteId, versionId, before }: { siteId: string; versionId: string; before: Before },
    undo: (tx: Sql) => Promise<void>,
  ): Promise<Propagated<Value>> {
    const { pending, refused } = await events.propagate()
    if (refused === undefined) return { value, pending }
    const isTakenBack = await transaction(sql, async (tx) => {
      await queries.lockSite(tx, siteId)
      const site = await queries.findSite(tx, siteId)
      if (!site || site.live_version_id !== versionId) return false
      const { live_version_id, title, published_at, spa_fallback, dropped } = before
      await queries.updateSite(
        tx,
        siteId,
        { live_version_id, title, published_at, spa_fallback },
        new Date(clock.now()),
      )
      if (dropped !== undefined) await queries.retainAgain(tx, dropped)
      await undo(tx)
      await refreshRoutes(tx, siteId)
      return true
    })
    if (!isTakenBack) return { value, pending }
    log.error(
      { site: siteId, version: versionId, reason: refused },
      'an edge cannot serve a version; it was taken back',
    )
    await events.propagate()
    throw errors.notServed(refused)
  }

  async function listed(actor: Actor, siteId: string): Promise<{ version: queries.VersionRow; entry: VersionEntry }[]> {
    const site = await sites.requireOwn(sql, actor, siteId)
    const versions = await queries.listVersions(sql, siteId)
    const promotions = await queries.listPromotions(sql, siteId, MAX_PROMOTIONS)
    return versions.map((version) => ({
      version,
      entry: {
        ...shown(site, version),
        created_at: version.created_at.toISOString(),
        live: version.id === site.live_version_id,
        created_by: version.created_by_email,
        promotions: promotions
          .filter(({ version_id }) => version_id === version.id)
          .map(({ at, by, from_number }) => ({ at: at.toISOString(), by, from_version_number: from_number })),
      },
    }))
  }

  type WithManifest = Pick<queries.VersionRow, 'manifest_hash'>

  async function changesBetween(from: WithManifest | undefined, to: WithManifest): Promise<Changes> {
    return compareManifests(
      from && (await publishing.readManifest(from.manifest_hash)),
      await publishing.readManifest(to.manifest_hash),
    )
  }

  /** The organisation's site of that slug, without a lock; undefined when it has none. */
  async function findBySlug(actor: Actor, slug: string | undefined): Promise<SiteFacts | undefined> {
    const id = slug === undefined ? undefined : await queries.findOwnSlug(sql, actor.orgId, slug)
    return id === undefined ? undefined : sites.requireOwn(sql, actor, id)
  }

  /** Creating a site, its password and its first version are one change, so that a refusal leaves nothing behind. */
  async function publishTo(
    actor: Actor,
    { peek, find }: PublishPlace,
    prepared: PreparedVersion,
    options: PublishOptions,
    alongside?: Alongside,
  ): Promise<Propagated<Published>> {
    const password = options.password === undefined ? undefined : await wantedPassword(actor, peek, options.password)
    const published = await transaction(sql, async (tx) => {
      const { site, created } = await find(tx)
      requirePublishable(site)
      await alongside?.work(tx)
      if (password !== undefined) await protect(tx, actor, site, password)
      const { version, addedBytes, before } = await commit(tx, site, prepared, actor.userId, options)
      if (addedBytes > 0) await requireStorage(tx, actor.orgId, site.plan)
      await audit(tx, {
        actor,
        action: 'site.published',
        subject: site.id,
        detail: { version: version.version_number },
      })
      return { siteId: site.id, version, created, before }
    })
    const { siteId, version, created, before } = published
    return propagate({ siteId, version, created }, { siteId, versionId: version.version_id, before }, async (tx) => {
      await queries.dropVersion(tx, version.version_id, new Date(clock.now()))
      await alongside?.undo(tx)
    })
  }

  async function wantedPassword(actor: Actor, peek: PublishPlace['peek'], password: string): Promise<WantedPassword> {
    const site = await peek()
    return preparePassword(site?.plan ?? actor.plan, site, password)
  }

  async function protect(tx: Sql, actor: Actor, site: SiteFacts, password: WantedPassword): Promise<void> {
    if (!(await writePassword(tx, site, password, new Date(clock.now())))) return
    await audit(tx, { actor, action: 'site.updated', subject: site.id, detail: { fields: ['password'] } })
  }

  async function rename(tx: Sql, actor: Actor, site: SiteFacts, name: string): Promise<void> {
    await queries.updateSite(tx, site.id, { name }, new Date(clock.now()))
    await audit(tx, { actor, action: 'site.updated', subject: site.id, detail: { fields: ['name'] } })
  }

  /** Checked before a body is read, and again in the transaction. */
  function requirePublishable(site: SiteFacts): void {
    const state = stateOf(site, clock.now())
    if (state === 'removed')
      throw errors.forbidden('This drop was removed by trust and safety. Nothing can be published to it.')
    if (state === 'expired')
      throw errors.conflict(
        'expired',
        'This drop has expired. Sign in to the dashboard to bring it back, then publish.',
      )
    if (state === 'paused')
      throw errors.conflict(
        'paused',
        'This drop is paused because the plan allows fewer drops. Choose it instead of another one, delete another one, or upgrade.',
      )
  }

  async function requireLiveVersion(tx: Sql, site: SiteFacts, ifVersion: number | undefined): Promise<void> {
    if (ifVersion === undefined) return
    const live = (await queries.retainedVersions(tx, site.id)).find((version) => version.id === site.live_version_id)
    const number = live?.number ?? 0
    if (number !== ifVersion)
      throw errors.versionChanged(`Version ${number} is live, not ${ifVersion}. Look at it, then publish again.`)
  }

  /** Called once bytes were added: an organisation that is over its cap already keeps what it has, and may replace it. */
  async function requireStorage(sql: Sql, orgId: string, plan: PlanName, furtherBytes = 0): Promise<void> {
    const { storageBytes } = plans[plan]
    if ((await queries.storedBytes(sql, orgId)) + furtherBytes > storageBytes)
      throw errors.planLimit(
        `Your plan stores ${storageBytes / 1_000_000} MB over all versions. Delete a drop, or upgrade.`,
      )
  }

  async function requireRetained(sql: Sql, siteId: string, versionId: string): Promise<queries.VersionRow> {
    const version = (await queries.listVersions(sql, siteId)).find((candidate) => candidate.id === versionId)
    if (!version) throw errors.notFound('version')
    return version
  }

  async function changedTexts(
    from: Manifest | undefined,
    to: Manifest,
    paths: readonly string[],
  ): Promise<Comparison['texts']> {
    const [before, after] = [new Map(from?.files), new Map(to.files)]
    const readable = paths.filter(
      (path) =>
        TEXT_PATH.test(path) &&
        Math.max(before.get(path)?.size ?? Infinity, after.get(path)?.size ?? Infinity) <= MAX_TEXT_BYTES,
    )
    const read = async (files: typeof before, path: string): Promise<string> => {
      const hash = files.get(path)?.hash
      return hash === undefined ? '' : (await publishing.readBlob(hash)).toString()
    }
    return Promise.all(
      readable
        .slice(0, MAX_TEXTS)
        .map(async (path) => ({ path, before: await read(before, path), after: await read(after, path) })),
    )
  }

  async function liveManifestHash(site: Pick<SiteFacts, 'id' | 'live_version_id'>): Promise<string | undefined> {
    const retained = await queries.retainedVersions(sql, site.id)
    return retained.find((version) => version.id === site.live_version_id)?.manifest_hash
  }

  async function recompress(due: queries.UnrefinedVersion, step: 'compressed_at' | 'refined_at'): Promise<boolean> {
    const work = step === 'compressed_at' ? publishing.compress : publishing.refine
    const refined = await work(due.manifest_hash, due.refined_hash)
    await transaction(sql, async (tx) => {
      await queries.lockSite(tx, due.site_id)
      await queries.markRefined(tx, due, step, refined)
      if (refined) await refreshRoutes(tx, due.site_id)
    })
    return refined !== undefined
  }

  /** Takes what `next` finds until there is nothing left. One that fails is put off, and keeps no other waiting. */
  async function recompressDue(
    stopping: AbortSignal,
    step: 'compressed_at' | 'refined_at',
    next: () => Promise<queries.UnrefinedVersion | undefined>,
  ): Promise<number> {
    let count = 0
    while (!stopping.aborted) {
      const due = await next()
      if (!due) break
      const isChanged = await recompress(due, step).catch(async (error: unknown) => {
        log.warn({ err: error, version: due.id }, 'a version could not be compressed; it is tried again')
        await queries.postponeRefinement(sql, due.id, new Date(clock.now() + REFINE_RETRY_MS))
        return undefined
      })
      if (isChanged !== undefined) count++
      // Visitors have it before the next one is begun.
      if (isChanged) await events.propagate()
    }
    return count
  }

  return {
    commit,
    requireStorage,

    async requireRoom(orgId, site, plan, byteSize) {
      const dropped = site ? await queries.oldestBytes(sql, site.id, plans[plan].versionsKept) : 0
      if (byteSize > dropped) await requireStorage(sql, orgId, plan, byteSize - dropped)
    },

    requirePublishable,
    findBySlug,

    async liveVersion(site) {
      return (await queries.retainedVersions(sql, site.id)).find((version) => version.id === site.live_version_id)
    },

    async idOf(actor, siteId, version) {
      await sites.requireOwn(sql, actor, siteId)
      const found = (await queries.retainedVersions(sql, siteId)).find(
        ({ id, number }) => id === version || number === version,
      )
      if (!found) throw errors.notFound('version')
      return found.id
    },

    async publish(actor, siteId, prepared, options, alongside) {
      const place: PublishPlace = {
        peek: () => sites.requireOwn(sql, actor, siteId),
        find: async (tx) => ({ site: await sites.lockOwn(tx, actor, siteId), created: false }),
      }
      const { value, pending } = await publishTo(actor, place, prepared, options, alongside)
      return { value: value.version, pending }
    },

    publishNew: (actor, wanted, prepared, options) =>
      publishTo(
        actor,
        {
          peek: async () => undefined,
          find: async (tx) => ({ site: await sites.add(tx, actor, wanted), created: true }),
        },
        prepared,
        options,
      ),

    publishBySlug: (actor, wanted, prepared, options) =>
      publishTo(
        actor,
        {
          peek: () => findBySlug(actor, wanted.slug),
          async find(tx) {
            await sites.lockOrganisation(tx, actor.orgId)
            const present =
              wanted.slug === undefined ? undefined : await queries.lockOwnSlug(tx, actor.orgId, wanted.slug)
            if (present === undefined) return { site: await sites.add(tx, actor, wanted), created: true }
            const site = await sites.requireOwn(tx, actor, present)
            if (wanted.name !== undefined && wanted.name !== site.name) await rename(tx, actor, site, wanted.name)
            return { site, created: false }
          },
        },
        prepared,
        options,
      ),

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

    async promote(actor, siteId, versionId) {
      const { version, before } = await transaction(sql, async (tx) => {
        await queries.lockSite(tx, siteId)
        const site = await sites.requireOwn(tx, actor, siteId)
        requirePublishable(site)
        const promoted = await requireRetained(tx, siteId, versionId)
        const now = new Date(clock.now())
        await queries.updateSite(
          tx,
          siteId,
          { live_version_id: promoted.id, title: promoted.title, published_at: now },
          now,
        )
        await queries.recordPublish(tx, {
          site_id: siteId,
          version_id: promoted.id,
          kind: 'promote',
          user_id: actor.userId,
          at: now,
        })
        await refreshRoutes(tx, siteId)
        await audit(tx, { actor, action: 'site.promoted', subject: siteId, detail: { version: promoted.number } })
        return { version: shown(site, promoted), before: { ...site, dropped: undefined } }
      })
      return propagate(version, { siteId, versionId, before }, async () => {})
    },

    async changes(actor, siteId, versionId) {
      const site = await sites.requireOwn(sql, actor, siteId)
      const kept = await requireRetained(sql, siteId, versionId)
      const live = site.live_version_id ? await requireRetained(sql, siteId, site.live_version_id) : undefined
      return changesBetween(live, kept)
    },

    async compare(actor, siteId, versionId) {
      const site = await sites.requireOwn(sql, actor, siteId)
      const kept = (await queries.listVersions(sql, siteId)).toSorted((one, other) => one.number - other.number)
      const at = kept.findIndex(({ id }) => id === versionId)
      const version = kept[at]
      if (!version) throw errors.notFound('version')
      const isLive = versionId === site.live_version_id
      const other = isLive ? kept[at - 1] : kept.find(({ id }) => id === site.live_version_id)
      const from = other && (await publishing.readManifest(other.manifest_hash))
      const to = await publishing.readManifest(version.manifest_hash)
      const changes = compareManifests(from, to)
      return { with: other?.number, changes, texts: await changedTexts(from, to, changes.changed) }
    },

    compressDue: (stopping) =>
      recompressDue(stopping, 'compressed_at', () => queries.nextUncompressed(sql, new Date(clock.now()))),

    refineDue: (stopping) =>
      recompressDue(stopping, 'refined_at', () => {
        const now = clock.now()
        return queries.nextUnrefined(sql, new Date(now), new Date(now - REFINE_AFTER_MS))
      }),

    liveManifestHash,

    async liveManifest(siteId, liveVersionId) {
      const hash = await liveManifestHash({ id: siteId, live_version_id: liveVersionId })
      return hash === undefined ? undefined : publishing.readManifest(hash)
    },
  }
}

/** As earlier releases stored it: without a list of what was kept back, since nothing was, and a remark for each file. */
interface StoredReport {
  readonly warnings: readonly (Omit<PublishReport['warnings'][number], 'count'> & { readonly count?: number })[]
  readonly blocked?: PublishReport['blocked']
}

function readReport({ warnings, blocked = [] }: StoredReport): PublishReport {
  return { blocked, warnings: warnings.map((warning) => ({ ...warning, count: warning.count ?? 1 })) }
}

/** A client-routed app answers paths that no file has: links to them are fine. */
function reportFor({ warnings, blocked }: PreparedVersion['report'], isClientRouted: boolean): PublishReport {
  return {
    blocked: [...blocked],
    warnings: warnings.filter((warning) => !isClientRouted || warning.code !== 'missing_page'),
  }
}

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
  /** Changed files that people read, as they were and are. Not more than a page can show. */
  readonly texts: readonly { readonly path: string; readonly before: string; readonly after: string }[]
}

const TEXT_PATH = /\.(?:html?|css|js|mjs|md|markdown|txt|json|svg|xml)$|(?:^|\/)_(?:redirects|headers)$/i
const MAX_TEXTS = 8
const MAX_TEXT_BYTES = 200_000

export function compareManifests(from: Manifest | undefined, to: Manifest): Changes {
  const before = new Map(from?.files.map(([path, file]) => [path, file.hash]))
  const after = new Map(to.files.map(([path, file]) => [path, file.hash]))
  const paths = [...after.keys()]
  return {
    added: paths.filter((path) => !before.has(path)),
    changed: paths.filter((path) => before.has(path) && before.get(path) !== after.get(path)),
    removed: [...before.keys()].filter((path) => !after.has(path)),
  }
}
