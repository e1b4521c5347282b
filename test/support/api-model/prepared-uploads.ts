/** What calls about prepared uploads are answered: files are named first, what is missing is sent, then they go live. */
import { plans } from '../../../control/ground/terms/plans.ts'
import { MAX_UPLOADS_UNDER_WAY } from '../../../control/drops/sites/uploads/under-way.ts'
import { uploadFiles, type SentFile } from '../api-content.ts'
import { ownSite, type Acting } from './access.ts'
import { Refusal, refuse, type Expected } from './answers.ts'
import type { Call } from './calls.ts'
import { contentOf, droppedBy, published, requirePublishable } from './publishing.ts'
import { liveNumber, type Org, type Site, type Upload, type World } from './world.ts'

/** Uploads of an organisation with nothing to send; the oldest of more are given up. */
const MAX_IDLE_UPLOADS = 20

export function startUpload(world: World, acting: Acting, call: Extract<Call, { do: 'start upload' }>): Expected {
  if (call.ifVersion === 'malformed') throw refuse.invalid()
  const site = ownSite(acting, world.site(call.site))
  requirePublishable(site)
  const files = uploadFiles(call)
  const ifVersion = call.ifVersion === 'none' ? undefined : liveNumber(site) + (call.ifVersion === 'right' ? 0 : 1)
  const live = site.versions.find(({ id }) => id === site.live)
  const unpublished = files.filter(({ sha256 }) => !world.isPublished([acting.org], sha256))
  const pieces = new Map(unpublished.map(({ sha256, size }) => [sha256, size]))
  const unchanged =
    live?.files.size === files.length && files.every((file) => live.files.get(file.path) === file.sha256)
  if (pieces.size > 0 && world.underWay(acting.org).uploads >= MAX_UPLOADS_UNDER_WAY) throw refuse.planLimit()
  if (!unchanged) requireRoom(world, acting.org, site, files, pieces)
  const missing = new Set(pieces.keys().filter((sha256) => !isSent(world, acting.org, sha256)))
  return {
    status: 201,
    body: { missing, unchanged },
    learn: ({ upload_id: id }: { upload_id: string }) => {
      giveUpIdle(world, acting.org)
      world.uploads.push({
        id,
        site: site.id,
        org: acting.org.id,
        files,
        title: call.texts[0]!,
        ifVersion,
        missing,
        pieces,
        open: true,
      })
    },
  }
}

export function readUpload(world: World, acting: Acting, call: { upload: number }): Expected {
  const upload = openUpload(world, acting, world.upload(call.upload))
  return { status: 200, body: { upload_id: upload.id, missing: new Set(upload.missing) } }
}

export function sendBlob(world: World, acting: Acting, call: { upload: number; good: boolean }): Expected {
  const upload = openUpload(world, acting, world.upload(call.upload))
  const { sha256 } = nextFile(upload)
  // What is there already is not read again, whatever is sent.
  if (!upload.missing.has(sha256)) return { status: 204 }
  if (!call.good) throw refuse.invalid()
  return {
    status: 204,
    learn: () => {
      upload.missing.delete(sha256)
    },
  }
}

export function finishUpload(world: World, acting: Acting, call: { upload: number }): Expected {
  const upload = openUpload(world, acting, world.upload(call.upload))
  const site = world.sites.find(({ id }) => id === upload.site)!
  if (upload.missing.size > 0) throw refuse.invalid()
  if (!upload.files.some(({ path }) => path === 'index.html')) throw new Refusal(400, 'missing_index')
  requirePublishable(site)
  if (upload.ifVersion !== undefined && upload.ifVersion !== liveNumber(site)) throw new Refusal(412, 'version_changed')
  const expected = published(world, site, contentOf(upload.files, upload.title))
  return {
    ...expected,
    learn: (body: never) => {
      expected.learn!(body)
      upload.open = false
    },
  }
}

/** What a caller sends next: the first that is missing, else one that is there. */
export function nextFile({ files, missing }: Upload): SentFile {
  return files.find(({ sha256 }) => missing.has(sha256)) ?? files.at(-1)!
}

function openUpload(world: World, acting: Acting, upload: Upload | undefined): Upload {
  ownSite(
    acting,
    world.sites.find(({ id }) => id === upload?.site),
  )
  if (!upload?.open) throw refuse.notFound()
  return upload
}

/** Whether it has arrived for another upload that is under way. */
function isSent(world: World, org: Org, sha256: string): boolean {
  return world.uploads.some(
    (upload) => upload.open && upload.org === org.id && upload.pieces.has(sha256) && !upload.missing.has(sha256),
  )
}

/** What is being sent counts like what is kept, and the whole version like one that is there. */
function requireRoom(
  world: World,
  org: Org,
  site: Site,
  files: readonly SentFile[],
  pieces: ReadonlyMap<string, number>,
): void {
  const { versionsKept, storageBytes } = plans[org.plan]
  const coming = files.reduce((sum, { size }) => sum + size, 0)
  const further = coming - (droppedBy(site, versionsKept)?.bytes ?? 0)
  const added = world.underWay(org, { except: pieces }).bytes + further
  if (added > 0 && world.storedBytes(org) + added > storageBytes) throw refuse.planLimit()
}

function giveUpIdle(world: World, org: Org): void {
  const idle = world.uploads.filter(({ org: owner, open, pieces }) => owner === org.id && open && pieces.size === 0)
  for (const upload of idle.slice(0, Math.max(0, idle.length - (MAX_IDLE_UPLOADS - 1)))) upload.open = false
}
