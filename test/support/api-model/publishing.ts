/** What calls that publish are answered: files and bundles in one request, versions, drops without an account. */
import { plans } from '../../../control/ground/terms/plans.ts'
import { bundleFiles, MARKDOWN, singleFile, type SentFile } from '../api-content.ts'
import { ownSite, type Acting } from './access.ts'
import { Refusal, refuse, type Expected } from './answers.ts'
import type { Call, FileKind } from './calls.ts'
import { newSite, type Site, type Version, type World } from './world.ts'

interface Content {
  readonly files: ReadonlyMap<string, string>
  readonly title: string
  readonly bytes: number
  readonly message: string
  readonly fileCount: number
}

export function upload(world: World, acting: Acting, call: Extract<Call, { do: 'upload' }>): Expected {
  const site = ownSite(acting, world.site(call.site))
  requirePublishable(site)
  requireSingle(call.file, world.planOf(site).uploadBytes)
  if (call.ifVersion === 'malformed') throw refuse.invalid()
  if (call.ifVersion === 'wrong') throw new Refusal(412, 'version_changed')
  const text = call.file === 'markdown' ? MARKDOWN : call.text
  const sent = singleFile(call.file, text)
  return published(world, site, {
    // Whatever it was called, a single file is the landing page.
    files: new Map([[call.file === 'markdown' ? 'index.md' : 'index.html', sent.sha256]]),
    title: text,
    bytes: call.file === 'markdown' ? world.markdownBytes : sent.size,
    message: call.message,
    fileCount: 1,
  })
}

export function uploadBundle(world: World, acting: Acting, call: Extract<Call, { do: 'bundle' }>): Expected {
  const site = ownSite(acting, world.site(call.site))
  requirePublishable(site)
  if (call.kind === 'no index') throw new Refusal(400, 'missing_index')
  if (call.kind === 'not a zip') throw new Refusal(400, 'unsupported_file_type')
  if (call.kind !== 'good') throw refuse.invalid()
  return published(world, site, contentOf(bundleFiles(call.text), call.text))
}

export function publishAnonymously(world: World, call: { browser: number; file: FileKind }): Expected {
  requireSingle(call.file, plans.anonymous.uploadBytes)
  return publishedAnonymously(world, call.browser)
}

export function publishMarkdown(world: World, call: { browser: number; text: string }): Expected {
  if (call.text === '') throw refuse.invalid()
  return publishedAnonymously(world, call.browser)
}

export function listVersions(world: World, acting: Acting, call: { site: number }): Expected {
  const site = ownSite(acting, world.site(call.site))
  const entry = (version: Version): object => ({ ...versionView(version), live: version.id === site.live })
  return { status: 200, body: site.versions.toReversed().map(entry) }
}

export function promote(world: World, acting: Acting, call: { site: number; of: number; version: number }): Expected {
  const site = ownSite(acting, world.site(call.site))
  requirePublishable(site)
  const version = retained(site, world.version(call.of, call.version))
  const { time } = world
  return {
    status: 200,
    body: versionView(version),
    learn: () => void Object.assign(site, { live: version.id, title: version.title, since: time }),
  }
}

export function compareVersions(
  world: World,
  acting: Acting,
  call: { site: number; of: number; version: number },
): Expected {
  const site = ownSite(acting, world.site(call.site))
  retained(site, world.version(call.of, call.version))
  return { status: 200 }
}

export function published(world: World, site: Site, content: Content): Expected {
  requireStorage(world, site, content)
  const { time } = world
  const number = site.nextNumber
  const { title, files, bytes, message, fileCount } = content
  return {
    status: 201,
    body: { version_number: number, byte_size: bytes, file_count: fileCount, message },
    learn: ({ version_id: id }: { version_id: string }) => {
      site.versions.push({ id, number, message, title, fileCount, bytes, files })
      if (site.versions.length > world.planOf(site).versionsKept) site.versions.shift()
      Object.assign(site, { live: id, nextNumber: number + 1, title, since: time })
    },
  }
}

export function contentOf(files: readonly SentFile[], title: string): Content {
  return {
    files: new Map(files.map(({ path, sha256 }) => [path, sha256])),
    title,
    bytes: files.reduce((sum, { size }) => sum + size, 0),
    message: '',
    fileCount: files.length,
  }
}

function publishedAnonymously(world: World, browser: number): Expected {
  const { time } = world
  return {
    status: 201,
    learn: ({ id, slug }: { id: string; slug: string }) => {
      const site = newSite({ id, slug, org: null, name: '', since: time, browser })
      world.sites.push({ ...site, live: 'some version', nextNumber: 2 })
      world.slugs.set(slug, { site: id, kind: 'current', isFree: false })
    },
  }
}

export function requirePublishable(site: Site): void {
  if (site.takenDown) throw refuse.forbidden()
  if (site.paused) throw refuse.conflict('paused')
}

/** What was stored before, what comes, what goes, what is being sent: an organisation over its cap may still replace. */
function requireStorage(world: World, site: Site, content: Content): void {
  const org = world.orgs.find(({ id }) => id === site.org)!
  const { versionsKept, storageBytes } = plans[org.plan]
  const going = droppedBy(site, versionsKept)
  const added = content.bytes - (going?.bytes ?? 0)
  if (added <= 0) return
  const versions = [...site.versions.filter((version) => version !== going), content]
  const { bytes } = world.underWay(org, { replacing: { site, versions } })
  if (world.storedBytes(org) + added + bytes > storageBytes) throw refuse.planLimit()
}

/** The version that goes with the next one. */
export function droppedBy(site: Site, versionsKept: number): Version | undefined {
  return site.versions.length + 1 > versionsKept ? site.versions[0] : undefined
}

function requireSingle(file: FileKind, capBytes: number): void {
  if (file === 'program') throw new Refusal(400, 'unsupported_file_type')
  if (isTooLarge(file, capBytes)) throw new Refusal(413, 'upload_too_large')
  if (['none', 'unnamed', 'two', 'not a form'].includes(file)) throw refuse.invalid()
}

/** Plans whose cap is larger get a small page instead: it would only take time. */
export function isTooLarge(file: FileKind, capBytes: number): boolean {
  return file === 'too large' && capBytes <= plans.free.uploadBytes
}

function retained(site: Site, versionId: string | undefined): Version {
  const version = site.versions.find(({ id }) => id === versionId)
  if (!version) throw refuse.notFound()
  return version
}

function versionView(version: Version): object {
  return {
    version_id: version.id,
    version_number: version.number,
    byte_size: version.bytes,
    file_count: version.fileCount,
    message: version.message,
  }
}
