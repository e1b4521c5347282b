/**
 * The threads of a drop inside the transaction of another change: what a publish resolves and where it leaves the others,
 * what goes with a drop, a link or a person. The caller has locked the drop.
 */
import { errors } from '../../../shared/contracts/errors.ts'
import type { Manifest } from '../../../shared/contracts/manifest.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { eraseMailsAbout } from '../../ground/mail/mail.ts'
import { tellWebhooks } from '../../ground/routing/webhook-outbox.ts'
import type { PlaceRequest } from '../publishing/comparison/place-threads.ts'
import type { Publishing } from '../publishing/contract.ts'
import * as queries from './queries.ts'
import type { NewPlacement, ThreadRow } from './queries.ts'
import { MAX_THREADS_AT_ONCE, type AuthorKind } from './rules.ts'
import { showThreads, type ApiThread } from './schemas.ts'

/** What a publish says of threads. */
export interface Resolution {
  readonly siteId: string
  readonly version: { readonly id: string; readonly number: number }
  readonly now: Date
}

/** Resolves all of them or throws; resolves to those that were open, for the case that the publish is taken back. */
export async function resolveThreads(
  tx: Sql,
  ids: readonly string[],
  { siteId, version, now }: Resolution,
): Promise<string[]> {
  const wanted = [...new Set(ids)]
  if (wanted.length === 0) return []
  if (wanted.length > MAX_THREADS_AT_ONCE)
    throw errors.invalidRequest(`resolves: name at most ${MAX_THREADS_AT_ONCE} threads at once.`)
  const found = await queries.lockThreads(tx, siteId, wanted)
  const unknown = wanted.find((id) => !found.some((thread) => thread.id === id))
  if (unknown !== undefined)
    throw errors.invalidRequest(`resolves: this drop has no thread "${unknown.slice(0, 60)}". Nothing was published.`)
  const open = found.filter(({ state }) => state === 'open').map(({ id }) => id)
  await queries.setResolved(tx, open, { now, version: version.number })
  for (const threadId of open)
    await tellWebhooks(tx, { type: 'thread.resolved', siteId, versionId: version.id, threadId, at: now })
  await queries.noteChange(tx, siteId)
  return open
}

export async function reopenThreads(tx: Sql, siteId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await queries.setOpen(tx, ids)
  await queries.noteChange(tx, siteId)
}

/** A version that threads are placed in, beside those that they were placed in before. */
export interface PlacingVersion {
  readonly siteId: string
  readonly orgId: string
  readonly preview: string | null
  readonly manifestHash: string
  /** Manifests of versions that are kept, by number. */
  former(): Promise<ReadonlyMap<number, string>>
  readonly isClientRouted: boolean
}

/**
 * placeThreads finds the open threads of a drop in a version that is about to be published, in a thread of its own and
 * within a budget. Where it takes too long, threads stay where they were.
 */
export async function placeThreads(
  sql: Sql,
  publishing: Pick<Publishing, 'readManifest' | 'placeAnchors'>,
  version: PlacingVersion,
): Promise<NewPlacement[]> {
  const threads = await queries.listAnchored(sql, version.siteId, version.preview)
  if (threads.length === 0) return []
  const manifest = await publishing.readManifest(version.manifestHash)
  const kept = await version.former()
  const requests: PlaceRequest[] = []
  for (const thread of threads) {
    const formerHash = kept.get(thread.placed_version)
    const former =
      formerHash === undefined ? undefined : await publishing.readManifest(formerHash).catch(() => undefined)
    requests.push({
      id: thread.id,
      anchor: thread.anchor,
      found: thread.found,
      before: former && fileOf(former, thread, version),
      after: fileOf(manifest, thread, version),
    })
  }
  const placed = await publishing.placeAnchors(version.orgId, requests)
  return placed.map(({ id, placement, found }) => ({ id, placement, found }))
}

function fileOf(
  manifest: Manifest,
  { page }: ThreadRow,
  { isClientRouted }: Pick<PlacingVersion, 'isClientRouted'>,
): PlaceRequest['after'] {
  return pageFileOf(manifest, page, isClientRouted)
}

/** pageFileOf is the file that a visitor sees at a path, rules of `_redirects` aside. */
export function pageFileOf(manifest: Manifest, page: string, isClientRouted: boolean): PlaceRequest['after'] {
  const name = safelyDecoded(page).slice(1)
  const candidates =
    name === '' || name.endsWith('/')
      ? [`${name}index.html`, `${name}index.htm`]
      : [name, `${name}.html`, `${name}/index.html`, `${name}/index.htm`]
  if (isClientRouted) candidates.push('index.html')
  for (const candidate of candidates) {
    const found = manifest.files.find(([path]) => path === candidate)
    if (!found) continue
    const [path, { hash, size, source }] = found
    return { path, hash, size, source }
  }
  return undefined
}

function safelyDecoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** Writes what `placeThreads` found, for a version that has its number now. */
export async function writePlacements(
  tx: Sql,
  siteId: string,
  placed: readonly NewPlacement[],
  versionNumber: number,
): Promise<void> {
  if (placed.length === 0) return
  await queries.setPlacements(
    tx,
    placed.map((each) => (each.placement === 'gone' ? each : { ...each, version: versionNumber })),
  )
  await queries.noteChange(tx, siteId)
}

/** A preview is live now, or no more: its threads, which it resolves to, are about the drop. */
export const joinPreview = queries.forgetPreview

/** That was taken back: these threads are about the preview again. */
export const partPreview = queries.rememberPreview

/** A drop is deleted: what was said about it goes, and the mails that quote it. */
export async function eraseThreads(tx: Sql, siteId: string): Promise<void> {
  await queries.eraseThreadsOfSite(tx, siteId)
  await eraseMailsAbout(tx, threadMailKeyOf(siteId))
}

/** What a viewer, everyone of a link, or a person wrote, wherever that was. */
export async function eraseContributions(tx: Sql, kind: AuthorKind, authorId: string): Promise<void> {
  for (const siteId of await queries.eraseAuthor(tx, kind, authorId)) {
    await queries.deleteEmptyThreads(tx, siteId)
    await queries.noteChange(tx, siteId)
  }
}

/** The page where a drop is looked at and talked about. */
export function reviewUrlOf(baseUrl: string, slug: string): string {
  return `${baseUrl}/review/${slug}`
}

/** Mails about what was said of a drop have keys that begin so. */
export function threadMailKeyOf(siteId: string): string {
  return `threads:${siteId}:`
}

/** Everything that was said about a drop, for its export. */
export async function exportThreads(sql: Sql, siteId: string, reviewUrl: string): Promise<ApiThread[]> {
  const threads = await queries.listThreads(sql, siteId, { state: 'all' })
  return showThreads(
    threads,
    await queries.listMessages(
      sql,
      threads.map(({ id }) => id),
    ),
    reviewUrl,
  )
}
