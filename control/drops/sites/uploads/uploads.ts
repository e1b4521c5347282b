/**
 * Changed files only: the caller lists what the site should hold, sends the blobs that are missing
 * (in parallel, resumable), then finishes; the publish itself is the ordinary one.
 *
 * A blob counts as present only when a drop that the caller's credential reaches already stores it or is sent it by an
 * upload that is under way: knowing a hash must not give away the bytes, and what has arrived is not sent again.
 * Uploads under way count against the plan, in number and in bytes (under-way.ts).
 */
import { readdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import type { Clock } from '../../../../shared/running/clock.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { newId } from '../../../../shared/contracts/ids.ts'
import { MAX_BATCHED_FILE_BYTES } from '../../../../shared/contracts/limits.ts'
import { plans, type PlanName } from '../../../ground/terms/plans.ts'
import { uploadKindOf } from '../../../../shared/content/upload-kind.ts'
import type { BlobStore } from '../../../../shared/blobs/blob-store.ts'
import { requirePreview, type Actor } from '../../../ground/actor.ts'
import { transaction, type Pool } from '../../../ground/database/sql.ts'
import type { Publishing } from '../../publishing/contract.ts'
import { createBoundedWork } from '../../../../shared/running/turns.ts'
import { markdownLanding, requireLandingPage } from '../../publishing/intake/bundle.ts'
import { receiveContent } from '../../publishing/intake/take-in.ts'
import { findOwnSlug, lockOrganisation, ownBlobs } from '../queries.ts'
import { requireRoomForName } from '../kept/naming.ts'
import type { Previews } from '../kept/previews.ts'
import { createArrivals } from './arrivals.ts'
import { append, arrivedBytes, blobHash, readUpTo, storeVerified } from './partial-files.ts'
import { createBegunUploads, type BegunUploads } from './begun-uploads.ts'
import {
  changesOf,
  replacedBy,
  requireConsistent,
  servedOf,
  stayingOf,
  versionBytes,
  type ListChanges,
  type Uploaded,
} from './listed.ts'
import { requireFewUnderWay, UPLOAD_LIFETIME_MS } from './under-way.ts'
import { requireAccess } from '../settings/sharing-changes.ts'
import { wantedAccess, type AccessInput } from '../../viewers/access.ts'
import type { SiteFacts } from '../rules.ts'
import type {
  Changes,
  CheckUpload,
  Purge,
  StartedUpload,
  StartUpload,
  UploadCheck,
  UploadProgress,
  ApiVersion,
} from '../schemas.ts'
import type { Propagated, Sites } from '../sites.ts'
import { uploadedFiles } from '../versions/uploaded-files.ts'
import * as queries from './queries.ts'
import type { Versions } from '../versions/versions.ts'

/** Lists with nothing to send, as a deploy leaves them that found nothing to do. Beyond it the oldest is given up. */
const MAX_IDLE_UPLOADS = 20
/** Most files of a site: they come in one piece, and go to the store without a partial file. */
const MAX_WHOLE_BYTES = MAX_BATCHED_FILE_BYTES
/** Each waits for the disk twice. */
const PARALLEL_WRITES = 16
const NOTHING_LIVE = { hash: undefined, live: uploadedFiles(undefined) }

interface UploadsDependencies {
  sql: Pool
  clock: Clock
  sites: Pick<Sites, 'requireOwn' | 'add'>
  versions: Pick<Versions, 'publish' | 'requirePublishable' | 'requireRoom' | 'liveManifestHash'>
  publishing: Pick<Publishing, 'receive' | 'checkPaths' | 'hasChecked' | 'readManifest'>
  previews: Pick<Previews, 'named'>
  blobs: BlobStore
  /** Where partial blobs wait; one folder per upload. */
  partialsDir: string
}

/** Which upload a request is about. */
export interface UploadPlace {
  readonly siteId: string
  readonly uploadId: string
}

export interface WelcomeQuestion {
  /** Undefined for a new drop. */
  readonly siteId?: string | undefined
  readonly slug?: string | undefined
  readonly byteSize: number
}

/** Hands over the files of a request, one by one. */
type EachFile = (take: (hash: string, body: Readable) => Promise<void>) => Promise<void>

export interface Uploads {
  /** Opens an upload of the listed files; `missing` are those that are not stored yet. */
  start(actor: Actor, siteId: string, wanted: StartUpload): Promise<StartedUpload>
  /** Refuses what `start`, `finish` and making the drop would refuse, with the same words. */
  check(actor: Actor, wanted: CheckUpload): Promise<UploadCheck>
  /** Refuses what a publish of so many bytes, to a drop or to a new one, would be refused for, before anything is sent. */
  requireWelcome(actor: Actor, wanted: WelcomeQuestion): Promise<void>
  /** What is missing, all at once: a caller that was interrupted goes on from here. */
  progress(actor: Actor, place: UploadPlace): Promise<UploadProgress>
  /** How many bytes of a blob have arrived, so that a broken connection resumes there. */
  offset(actor: Actor, place: UploadPlace, hash: string): Promise<number>
  /** Handles a request that brings a file, or several: what is asked about them meanwhile waits for it. */
  bringing<Result>(uploadId: string, hash: string | undefined, handle: () => Promise<Result>): Promise<Result>
  /** One file, or the rest of it from `offset` on. */
  receive(actor: Actor, place: UploadPlace, file: { hash: string; offset: number; body: Readable }): Promise<void>
  /**
   * Several whole files of one request, which `each` hands over one by one. What arrived before a connection broke
   * is kept. A file that is there already is passed over, so that a caller may simply send a batch again.
   */
  receiveSeveral(actor: Actor, place: UploadPlace, each: EachFile): Promise<string[]>
  /** Publishes what was sent, once, however often it is asked for. */
  finish(actor: Actor, place: UploadPlace): Promise<Propagated<ApiVersion>>
  /** Forgets uploads whose time is over, and partial files of every upload that is forgotten, here or elsewhere. */
  sweep(): Promise<number>
}

export function createUploads(deps: UploadsDependencies): Uploads {
  const { sql, clock, partialsDir } = deps
  const begun = createBegunUploads()
  return {
    ...createUploadStart({ ...deps, begun }),
    ...createUploadArrival(deps),
    ...createUploadFinish({ ...deps, begun }),

    async sweep() {
      const expired = await queries.deleteExpiredUploads(sql, new Date(clock.now()))
      const folders = await readdir(partialsDir).catch(() => [])
      const known = await queries.knownUploads(sql, folders)
      for (const id of folders) {
        if (!known.has(id)) await rm(path.join(partialsDir, id), { recursive: true, force: true })
      }
      return expired
    },
  }
}

/** Before any bytes: what would be refused, and what is missing. */
function createUploadStart({
  sql,
  clock,
  sites,
  versions,
  publishing,
  previews,
  begun,
}: UploadsDependencies & { begun: BegunUploads }): Pick<Uploads, 'start' | 'check' | 'requireWelcome'> {
  /** The drop that is named; undefined when it would be made. */
  async function findOrTry(actor: Actor, { site_id, slug }: CheckUpload): Promise<SiteFacts | undefined> {
    if (site_id !== undefined) return sites.requireOwn(sql, actor, site_id)
    const own = slug === undefined ? undefined : await findOwnSlug(sql, actor.orgId, slug)
    if (own !== undefined) return sites.requireOwn(sql, actor, own)
    await tryNew({ sql, sites }, actor, slug)
    return undefined
  }

  async function liveFiles(site: SiteFacts): Promise<{ hash: string | undefined; live: Uploaded }> {
    const hash = await versions.liveManifestHash(site)
    return { hash, live: uploadedFiles(hash === undefined ? undefined : await publishing.readManifest(hash)) }
  }

  /** Undefined when there is no such preview. */
  async function shownAt(siteId: string, preview: string): Promise<Uploaded | undefined> {
    const named = await previews.named(siteId, preview)
    return named && uploadedFiles(await publishing.readManifest(named.manifest_hash))
  }

  return {
    async start(actor, siteId, wanted) {
      const site = await sites.requireOwn(sql, actor, siteId)
      versions.requirePublishable(site)
      requirePreview(actor, wanted.preview)
      const { hash: base, live } = await liveFiles(site)
      const changes = changesOf(live, wanted.files)
      requireUploadable(publishing, wanted.files, site.plan, { base, live, changes })
      const access = wantedAccess(wanted, clock.now()) ?? {}
      requireAccess(site, { wanted: access, hasPassword: false })
      const { preview, purge } = wanted
      if (preview !== undefined) await requireRoomForName(sql, site, preview)
      const shown = preview === undefined ? undefined : await shownAt(siteId, preview)
      const unchanged = preview === undefined ? isLive(live, changes) : !!shown && isSameContent(shown, wanted.files)
      const unpublished = await unpublishedOf(sql, actor, changes.changed, live)
      const id = newId('upl', clock.now())
      const now = new Date(clock.now())
      const expiresAt = new Date(clock.now() + UPLOAD_LIFETIME_MS)
      const missing = await transaction(sql, async (tx) => {
        await lockOrganisation(tx, actor.orgId)
        const pieces = [...unpublished.keys()]
        if (pieces.length > 0) await requireFewUnderWay(tx, actor.orgId, now)
        const room = {
          orgId: actor.orgId,
          site,
          plan: site.plan,
          byteSize: versionBytes(wanted.files, changes.changed),
          pieces,
        }
        if (!unchanged) await versions.requireRoom(tx, { ...room, purge: purgeOf(purge) ?? undefined, preview })
        const sent = await queries.sentBlobs(tx, actor, pieces, now)
        await queries.dropIdleUploads(tx, actor.orgId, MAX_IDLE_UPLOADS - 1)
        await queries.insertUpload(
          tx,
          rowOf(wanted, { id, site_id: siteId, user_id: actor.userId, expires_at: expiresAt }),
          wanted.files.map((file) => ({ path: file.path, hash: file.sha256, size: file.size })),
          [...unpublished].map(([hash, size]) => ({ hash, size, stored: sent.has(hash) })),
        )
        return pieces.filter((hash) => !sent.has(hash))
      })
      if (base !== undefined) begun.keep(id, { base, changes })
      return { upload_id: id, missing, unchanged, expires_at: expiresAt.toISOString() }
    },

    async check(actor, wanted) {
      const site = await findOrTry(actor, wanted)
      const plan = site?.plan ?? actor.plan
      if (site) versions.requirePublishable(site)
      const { hash: base, live } = site ? await liveFiles(site) : NOTHING_LIVE
      const changes = changesOf(live, wanted.files)
      requireUploadable(publishing, wanted.files, plan, { base, live, changes })
      const files = wanted.files.map((file) => ({ path: file.path, hash: file.sha256, size: file.size }))
      if (wanted.alone) requireAlone(wanted.files)
      else if (!markdownLanding(files)) requireLandingPage(files)
      const { preview, purge } = wanted
      requirePreview(actor, preview)
      if (preview !== undefined) await requireRoomForName(sql, { id: site?.id, plan }, preview)
      const atPreview = site && preview !== undefined ? await shownAt(site.id, preview) : undefined
      // A preview that the publish would make is looked at beside what is live.
      const shown = atPreview ?? live
      const isNewPreview = preview !== undefined && atPreview === undefined
      const missing = await unpublishedOf(sql, actor, changes.changed, live)
      const pieces = [...missing.keys()]
      for (const hash of await queries.sentBlobs(sql, actor, pieces, new Date(clock.now()))) missing.delete(hash)
      const unchanged = !isNewPreview && isSameContent(shown, wanted.files)
      const room = { orgId: actor.orgId, site, plan, byteSize: versionBytes(wanted.files, changes.changed), pieces }
      if (!unchanged) await versions.requireRoom(sql, { ...room, purge: purgeOf(purge) ?? undefined, preview })
      return {
        site: site ? { id: site.id, slug: site.slug } : null,
        ...compareUploaded(shown, wanted.files),
        unchanged,
        compared_with: atPreview ? 'preview' : site?.live_version_id == null ? null : 'live',
        missing: { file_count: missing.size, byte_size: bytesOf(missing) },
      }
    },

    async requireWelcome(actor, { siteId, slug, byteSize }) {
      const site = siteId === undefined ? undefined : await sites.requireOwn(sql, actor, siteId)
      if (site) versions.requirePublishable(site)
      else await tryNew({ sql, sites }, actor, slug)
      const plan = site?.plan ?? actor.plan
      if (byteSize > plans[plan].uploadBytes) throw errors.uploadTooLarge(plans[plan].uploadBytes)
      await versions.requireRoom(sql, { orgId: actor.orgId, site, plan, byteSize })
    },
  }
}

/** What visitors see, and what a list changes of it. */
interface Compared {
  /** Hash of its manifest; undefined when nothing is published. */
  readonly base: string | undefined
  readonly live: Uploaded
  readonly changes: ListChanges
}

function requireUploadable(
  publishing: Pick<Publishing, 'checkPaths' | 'hasChecked'>,
  files: StartUpload['files'],
  plan: PlanName,
  compared: Compared,
): void {
  const { uploadBytes: capBytes, filesPerVersion } = plans[plan]
  if (files.length > filesPerVersion) throw errors.tooManyFiles(filesPerVersion)
  if (files.reduce((sum, file) => sum + file.size, 0) > capBytes) throw errors.uploadTooLarge(capBytes)
  requirePaths(publishing, files, compared)
  requireConsistent(compared.live, files, compared.changes.changed)
}

/** Names that a version has may stand beside each other: only where there are others all of them are looked at. */
function requirePaths(
  publishing: Pick<Publishing, 'checkPaths' | 'hasChecked'>,
  files: readonly { readonly path: string }[],
  { base, changes }: Compared,
): void {
  const isChecked = base !== undefined && !changes.hasOtherNames && publishing.hasChecked(base)
  if (!isChecked) publishing.checkPaths(files.map((file) => file.path))
}

/** A drop that would be made is made and given up at once, so that every refusal is the real one. */
async function tryNew(
  { sql, sites }: Pick<UploadsDependencies, 'sql' | 'sites'>,
  actor: Actor,
  slug: string | undefined,
): Promise<void> {
  const given = new Error('given up on purpose')
  const refusal = await transaction(sql, async (tx) => {
    await sites.add(tx, actor, { slug })
    throw given
  }).catch((error: unknown) => error)
  if (refusal !== given) throw refusal
}

/** While bytes arrive. */
function createUploadArrival(
  deps: UploadsDependencies,
): Pick<Uploads, 'progress' | 'offset' | 'bringing' | 'receive' | 'receiveSeveral'> {
  const { sql, blobs, partialsDir } = deps
  const arrivals = createArrivals()
  const partialPath = (uploadId: string, hash: string): string => path.join(partialsDir, uploadId, hash)

  async function requireExpected(uploadId: string, hash: string): Promise<queries.UploadBlob> {
    const blob = await queries.findUploadBlob(sql, uploadId, hash)
    if (!blob) throw errors.notFound('file in this upload')
    return blob
  }

  async function receiveWhole(uploadId: string, file: queries.UploadBlob, body: Readable): Promise<void> {
    const { bytes, failure } = await readUpTo(file.size, body)
    if (!failure && blobHash(bytes) === file.hash) return void (await blobs.put(bytes))
    // What arrived before a connection broke is kept for the next attempt, as it is for a large file.
    const kept = receiveRest(uploadId, file, 0, Readable.from(bytes.length > 0 ? [bytes] : []))
    if (!failure) return kept
    await kept.catch(() => {})
    throw failure
  }

  async function receiveRest(
    uploadId: string,
    { hash, size }: queries.UploadBlob,
    offset: number,
    body: Readable,
  ): Promise<void> {
    const partial = partialPath(uploadId, hash)
    const arrived = await append(partial, offset, size, body)
    if (arrived < size)
      throw errors.invalidRequest(
        `The file is ${size} bytes; ${arrived} have arrived. Send the rest with upload-offset: ${arrived}.`,
      )
    await storeVerified(blobs, partial, hash)
  }

  async function receiveSeveral(uploadId: string, each: EachFile): Promise<string[]> {
    const expected = await queries.listUploadBlobs(sql, uploadId)
    const stored = new Set<string>()
    const storing = createBoundedWork(PARALLEL_WRITES)
    const take = async (hash: string, body: Readable): Promise<void> => {
      const file = expected.get(hash)
      if (!file) throw errors.notFound('file in this upload')
      if (file.stored || stored.has(hash)) return
      if (file.size > MAX_WHOLE_BYTES)
        throw errors.invalidRequest(`Send files of more than ${MAX_WHOLE_BYTES / 1000} kB one by one.`)
      const { bytes, failure } = await readUpTo(file.size, body)
      if (failure) throw failure
      if (blobHash(bytes) !== hash) throw errors.invalidRequest(`The bytes of ${hash} do not match their sha256.`)
      await storing.begin(async () => {
        await blobs.put(bytes)
        stored.add(hash)
      })
    }
    try {
      await each(take)
      await storing.end()
    } finally {
      await storing.end().catch(() => {})
      if (stored.size > 0) await queries.markStored(sql, uploadId, [...stored])
    }
    return [...stored]
  }

  return {
    async progress(actor, place) {
      const { uploadId } = place
      const { upload } = await requireUpload(deps, actor, place)
      await arrivals.settled(uploadId)
      const missing = await queries.listMissing(sql, uploadId)
      const begun = await readdir(path.join(partialsDir, uploadId)).catch(() => [])
      const arrived: Record<string, number> = {}
      for (const hash of begun) if (missing.has(hash)) arrived[hash] = await arrivedBytes(partialPath(uploadId, hash))
      return { upload_id: uploadId, missing: [...missing], arrived, expires_at: upload.expires_at.toISOString() }
    },

    async offset(actor, place, hash) {
      await requireUpload(deps, actor, place)
      const partial = partialPath(place.uploadId, hash)
      await arrivals.settled(partial)
      const file = await requireExpected(place.uploadId, hash)
      return file.stored ? file.size : arrivedBytes(partial)
    },

    bringing: (uploadId, hash, handle) =>
      arrivals.announced(hash === undefined ? uploadId : partialPath(uploadId, hash), handle),

    async receive(actor, place, { hash, offset, body }) {
      const { uploadId } = place
      await requireUpload(deps, actor, place)
      await arrivals.file(partialPath(uploadId, hash), body, async () => {
        const file = await requireExpected(uploadId, hash)
        if (file.stored) return
        if (offset === 0 && file.size <= MAX_WHOLE_BYTES) await receiveWhole(uploadId, file, body)
        else await receiveRest(uploadId, file, offset, body)
        await queries.markStored(sql, uploadId, [hash])
      })
    },

    async receiveSeveral(actor, place, each) {
      await requireUpload(deps, actor, place)
      return arrivals.batch(place.uploadId, () => receiveSeveral(place.uploadId, each))
    },
  }
}

function rowOf(
  wanted: StartUpload,
  own: Pick<queries.UploadRow, 'id' | 'site_id' | 'user_id' | 'expires_at'>,
): queries.UploadRow {
  return {
    ...own,
    message: wanted.message ?? '',
    if_version: wanted.if_version ?? null,
    spa_fallback: wanted.spa_fallback ?? null,
    allow_secrets: wanted.allow_secrets ?? false,
    purge: purgeOf(wanted.purge),
    preview: wanted.preview ?? null,
    resolves: wanted.resolves ?? null,
    access: accessOfUpload(wanted),
  }
}

/** Null when it says nothing about who may see the drop. */
function accessOfUpload(wanted: StartUpload): AccessInput | null {
  const { access_mode, viewers, guest_link, invite, access_until, expires_in } = wanted
  const given = { access_mode, viewers, guest_link, invite, access_until, expires_in }
  return Object.values(given).every((value) => value === undefined) ? null : given
}

/** Once everything has arrived. */
function createUploadFinish(deps: UploadsDependencies & { begun: BegunUploads }): Pick<Uploads, 'finish'> {
  const { sql, versions, publishing, partialsDir, begun } = deps

  /** What an upload changes of the live version: as it was found when it began, or from its row. */
  async function changesOfUpload(uploadId: string, base: string | undefined): Promise<Listed> {
    const live = uploadedFiles(base === undefined ? undefined : await publishing.readManifest(base))
    const kept = begun.get(uploadId)
    if (kept && kept.base === base) return { live, changes: kept.changes, files: () => wholeList(live, kept.changes) }
    const files = await queries.listUploadFiles(sql, uploadId)
    if (!files) throw errors.notFound('upload')
    const changes = changesOf(
      live,
      files.map(({ path: name, hash, size }) => ({ path: name, sha256: hash, size })),
    )
    requirePaths(publishing, files, { base, live, changes })
    return { live, changes, files: () => files }
  }

  return {
    async finish(actor, place) {
      const { siteId, uploadId } = place
      const { site, upload } = await requireUpload(deps, actor, place)
      const base = await versions.liveManifestHash(site)
      const { live, changes, files } = await changesOfUpload(uploadId, base)
      const missing = await queries.listMissing(sql, uploadId)
      if (missing.size > 0) {
        const first = files().find((file) => missing.has(file.hash))
        throw errors.invalidRequest(`${missing.size} files have not arrived yet, the first is "${first?.path}".`)
      }
      const pieces = [...(await queries.listUploadBlobs(sql, uploadId)).values()]
      const limits = {
        owner: { kind: 'organisation', id: actor.orgId },
        capBytes: plans[site.plan].uploadBytes,
        maxFiles: plans[site.plan].filesPerVersion,
        base,
      } as const
      try {
        const prepared = await receiveContent(publishing, limits, async (intake) => {
          const changed = changes.changed.map(({ path: name, sha256, size }) => ({ path: name, hash: sha256, size }))
          const without = replacedBy(live, changes)
          await intake.addChanges({ files: changed, without, staying: stayingOf(live, without) })
          return { secrets: upload.allow_secrets ? 'allow' : 'withhold' }
        })
        const options = {
          message: upload.message,
          ...(upload.access === null ? {} : { access: upload.access }),
          ...(upload.if_version === null ? {} : { ifVersion: upload.if_version }),
          ...(upload.spa_fallback === null ? {} : { spaFallback: upload.spa_fallback }),
          purge: upload.purge ?? undefined,
          preview: upload.preview ?? undefined,
          resolves: upload.resolves ?? undefined,
        }
        // One transaction: an upload is published once, even if asked for twice and whenever control is killed.
        return await versions.publish(actor, siteId, prepared, options, {
          async work(tx) {
            if (!(await queries.deleteUpload(tx, uploadId))) throw errors.notFound('upload')
          },
          // Everything has arrived: a client that tries again need not send it again.
          undo: (tx) => queries.insertUpload(tx, upload, files(), pieces),
        })
      } finally {
        begun.forget(uploadId)
        await rm(path.join(partialsDir, uploadId), { recursive: true, force: true })
      }
    },
  }
}

/** An upload as `finish` sees it. */
interface Listed {
  readonly live: Uploaded
  readonly changes: ListChanges
  /** All of them. */
  files(): readonly queries.UploadFile[]
}

function wholeList(live: Uploaded, changes: ListChanges): queries.UploadFile[] {
  const without = replacedBy(live, changes)
  const staying = Array.from(live).flatMap(([name, { hash, size }]) =>
    without.has(name) ? [] : [{ path: name, hash, size }],
  )
  return [...changes.changed.map(({ path: name, sha256, size }) => ({ path: name, hash: sha256, size })), ...staying]
}

function purgeOf(wanted: StartUpload['purge']): Purge | null {
  if (wanted === 'all') return 'all'
  return wanted ? 'older' : null
}

async function requireUpload(
  { sql, clock, sites }: Pick<UploadsDependencies, 'sql' | 'clock' | 'sites'>,
  actor: Actor,
  { siteId, uploadId }: UploadPlace,
): Promise<{ site: SiteFacts; upload: queries.UploadRow }> {
  const site = await sites.requireOwn(sql, actor, siteId)
  const upload = await queries.findOpenUpload(sql, siteId, uploadId, new Date(clock.now()))
  if (!upload) throw errors.notFound('upload')
  return { site, upload }
}

/**
 * Hashes that no kept version of the drops that the credential reaches names yet, with sizes. The live one names nearly
 * all that they do. What no visitor can ask for is in no version: it is not sent, and so not stored either.
 */
async function unpublishedOf(
  sql: Pool,
  actor: Actor,
  changed: ListChanges['changed'],
  live: Uploaded,
): Promise<Map<string, number>> {
  const unsure = new Map(servedOf(changed).map((file) => [file.sha256, file.size]))
  if (unsure.size > 0) for (const { hash } of live.values()) unsure.delete(hash)
  if (unsure.size > 0) for (const hash of await ownBlobs(sql, actor, [...unsure.keys()])) unsure.delete(hash)
  return unsure
}

function bytesOf(sizes: ReadonlyMap<string, number>): number {
  return sizes.values().reduce((sum, size) => sum + size, 0)
}

/** One page or document by itself. */
function requireAlone(files: StartUpload['files']): void {
  const { kind } = uploadKindOf(files, {
    capBytes: Number.POSITIVE_INFINITY,
    maxFiles: Number.POSITIVE_INFINITY,
    takes: 'anything',
  })
  if (kind === 'site' || kind === 'archive')
    throw errors.invalidRequest('Only one page or document is published alone.')
}

function compareUploaded(live: Uploaded, announced: StartUpload['files']): Changes {
  const files = servedOf(announced)
  const paths = new Set(files.map((file) => file.path))
  return {
    added: files.filter((file) => !live.has(file.path)).map((file) => file.path),
    changed: files
      .filter((file) => (live.get(file.path)?.hash ?? file.sha256) !== file.sha256)
      .map((file) => file.path),
    removed: [...live.keys()].filter((path) => !paths.has(path)),
  }
}

/** Whether a list has what is live, and nothing else that would be served. */
function isLive(live: Uploaded, { changed, removed }: ListChanges): boolean {
  return removed.length === 0 && servedOf(changed).every(({ path: name, sha256 }) => live.get(name)?.hash === sha256)
}

function isSameContent(live: Uploaded, announced: StartUpload['files']): boolean {
  const files = servedOf(announced)
  return live.size === files.length && files.every((file) => live.get(file.path)?.hash === file.sha256)
}
