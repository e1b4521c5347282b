/**
 * Content in hand, one call to a live address: creates the site or updates the one that has the slug, whole or file by
 * file. MCP tools come through here. Nothing is lost by surprise: files that would disappear are named before, and
 * what was decided by looking at one version is published over that version alone.
 */
import { Readable } from 'node:stream'
import type { BlobStore } from '../../../../shared/blobs/blob-store.ts'
import { ApiError, errors } from '../../../../shared/contracts/errors.ts'
import type { Manifest } from '../../../../shared/contracts/manifest.ts'
import { plans } from '../../../ground/terms/plans.ts'
import { fileKindOf, LANDING_PAGE, type FileKind } from '../../../../shared/content/upload-kind.ts'
import type { Actor } from '../../../ground/actor.ts'
import type { Intake, PreparedVersion, Publishing } from '../../publishing/contract.ts'
import { receiveContent, type Limits } from '../../publishing/intake/take-in.ts'
import { wantedAccess, type AccessInput } from '../../viewers/access.ts'
import { requirePasswordFeature } from '../settings/protection.ts'
import type { SiteFacts } from '../rules.ts'
import type { ApiSite, ApiVersion, Purge } from '../schemas.ts'
import type { Propagated, Sites } from '../sites.ts'
import { uploadedFiles } from './uploaded-files.ts'
import type { PublishOptions } from './commit.ts'
import type { Versions } from './versions.ts'

/** Another control publishes at the same time: looked at anew this often. Callers of one control take turns. */
const MAX_TRIES = 10

/** Bytes in the message, or in the store already (sent ahead). */
export type QuickBytes = Buffer | { readonly hash: string; readonly size: number }

export interface QuickFile {
  readonly path: string
  readonly bytes: QuickBytes
}

export type QuickContent =
  | { readonly kind: 'text'; readonly format: 'html' | 'markdown'; readonly content: string }
  /** A file in hand that is published by itself. */
  | { readonly kind: 'alone'; readonly name: string; readonly bytes: Buffer }
  | { readonly kind: 'files'; readonly files: readonly QuickFile[] }
  /** A page, a document or a .zip that was sent ahead. */
  | { readonly kind: 'sent'; readonly name: string; readonly hash: string; readonly size: number }

interface QuickOptions {
  /** Number of the version that must be live. */
  readonly ifVersion?: number | undefined
  readonly message?: string | undefined
  /** Everything older goes with it. */
  readonly purge?: Purge | undefined
  /** The name of a preview, instead of going live. */
  readonly preview?: string | undefined
  /** Threads that the version mends. */
  readonly resolves?: readonly string[] | undefined
  /** Publishes files that look like secrets; otherwise they are refused. */
  readonly allowSecrets?: boolean | undefined
  /** Called with the number of files that are stored. */
  readonly progress?: ((done: number) => void) | undefined
}

export interface QuickPublishInput extends QuickOptions {
  readonly content: QuickContent
  readonly slug?: string | undefined
  readonly title?: string | undefined
  readonly password?: string | undefined
  readonly access?: AccessInput | undefined
  /** Files of the live version that are not in the content may go. */
  readonly replace?: boolean | undefined
}

export interface QuickEdit extends QuickOptions {
  readonly put: readonly QuickFile[]
  readonly remove: readonly string[]
}

export interface QuickPublished {
  readonly site: ApiSite
  readonly version: ApiVersion
  readonly created: boolean
}

export interface QuickPublish {
  /** To the organisation's site of that slug, else to a new one. 409 `would_remove_files` names what would go. */
  publish(actor: Actor, input: QuickPublishInput): Promise<Propagated<QuickPublished>>
  /** Changes some files of a site and keeps the others, also those that another edit changes at the same time. */
  edit(actor: Actor, siteId: string, edit: QuickEdit): Promise<Propagated<QuickPublished>>
}

interface QuickPublishDependencies {
  sites: Pick<Sites, 'get' | 'requireOwn'>
  versions: Pick<Versions, 'publishBySlug' | 'publish' | 'findBySlug' | 'liveVersion' | 'requirePublishable'>
  publishing: Pick<Publishing, 'receive' | 'readManifest'>
  blobs: Pick<BlobStore, 'stream'>
  sql: Parameters<Sites['requireOwn']>[0]
}

export function createQuickPublish({
  sites,
  versions,
  publishing,
  blobs,
  sql,
}: QuickPublishDependencies): QuickPublish {
  const turns = createKeyedTurns()

  function prepare(
    limits: Limits,
    {
      content,
      title,
      allowSecrets,
      progress = () => {},
    }: Pick<QuickPublishInput, 'content' | 'title' | 'allowSecrets' | 'progress'>,
  ): Promise<PreparedVersion> {
    return receiveContent(publishing, limits, async (intake) => {
      await take(intake, blobs, content, { title, progress })
      return { title, secrets: allowSecrets ? 'allow' : 'refuse' }
    })
  }

  /** Served paths of the live version that the new one does not have. */
  async function lostPaths(site: SiteFacts, prepared: PreparedVersion): Promise<string[]> {
    const live = await versions.liveVersion(site)
    if (!live) return []
    const kept = new Set(pathsOf(await publishing.readManifest(prepared.manifestHash)))
    return pathsOf(await publishing.readManifest(live.manifest_hash)).filter((path) => !kept.has(path))
  }

  /** The number of the version that the publish goes over, 0 where there is none, once nothing disappears by surprise. */
  async function checkedVersion(actor: Actor, input: QuickPublishInput, prepared: PreparedVersion): Promise<number> {
    const site = await versions.findBySlug(actor, input.slug)
    const number = site ? ((await versions.liveVersion(site))?.number ?? 0) : 0
    // A conflict comes first: what would go is a question about the version that the caller knows.
    if (input.ifVersion !== undefined && input.ifVersion !== number) return input.ifVersion
    const lost = site ? await lostPaths(site, prepared) : []
    if (site && lost.length > 0) throw errors.wouldRemoveFiles(site.slug, number, lost)
    return number
  }

  async function publishOnce(
    actor: Actor,
    input: QuickPublishInput,
    prepared: PreparedVersion,
  ): Promise<Propagated<QuickPublished>> {
    // A preview takes nothing from what is live.
    const mayLose = !input.replace && input.preview === undefined
    const ifVersion = mayLose ? await checkedVersion(actor, input, prepared) : input.ifVersion
    const wanted = { slug: input.slug, name: input.title }
    const options: PublishOptions = {
      message: input.message,
      password: input.password,
      purge: input.purge,
      preview: input.preview,
      resolves: input.resolves,
      access: input.access,
      ...(ifVersion === undefined ? {} : { ifVersion }),
    }
    const { value, pending } = await versions.publishBySlug(actor, wanted, prepared, options)
    const { siteId, ...published } = value
    return { value: { site: await sites.get(actor, siteId), ...published }, pending }
  }

  async function editOnce(actor: Actor, siteId: string, edit: QuickEdit): Promise<Propagated<QuickPublished>> {
    const site = await sites.requireOwn(sql, actor, siteId)
    versions.requirePublishable(site)
    const live = await versions.liveVersion(site)
    const manifest = live && (await publishing.readManifest(live.manifest_hash))
    const content = editedContent(manifest, edit)
    const limits = {
      owner: ownerOf(actor),
      capBytes: plans[site.plan].uploadBytes,
      maxFiles: plans[site.plan].filesPerVersion,
      base: live?.manifest_hash,
    }
    const prepared = await prepare(limits, { content, allowSecrets: edit.allowSecrets, progress: edit.progress })
    const options = {
      message: edit.message,
      purge: edit.purge,
      preview: edit.preview,
      resolves: edit.resolves,
      ifVersion: edit.ifVersion ?? live?.number ?? 0,
    }
    const { value, pending } = await versions.publish(actor, siteId, prepared, options)
    return { value: { site: await sites.get(actor, siteId), version: value, created: false }, pending }
  }

  return {
    async publish(actor, input) {
      if (input.password !== undefined) requirePasswordFeature(actor.plan)
      wantedAccess(input.access ?? {}, 0)
      const limits = { owner: ownerOf(actor), ...capsOf(actor) }
      const prepared = await prepare(limits, input)
      const attempt = () => publishOnce(actor, input, prepared)
      // Those who were overtaken take turns, so that no one is overtaken again and again.
      return whileOthersPublish(input.ifVersion, attempt, () => turns(`${actor.orgId} ${input.slug}`, attempt))
    },
    // Each edit is made of the version that the one before left: different files are merged, the same file is the last one's.
    edit: (actor, siteId, edit) =>
      turns(siteId, () => whileOthersPublish(edit.ifVersion, () => editOnce(actor, siteId, edit))),
  }
}

/** Calls with the same key one after the other. */
function createKeyedTurns(): <Result>(key: string, work: () => Promise<Result>) => Promise<Result> {
  const last = new Map<string, Promise<unknown>>()
  return (key, work) => {
    const result = (last.get(key) ?? Promise.resolve()).then(work)
    const over = result
      .catch(() => {})
      .then(() => {
        if (last.get(key) === over) last.delete(key)
      })
    last.set(key, over)
    return result
  }
}

async function take(
  intake: Intake,
  blobs: Pick<BlobStore, 'stream'>,
  content: QuickContent,
  { title, progress }: { title: string | undefined; progress: (done: number) => void },
): Promise<void> {
  switch (content.kind) {
    case 'text': {
      const name = content.format === 'html' ? 'index.html' : 'index.md'
      return intake.addSingle(name, Readable.from([Buffer.from(content.content)]), { title })
    }
    case 'alone':
      return intake.addSingle(content.name, Readable.from([content.bytes]), { title })
    case 'files':
      for (const [index, file] of content.files.entries()) {
        await takeFile(intake, file)
        progress(index + 1)
      }
      return
    case 'sent': {
      const bytes = blobs.stream(content.hash)
      return fileKindOf(content.name) === 'archive'
        ? intake.addZip(bytes)
        : intake.addSingle(content.name.slice(content.name.lastIndexOf('/') + 1), bytes, { title })
    }
    default:
      content satisfies never
  }
}

function takeFile(intake: Intake, { path, bytes }: QuickFile): Promise<void> {
  return Buffer.isBuffer(bytes)
    ? intake.addFile(path, Readable.from([bytes]))
    : intake.addStored(path, bytes.hash, bytes.size)
}

/** A caller who named no version is not bothered with the version that another one published in between. */
async function whileOthersPublish<Result>(
  ifVersion: number | undefined,
  attempt: () => Promise<Result>,
  again = attempt,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await (tries === 1 ? attempt() : again())
    } catch (error) {
      const isOvertaken = error instanceof ApiError && error.code === 'version_changed'
      if (!isOvertaken || ifVersion !== undefined || tries === MAX_TRIES) throw error
    }
  }
}

function ownerOf({ orgId }: Actor): { kind: 'organisation'; id: string } {
  return { kind: 'organisation', id: orgId }
}

function pathsOf(manifest: Manifest): string[] {
  return [...manifest.files.map(([path]) => path), ...manifest.unserved.map(([path]) => path)]
}

/** The files after the edit. Pure. A lone page or document stays one, whatever its name. */
export function editedContent(manifest: Manifest | undefined, { put, remove }: QuickEdit): QuickContent {
  const files = new Map<string, QuickBytes>(uploadedFiles(manifest))
  for (const path of remove) if (!files.delete(path)) throw errors.noSuchFile(path, [...files.keys()])
  for (const { path, bytes } of put) files.set(path, bytes)
  if (files.size === 0) throw errors.invalidRequest('No file would be left. Delete the drop instead.')
  const [[only, bytes]] = [...files] as [[string, QuickBytes]]
  if (files.size === 1 && standsAlone(manifest, only, fileKindOf(only)))
    return Buffer.isBuffer(bytes) ? { kind: 'alone', name: only, bytes } : { kind: 'sent', name: only, ...bytes }
  return { kind: 'files', files: [...files].map(([path, content]) => ({ path, bytes: content })) }
}

/** Markdown is rendered; a document is one where it was before, so that a site does not become one by losing its pages. */
function standsAlone(manifest: Manifest | undefined, path: string, kind: FileKind | undefined): boolean {
  if (path.includes('/') || kind === undefined || kind === 'archive' || kind === 'html') return false
  const landing = manifest?.files.find(([name]) => name === LANDING_PAGE)?.[1]
  return kind === 'markdown' || landing?.source?.path === path
}

function capsOf({ plan }: Actor): { capBytes: number; maxFiles: number } {
  return { capBytes: plans[plan].uploadBytes, maxFiles: plans[plan].filesPerVersion }
}
