/** What calls about prepared uploads are answered: files are named first, what is missing is sent, then they go live. */
import { plans } from '../../../control/ground/terms/plans.ts'
import { uploadFiles, type SentFile } from '../api-content.ts'
import { ownSite, type Acting } from './access.ts'
import { Refusal, refuse, type Expected } from './answers.ts'
import type { Call } from './calls.ts'
import { contentOf, published, requirePublishable } from './publishing.ts'
import { liveNumber, type Org, type Upload, type World } from './world.ts'

const OPEN_UPLOADS_PER_DROP = 3

export function startUpload(world: World, acting: Acting, call: Extract<Call, { do: 'start upload' }>): Expected {
  if (call.ifVersion === 'malformed') throw refuse.invalid()
  const site = ownSite(acting, world.site(call.site))
  requirePublishable(site)
  const files = uploadFiles(call)
  const ifVersion = call.ifVersion === 'none' ? undefined : liveNumber(site) + (call.ifVersion === 'right' ? 0 : 1)
  const live = site.versions.find(({ id }) => id === site.live)
  const inLive = new Set(live?.files.values())
  const known = (hash: string): boolean => world.known.has(`${acting.org.id} ${hash}`)
  return {
    status: 201,
    body: {
      unchanged: live?.files.size === files.length && files.every((file) => live.files.get(file.path) === file.sha256),
    },
    learn: ({ upload_id: id, missing }: { upload_id: string; missing: string[] }) => {
      for (const { sha256 } of files) {
        if (!known(sha256) && !missing.includes(sha256))
          throw new Error(`${sha256} was never sent, and is not asked for`)
        if (inLive.has(sha256) && missing.includes(sha256)) throw new Error(`${sha256} is live, and is asked for`)
      }
      giveUpOldest(world, acting.org)
      world.uploads.push({
        id,
        site: site.id,
        org: acting.org.id,
        files,
        title: call.texts[0]!,
        ifVersion,
        missing: new Set(missing),
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

function giveUpOldest(world: World, org: Org): void {
  const open = world.uploads.filter((upload) => upload.org === org.id && upload.open)
  const room = OPEN_UPLOADS_PER_DROP * plans[org.plan].activeDrops - 1
  for (const upload of open.slice(0, Math.max(0, open.length - room))) upload.open = false
}
