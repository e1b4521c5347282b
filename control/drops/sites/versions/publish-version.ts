/**
 * How a version goes live.
 * Publish = blobs durable → one transaction (version, pointer, retention, caps, route) → published → acknowledged → reply.
 */
import { recordAudit } from '../../../people/audit/audit.ts'
import type { Clock } from '../../../../shared/running/clock.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { requirePreview, suffices, type Actor, type WorkflowRun } from '../../../ground/actor.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { plans } from '../../../ground/terms/plans.ts'
import type { Pool, Sql } from '../../../ground/database/sql.ts'
import { changeRoutes } from '../../../ground/routing/changes.ts'
import { tellWebhooks } from '../../../ground/routing/webhook-outbox.ts'
import type { PreparedVersion, Publishing } from '../../publishing/contract.ts'
import { hasForgotten } from '../../publishing/manifest/kept-files.ts'
import type { EnqueueMail } from '../../../ground/mail/mail.ts'
import {
  joinPreview,
  partPreview,
  placeThreads,
  reopenThreads,
  resolveThreads,
  writePlacements,
  type PlacingVersion,
} from '../../threads/threads.ts'
import { accessModeOf, wantedAccess, type WantedAccess } from '../../viewers/access.ts'
import { requireAccess, sharingBy, takeBackAccess, writeAccess, type GivenAccess } from '../settings/sharing-changes.ts'
import { preparePassword, writePassword, type WantedPassword } from '../settings/protection.ts'
import type { Cards } from '../settings/cards.ts'
import type { SiteKeptFiles } from '../kept/kept-files.ts'
import { dropUnnamed, findPreview, listPreviews } from '../kept/queries.ts'
import * as queries from '../queries.ts'
import type { RefreshRoutes } from '../routing.ts'
import { stateOf, type SiteFacts } from '../rules.ts'
import type { ApiVersion } from '../schemas.ts'
import type { WantedSite } from '../settings/reservation.ts'
import type { Propagated, Sites } from '../sites.ts'
import { requireStorage, type CommitVersion, type PublishOptions } from './commit.ts'
import { requireRetained } from './comparison.ts'
import { showVersion, type AddressConfig } from './show-version.ts'
import type { PropagateOrTakeBack } from './take-back.ts'

interface PublishVersionsDependencies {
  sql: Pool
  clock: Clock
  refreshRoutes: RefreshRoutes
  sites: Pick<Sites, 'add' | 'lockOrganisation' | 'lockOwn' | 'requireOwn'>
  config: AddressConfig & Pick<ControlConfig, 'baseUrl'>
  keptFiles: Pick<SiteKeptFiles, 'replace'>
  publishing: Pick<Publishing, 'readManifest' | 'placeAnchors'>
  cards: Pick<Cards, 'bringUpToDate'>
  enqueueMail: EnqueueMail
  commit: CommitVersion
  propagate: PropagateOrTakeBack
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

export interface PublishVersions {
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
  /** A pointer flip, recorded as a publish: rolling forward again is the same move. */
  promote(actor: Actor, siteId: string, versionId: string): Promise<Propagated<ApiVersion>>
}

export function createPublishVersions(deps: PublishVersionsDependencies): PublishVersions {
  const { sql, clock, sites, cards, commit, propagate } = deps

  /** Creating a site, its password and its first version are one change, so that a refusal leaves nothing behind. */
  async function publishTo(
    actor: Actor,
    { peek, find }: PublishPlace,
    prepared: PreparedVersion,
    options: PublishOptions,
    alongside?: Alongside,
  ): Promise<Propagated<Published>> {
    requirePreview(actor, options.preview)
    requireMayInvite(actor, options)
    const before = await peek()
    if (before) requireMaySay(actor, before, options)
    const password =
      options.password === undefined ? undefined : await wantedPassword(actor, before, options.password, options)
    const placed = await placedIn(deps, before, prepared.manifestHash, options)
    const { value: published, changes } = await changeRoutes(sql, async (tx) => {
      const { site, created } = await find(tx)
      requirePublishable(site, clock.now())
      await alongside?.work(tx)
      requireMaySay(actor, site, options)
      const protection = await protect(tx, actor, site, password, new Date(clock.now()))
      const change = { wanted: accessFor(site, options, clock.now()), hasPassword: password !== undefined }
      const sharing = sharingBy(actor, site, new Date(clock.now()), deps)
      const { fields, guestLink, written } = await writeAccess(tx, site, change, sharing)
      const given = { ...written, columns: { ...written.columns, ...protection } }
      if (fields.length > 0) await recordChange(tx, actor, site, fields, sharing.now)
      const { by, source } = originOf(actor)
      const committed = await commit(tx, site, prepared, by, { ...options, source })
      const { version: made, addedBytes } = committed
      const version = guestLink === undefined ? made : { ...made, guest_link: guestLink }
      if (addedBytes > 0) await requireStorage(tx, { orgId: actor.orgId, plan: site.plan, now: new Date(clock.now()) })
      await recordAudit(tx, {
        at: new Date(clock.now()),
        orgId: actor.orgId,
        actor,
        action: options.preview === undefined ? 'site.published' : 'preview.published',
        subject: site.id,
        detail: {
          version: version.version_number,
          ...(options.preview === undefined ? {} : { name: options.preview }),
        },
      })
      const type = options.preview === undefined ? 'drop.published' : 'preview.published'
      await tellWebhooks(tx, { type, siteId: site.id, versionId: version.version_id, at: new Date(clock.now()) })
      await writePlacements(tx, site.id, placed, version.version_number)
      const resolved = await resolveThreads(tx, options.resolves ?? [], {
        siteId: site.id,
        version: { id: version.version_id, number: version.version_number },
        now: new Date(clock.now()),
      })
      return { siteId: site.id, card: site.card, version, created, before: committed.before, resolved, given }
    })
    const { siteId, card, version, created, resolved, given } = published
    const value = { siteId, version, created }
    const replaced = { siteId, versionId: version.version_id, before: published.before }
    const done = await propagate({ value, changes }, replaced, async (tx) => {
      const now = new Date(clock.now())
      await queries.dropVersion(tx, version.version_id, now)
      await undoAccess(tx, actor, published.before.site, given, now)
      await reopenThreads(tx, siteId, resolved)
      await alongside?.undo(tx)
    })
    await cards.bringUpToDate({ id: siteId, card })
    return done
  }

  return {
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
      publishTo(actor, placeOfSlug(deps, actor, wanted), prepared, options),

    promote: (actor, siteId, versionId) => promoteVersion(deps, actor, siteId, versionId),
  }
}

async function promoteVersion(
  deps: PublishVersionsDependencies,
  actor: Actor,
  siteId: string,
  versionId: string,
): Promise<Propagated<ApiVersion>> {
  const { sql, clock, refreshRoutes, sites, cards, config, keptFiles, propagate } = deps
  const wanted = await requireRetained(sql, siteId, versionId).catch(() => undefined)
  const placed = wanted
    ? await placedIn(deps, await sites.requireOwn(sql, actor, siteId), wanted.manifest_hash, {})
    : []
  const { value: promoted, changes } = await changeRoutes(sql, async (tx) => {
    await queries.lockSite(tx, siteId)
    const site = await sites.requireOwn(tx, actor, siteId)
    requirePublishable(site, clock.now())
    const kept = await requireRetained(tx, siteId, versionId)
    const now = new Date(clock.now())
    const live = (await queries.retainedVersions(tx, siteId)).find(({ id }) => id === site.live_version_id)
    const change = { wanted: accessFor(site, {}, clock.now()), hasPassword: false }
    const { fields, written } = await writeAccess(tx, site, change, sharingBy(actor, site, now, deps))
    if (fields.length > 0) await recordChange(tx, actor, site, fields, now)
    await queries.updateSite(tx, siteId, { live_version_id: kept.id, title: kept.title, published_at: now }, now)
    await queries.recordPublish(tx, {
      site_id: siteId,
      version_id: kept.id,
      kind: 'promote',
      user_id: originOf(actor).by,
      at: now,
    })
    const wasPreview = await queries.markWasLive(tx, kept.id)
    const retention = { keep: plans[site.plan].versionsKept, live: kept.id }
    const dropped = wasPreview ? await queries.dropOldestVersion(tx, siteId, retention, now) : undefined
    await writePlacements(tx, siteId, placed, kept.number)
    const joined: { name: string; threads: readonly string[] }[] = []
    for (const { name, version_id } of await listPreviews(tx, siteId))
      if (version_id === kept.id) joined.push({ name, threads: await joinPreview(tx, siteId, name) })
    const shown = showVersion(config, site, kept)
    const remembered = await queries.withheldOf(tx, kept.id)
    const { contents } = remembered
    const withheld = { paths: [...shown.report.blocked.map(({ path }) => path), ...remembered.paths], contents }
    await keptFiles.replace(tx, { site, version: live }, { purge: hasForgotten(remembered), withheld })
    await refreshRoutes(tx, siteId)
    await recordAudit(tx, {
      at: new Date(clock.now()),
      orgId: actor.orgId,
      actor,
      action: 'site.promoted',
      subject: siteId,
      detail: { version: kept.number },
    })
    await tellWebhooks(tx, { type: 'drop.promoted', siteId, versionId: kept.id, at: now })
    const before = { site, dropped: dropped ? [dropped.id] : [], previews: [] }
    return { version: shown, before, wasPreview, joined, written }
  })
  const { version: value, before, wasPreview, joined, written } = promoted
  const done = await propagate({ value, changes }, { siteId, versionId, before }, async (tx) => {
    await undoAccess(tx, actor, before.site, written, new Date(clock.now()))
    if (wasPreview) await queries.markPreview(tx, versionId)
    // Its name may have been removed, or shows another version, since it was promoted.
    await dropUnnamed(tx, versionId, new Date(clock.now()))
    for (const { name, threads } of joined)
      if (await findPreview(tx, siteId, name)) await partPreview(tx, name, threads)
  })
  await cards.bringUpToDate(before.site)
  return done
}

/** Where the drop's open threads are in what is about to be published, found before anything is locked. */
async function placedIn(
  { sql, publishing }: Pick<PublishVersionsDependencies, 'sql' | 'publishing'>,
  site: SiteFacts | undefined,
  manifestHash: string,
  { preview, spaFallback }: Pick<PublishOptions, 'preview' | 'spaFallback'>,
): ReturnType<typeof placeThreads> {
  if (!site || site.org_id === null) return []
  const version: PlacingVersion = {
    siteId: site.id,
    orgId: site.org_id,
    preview: preview ?? null,
    manifestHash,
    former: async () =>
      new Map((await queries.retainedVersions(sql, site.id)).map((each) => [each.number, each.manifest_hash])),
    isClientRouted: spaFallback ?? site.spa_fallback,
  }
  return placeThreads(sql, publishing, version)
}

/** The organisation's site that has the slug, which takes the name if one is given; else a new one. */
function placeOfSlug(
  { sql, clock, sites }: Pick<PublishVersionsDependencies, 'sql' | 'clock' | 'sites'>,
  actor: Actor,
  wanted: WantedSite,
): PublishPlace {
  return {
    peek: () => findBySlug({ sql, sites }, actor, wanted.slug),
    async find(tx) {
      await sites.lockOrganisation(tx, actor.orgId)
      const present = wanted.slug === undefined ? undefined : await queries.lockOwnSlug(tx, actor.orgId, wanted.slug)
      if (present === undefined) return { site: await sites.add(tx, actor, wanted), created: true }
      const site = await sites.requireOwn(tx, actor, present)
      if (wanted.name !== undefined && wanted.name !== site.name) {
        requireMaySay(actor, site, { name: wanted.name })
        await rename(tx, actor, site, wanted.name, new Date(clock.now()))
      }
      return { site, created: false }
    },
  }
}

/** A person, or the run of a workflow: the owner whom it acts for did nothing. */
function originOf({ userId, via }: Actor): { by: string | null; source: WorkflowRun | undefined } {
  return via.kind === 'publisher' ? { by: null, source: via.run } : { by: userId, source: undefined }
}

/** The organisation's site of that slug, without a lock; undefined when it has none. */
export async function findBySlug(
  { sql, sites }: { sql: Sql; sites: Pick<Sites, 'requireOwn'> },
  actor: Actor,
  slug: string | undefined,
): Promise<SiteFacts | undefined> {
  const id = slug === undefined ? undefined : await queries.findOwnSlug(sql, actor.orgId, slug)
  return id === undefined ? undefined : sites.requireOwn(sql, actor, id)
}

async function wantedPassword(
  actor: Actor,
  site: SiteFacts | undefined,
  password: string,
  { access = {} }: PublishOptions,
): Promise<WantedPassword> {
  if (site) requireAccess(site, { wanted: { mode: access.access_mode }, hasPassword: true })
  return preparePassword(site?.plan ?? actor.plan, site, password)
}

/** What a publish says of the drop itself, beside its content. */
type SaidOfDrop = Pick<PublishOptions, 'password' | 'access' | 'resolves'> & { readonly name?: string | undefined }

/**
 * The name of a drop, its password and who may see it are part of its first publish. Afterwards they are management, by
 * whichever way a publish says them: a credential that is good for publishing alone leaves them as they are. One for a
 * preview says nothing of the drop at all, nor of what people said about it.
 */
function requireMaySay(
  actor: Actor,
  site: SiteFacts,
  { name, password, access = {}, resolves = [] }: SaidOfDrop,
): void {
  const says = [name, password, ...Object.values(access)].some((value) => value !== undefined)
  const isOfPreview = actor.reach.preview !== undefined
  if (isOfPreview && (says || resolves.length > 0)) throw errors.insufficientScope('manage', actor.reach.scope)
  if (says && site.next_version_number > 1 && !suffices(actor, 'manage'))
    throw errors.insufficientScope('manage', actor.reach.scope)
}

/** Mails to others, and links for them, carry a name that was proved: whoever shares a drop has verified their address. */
function requireMayInvite(
  { emailVerified }: Actor,
  { access: { viewers = [], guest_link, invite } = {} }: PublishOptions,
): void {
  if (!emailVerified && (viewers.length > 0 || guest_link === true || invite === true)) throw errors.emailNotVerified()
}

/**
 * accessFor says who may see what goes live. Where no drop may be public, one of which nothing was live when that was
 * decided is not opened either: it was reserved, or had only previews.
 */
function accessFor(
  site: SiteFacts,
  { access: input = {}, password }: Pick<PublishOptions, 'access' | 'password'>,
  now: number,
): WantedAccess {
  const access = wantedAccess(input, now) ?? {}
  const isFirst = site.published_at === null
  const isSilent = access.mode === undefined && password === undefined && accessModeOf(site) !== 'viewers'
  return isFirst && isSilent && site.visibility_policy === 'no_public' ? { ...access, mode: 'viewers' } : access
}

async function undoAccess(tx: Sql, actor: Actor, before: SiteFacts, given: GivenAccess, now: Date): Promise<void> {
  const fields = await takeBackAccess(tx, before, given, now)
  if (fields.length > 0) await recordChange(tx, actor, before, fields, now)
}

/** Resolves to what was written: nothing where the password is the one that it was. */
async function protect(
  tx: Sql,
  actor: Actor,
  site: SiteFacts,
  password: WantedPassword | undefined,
  now: Date,
): Promise<{ password_hash?: string }> {
  if (password === undefined || !(await writePassword(tx, site, password, now))) return {}
  await recordChange(tx, actor, site, ['password'], now)
  return { password_hash: password.hash }
}

async function rename(tx: Sql, actor: Actor, site: SiteFacts, name: string, now: Date): Promise<void> {
  await queries.updateSite(tx, site.id, { name }, now)
  await recordChange(tx, actor, site, ['name'], now)
}

function recordChange(tx: Sql, actor: Actor, site: SiteFacts, fields: readonly string[], at: Date): Promise<void> {
  const { orgId } = actor
  return recordAudit(tx, { at, orgId, actor, action: 'site.updated', subject: site.id, detail: { fields } })
}

/**
 * Checked before a body is read, and again in the transaction. A drop whose time for visitors is over takes new versions:
 * the owner may extend it with one of them.
 */
export function requirePublishable(site: SiteFacts, now: number): void {
  const state = stateOf({ ...site, access_until: null }, now)
  if (state === 'removed')
    throw errors.forbidden('This drop was removed by trust and safety. Nothing can be published to it.')
  if (state === 'expired')
    throw errors.conflict('expired', 'This drop has expired. Sign in to the dashboard to bring it back, then publish.')
  if (state === 'paused')
    throw errors.conflict(
      'paused',
      'This drop is paused because the plan allows fewer drops. Choose it instead of another one, delete another one, or have a larger plan.',
    )
}
