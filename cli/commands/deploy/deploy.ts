import path from 'node:path'
import { clockNotices } from '../../../shared/values/clock-notice.ts'
import type { SecretFile } from '../../../shared/content/secret-files.ts'
import { fileKindOf, isPageFormat, LANDING_PAGE } from '../../../shared/content/upload-kind.ts'
import { sitePath, type ApiClient } from '../../service/api-client.ts'
import { ApiFailure } from '../../service/api-failure.ts'
import type { ArchiveContent } from '../../content/archive-content.ts'
import { chooseDrop, findWanted, type ChosenDrop, type DeployedContent } from './wanted-drop.ts'
import { yesOption, type Arguments, type Command, type Context } from '../../terminal/command.ts'
import { compareWithLive, isNewPreview, printChanges } from '../../content/comparison.ts'
import { WATCHED_PREVIEW, watchFolder } from './watch.ts'
import { CliError, exitCodes, usageError } from '../../terminal/failure.ts'
import { digestStream, type Folder, type LocalFile } from '../../content/folder.ts'
import { PUBLISH_TIMEOUT_MS } from '../../service/http-client.ts'
import type { Deployed, GuestLink, Preview, Site, Version } from '../../terminal/json-output.ts'
import { fileForm } from '../../service/multipart.ts'
import { exchangeIdentity } from '../../service/sign-in/workflow.ts'
import { createProgress } from '../../terminal/progress.ts'
import { openProject, type Project } from '../../content/project/project.ts'
import { readPublishable, requireFileTaken } from '../../content/publishable.ts'
import { findSource, type Source } from '../../content/source.ts'
import { countOf, plain, type Terminal } from '../../terminal/terminal.ts'
import { bytesInWords } from '../../../shared/values/sizes.ts'
import { applySharing, sharingOf } from '../sharing.ts'
import { createUploader, type UploadOptions } from '../../service/upload.ts'

export interface DeployOutcome {
  readonly site: Site
  /** Undefined when what is live is already this. */
  readonly version: Version | undefined
  readonly link?: GuestLink | undefined
}

/** The service will say the same again, however often it is asked. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 413, 422])
const GO_ON = 'Run the same command again to go on: what has arrived is kept for twelve hours.'

export const deploy: Command = {
  kind: 'service',
  patient: true,
  name: 'deploy',
  summary: 'Publish a folder, a page, a document or a .zip',
  usage:
    'deploy [folder|file] [--slug <slug>] [--message <text>] [--private] [--viewers <addresses>] [--guest-link] [--spa] [--include <pattern>] [--preview <name>] [--resolves <thread>] [--watch] [--purge] [--dry-run] [--yes]',
  options: {
    slug: { type: 'string', value: 'slug', help: 'Publish to this drop of yours; made if it is free' },
    message: { type: 'string', value: 'text', help: 'What changed; shown in the list of versions' },
    private: { type: 'boolean', help: 'Only viewers that you name see it, from this version on' },
    viewers: {
      type: 'string',
      value: 'addresses',
      multiple: true,
      help: 'Who may see it: a@x,b@y or @domain; they get a mail. Means --private',
    },
    'guest-link': { type: 'boolean', help: 'Make a link that opens it, and print it. Means --private' },
    spa: { type: 'boolean', help: 'Unknown paths serve index.html' },
    'no-spa': { type: 'boolean', help: 'Unknown paths are 404' },
    include: {
      type: 'string',
      value: 'pattern',
      multiple: true,
      help: 'Publish these although they look like secrets or usually stay at home',
    },
    preview: { type: 'string', value: 'name', help: 'Publish to the preview of this name; what is live stays' },
    resolves: { type: 'string', value: 'thread', multiple: true, help: 'Resolve what was said: this version mends it' },
    watch: {
      type: 'boolean',
      help: 'Publish to a preview ("watch", or that of --preview) whenever a file changes, until Ctrl-C',
    },
    purge: { type: 'boolean', help: 'Also remove everything older: versions, their previews and kept files' },
    'purge-all': { type: 'boolean', help: 'The same, and named previews' },
    'dry-run': { type: 'boolean', help: 'Compare with what is live, or at --preview; publish nothing' },
    yes: yesOption,
  },
  details: [
    'Without a folder: this one if it has an index.html, else what was built (dist/, build/, out/, public/ or _site/).',
    'Beside a package.json, what was built comes first.',
    'Remembers the drop in .dropway.json and sends changed files only.',
    'A PDF, an image, a video, a sound or a text by itself gets a small page that shows it.',
    'Files listed in .dropwayignore (as in .gitignore) stay at home.',
    'Files that look like secrets are refused before anything is public; --include publishes them all the same.',
    'In GitHub, GitLab and Forgejo jobs that a drop trusts no token is needed.',
    'The last line on stdout is the address.',
  ],
  maxPositionals: 1,
  async run(context, args) {
    if (args.flag('dry-run')) return describeSource(context, args)
    if (args.flag('watch')) return watchSource(context, args)
    const outcome = await deploySource(context, args)
    const isPrivate = uploadOptions(args).sharing !== undefined || outcome.site.access_mode === 'viewers'
    report(context, outcome, isPrivate)
    await mentionClocks(context)
  },
}

async function openSource(context: Context, args: Arguments): Promise<{ source: Source; project: Project }> {
  const source = await findSource(context.cwd, args.positionals[0])
  const project = await openProject(source.project, context.url, context.settings.configDir)
  await actAsWorkflow(context, project, args, source)
  context.terminal.note(`Publishing ${relative(context.cwd, source.path)}`)
  return { source, project }
}

/** Publishes what the command line names. */
export async function deploySource(context: Context, args: Arguments): Promise<DeployOutcome> {
  const options = uploadOptions(args)
  const { source, project } = await openSource(context, args)
  return source.kind === 'folder'
    ? deployFolder(context, source, project, args, options)
    : deployFile(context, source, project, args, options)
}

/** Publishes to a preview now and after each change; open tabs of members reload by themselves. */
async function watchSource(context: Context, args: Arguments): Promise<void> {
  const source = await findSource(context.cwd, args.positionals[0])
  const stop = new AbortController()
  process.once('SIGINT', () => stop.abort())
  process.once('SIGTERM', () => stop.abort())
  let isFirst = true
  const publish = async (): Promise<void> => {
    const outcome = await deploySource(context, args)
    report(context, outcome, true)
    if (isFirst) context.terminal.note(`Review it as it changes: ${reviewAddress(context, args, outcome)}`)
    isFirst = false
  }
  const folder = source.kind === 'folder' ? source.path : path.dirname(source.path)
  await watchFolder(context, folder, publish, stop.signal)
}

function reviewAddress({ url }: Context, args: Arguments, { site }: DeployOutcome): string {
  return `${url}/review/${site.slug}?preview=${args.text('preview') ?? WATCHED_PREVIEW}`
}

async function describeSource(context: Context, args: Arguments): Promise<void> {
  uploadOptions(args)
  const { source, project } = await openSource(context, args)
  return describe(context, source, project, args)
}

/** In a job of a forge that says who runs, no secret is needed: the drop trusts the workflow. */
async function actAsWorkflow(context: Context, project: Project, args: Arguments, source: Source): Promise<void> {
  const { settings, terminal, url, http } = context
  const { workflow } = settings
  const name = source.kind === 'folder' ? undefined : path.basename(source.path)
  const site = args.text('slug') ?? project.find(name)?.id
  if (workflow === undefined || settings.token !== undefined || site === undefined) return
  const preview = args.text('preview')
  await context.authentication.actAs(() => exchangeIdentity(workflow, { origin: url, site, preview, http }))
  terminal.note('Signed in as this workflow.')
}

function uploadOptions(args: Arguments): UploadOptions {
  if (args.flag('spa') && args.flag('no-spa')) throw usageError('--spa and --no-spa exclude each other.')
  const message = args.text('message')
  const preview = args.text('preview') ?? (args.flag('watch') ? WATCHED_PREVIEW : undefined)
  const resolves = args.texts('resolves').flatMap((text) => text.split(','))
  const sharing = { ...sharingOf(args) }
  return {
    ...(message === undefined ? {} : { message }),
    allowSecrets: args.texts('include').length > 0,
    ...(Object.keys(sharing).length > 0 ? { sharing } : {}),
    ...(preview === undefined ? {} : { preview }),
    ...(resolves.length === 0 ? {} : { resolves }),
    ...(args.flag('purge-all') ? { purge: 'all' } : args.flag('purge') ? { purge: true } : {}),
    ...(args.flag('spa') ? { spaFallback: true } : args.flag('no-spa') ? { spaFallback: false } : {}),
  }
}

/** Whether the same content again would change nothing. */
function isAboutContent({ purge, preview, resolves }: UploadOptions): boolean {
  return purge === undefined && preview === undefined && resolves === undefined
}

async function deployFolder(
  context: Context,
  source: Source,
  project: Project,
  args: Arguments,
  options: UploadOptions,
): Promise<DeployOutcome> {
  const wanted = await findWanted(context, project, args)
  const folder = await readPublishable(context, source.path, args.texts('include'))
  const chosen = await chooseDrop(context, project, wanted, () => folder)
  return unlessRefused(context, project, chosen, ({ site }) => upload(context, site, folder, options))
}

/** The drop that was made for a first deploy goes again when that is refused. One that broke off goes on. */
async function unlessRefused(
  { api, terminal }: Context,
  project: Project,
  chosen: ChosenDrop,
  publish: (chosen: ChosenDrop) => Promise<DeployOutcome>,
): Promise<DeployOutcome> {
  try {
    return await publish(chosen)
  } catch (error) {
    const isRefused = error instanceof ApiFailure && REFUSALS.has(error.status)
    if (!chosen.isNew || !isRefused) throw error
    // A token that may only publish cannot delete: the drop stays without content, and the next deploy goes there.
    const isGone = await api.call('DELETE', sitePath(chosen.site.id)).then(
      () => true,
      // The answer to an attempt that deleted it may have been lost.
      (failure: unknown) => failure instanceof ApiFailure && failure.status === 404,
    )
    if (isGone && project.find(chosen.name)?.id === chosen.site.id) await project.forget(chosen.name)
    terminal.note(`The new drop ${chosen.site.slug} ${isGone ? 'is taken back.' : 'stays, with nothing in it.'}`)
    throw error
  }
}

async function upload(context: Context, site: Site, folder: Folder, options: UploadOptions): Promise<DeployOutcome> {
  const { api, terminal, settings } = context
  const { files } = folder
  const uploader = createUploader({
    api,
    configDir: settings.configDir,
    siteId: site.id,
    files,
    options: { ...options, allowSecrets: folder.allowsSecrets },
  })
  const started = await uploader.start()
  // What is older goes with a publish, also with one of the same files; a preview shows what is live, too.
  if (started.unchanged && isAboutContent(options)) {
    return unchanged(context, site, options)
  }
  terminal.onInterrupt(`Interrupted; nothing was published. ${GO_ON}`)
  try {
    await uploader.sendMissing(started, createProgress(terminal))
    terminal.note(`Sent ${started.missing.length} of ${countOf(files.length, 'file')}`)
    const version = (await uploader.finish(started)) ?? (await publishedVersion(api, site.id, options.preview))
    return { site, version, link: version?.guest_link }
  } catch (error) {
    if (!(error instanceof CliError) || error.exitCode !== exitCodes.unreachable) throw error
    throw new CliError(`${error.message} ${GO_ON}`, error.exitCode, error.code)
  } finally {
    terminal.onInterrupt(undefined)
  }
}

/** What is live, or at the preview, after a publish whose answer was lost. */
async function publishedVersion(
  api: ApiClient,
  siteId: string,
  preview: string | undefined,
): Promise<Version | undefined> {
  if (preview === undefined) return (await api.listVersions(siteId)).find(({ live }) => live)
  const previews = await api.call<Preview[]>('GET', `${sitePath(siteId)}/previews`)
  const shown = previews.find(({ name }) => name === preview)
  return shown && { ...shown, preview, preview_url: shown.url, url: shown.url ?? undefined }
}

/** The service keeps what was uploaded; whether a page is still the live one is told by what was remembered here. */
async function deployFile(
  context: Context,
  source: Source,
  project: Project,
  args: Arguments,
  options: UploadOptions,
): Promise<DeployOutcome> {
  const name = path.basename(source.path)
  const wanted = await findWanted(context, project, args, name)
  await requireFileTaken(context.api, source.path, name)
  const { sha256, size } = await digestStream({ path: name, file: source.path })
  const file = { path: name, file: source.path, size, sha256 }
  const chosen = await chooseDrop(context, project, wanted, () => contentOf(context, source, args.texts('include')))
  return unlessRefused(context, project, chosen, () => publishFile(context, source, project, { chosen, file, options }))
}

async function publishFile(
  context: Context,
  source: Source,
  project: Project,
  { chosen, file, options }: { chosen: ChosenDrop; file: LocalFile; options: UploadOptions },
): Promise<DeployOutcome> {
  const { site, name } = chosen
  const { sha256 } = file
  const remembered = project.find(name)
  const isLive =
    remembered?.id === site.id && remembered.sha256 === sha256 && remembered.version_id === site.live_version_id
  if (isLive && isAboutContent(options)) {
    return unchanged(context, site, options)
  }
  // What is in a .zip, the service sees first; it keeps back what looks like a secret.
  const form = fileForm(file, {
    ...(options.message === undefined ? {} : { message: options.message }),
    ...(options.allowSecrets ? { allow_secrets: 'true' } : {}),
    ...(options.purge === undefined ? {} : { purge: String(options.purge) }),
    ...(options.preview === undefined ? {} : { preview: options.preview }),
    ...(options.resolves === undefined ? {} : { resolves: options.resolves.join(',') }),
    ...formFields(options.sharing ?? {}),
    ...(source.kind === 'zip' || isPageFormat(fileKindOf(source.path)) ? {} : { as: 'document' }),
  })
  const version = await context.api.call<Version>(
    'POST',
    `${sitePath(site.id)}/${source.kind === 'zip' ? 'upload-bundle' : 'upload'}`,
    { ...form, timeoutMs: PUBLISH_TIMEOUT_MS },
  )
  if (options.preview === undefined && (remembered === undefined || remembered.id === site.id))
    await project.remember({ id: site.id, slug: site.slug, sha256, version_id: version.version_id }, name)
  const changed = await applySettings(context, site, options).catch((error: unknown) => {
    throw error instanceof CliError ? settingsRefused(error, site, version, options) : error
  })
  return { site: changed, version, link: version.guest_link }
}

/** The version stands, whatever becomes of the settings: no failure of the API, which would take a new drop back. */
function settingsRefused(error: CliError, site: Site, version: Version, { spaFallback }: UploadOptions): CliError {
  const option = spaFallback ? '--spa' : '--no-spa'
  const place = `is ${isAtPreview(version) ? '' : 'live '}at ${addressOf(site, version)}`
  const link = version.guest_link?.url === undefined ? '' : ` Guest link, shown once: ${version.guest_link.url}`
  return new CliError(
    `Version ${version.version_number} ${place}. Only ${option} was not set: ${error.message} Set it with "dropway settings ${option} --drop ${site.slug}".${link}`,
    error.exitCode,
    error.code,
  )
}

function isAtPreview(version: Version | undefined): boolean {
  return (version?.preview ?? null) !== null
}

/** Where a visitor finds what was published. */
function addressOf(site: Site, version: Version | undefined): string {
  return isAtPreview(version) ? (version?.preview_url ?? site.url) : site.url
}

/** As fields of a form: lists are separated by commas. */
function formFields(sharing: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(sharing).map(([name, value]) => [name, String(value)]))
}

/** What is live is already this; what was said about the drop itself still counts. */
async function unchanged(context: Context, site: Site, options: UploadOptions): Promise<DeployOutcome> {
  const changed = await applySettings(context, site, options)
  return { ...(await applySharing(context.api, changed, options.sharing ?? {})), version: undefined }
}

async function applySettings({ api }: Context, site: Site, { spaFallback }: UploadOptions): Promise<Site> {
  return spaFallback === undefined || spaFallback === site.spa_fallback
    ? site
    : api.changeSite(site.id, { spa_fallback: spaFallback })
}

/** Mentions the clocks of all drops: that of the one just published has begun anew. */
async function mentionClocks({ api, terminal, url }: Context): Promise<void> {
  const sites = await api.listSites().catch(() => [])
  for (const notice of clockNotices(sites, url, Date.now())) terminal.note(notice)
}

function report({ terminal }: Context, { site, version, link }: DeployOutcome, isPrivate: boolean): void {
  const warnings = version?.report?.warnings ?? []
  for (const warning of warnings) {
    const place =
      warning.path === undefined ? '' : `${warning.path}${warning.line === undefined ? '' : `:${warning.line}`}: `
    const others = (warning.count ?? 1) - 1
    const more = warning.path === undefined || others < 1 ? '' : ` (and ${countOf(others, 'other file')})`
    terminal.note(`Warning: ${plain(place + warning.message + more)}`)
  }
  noteBlocked(terminal, 'Not published', version?.report?.blocked ?? [])
  if (version === undefined) terminal.note('Nothing has changed; the live version stays.')
  else
    terminal.note(
      `Version ${version.version_number} is ${isAtPreview(version) ? `at the preview ${version.preview}` : 'live'}: ${countOf(version.file_count, 'file')}, ${bytesInWords(version.byte_size)}`,
    )
  const kept = version?.report?.kept
  if (kept?.until != null)
    terminal.note(
      `${countOf(kept.files, 'file')} of former versions stay reachable until ${kept.until.slice(0, 10)}; --purge ends that.`,
    )
  if (isPrivate) terminal.note('Only the viewers that you name can see it: "dropway viewers" lists them.')
  if (link?.url !== undefined) terminal.note(`Guest link, shown once: ${link.url}`)
  const url = addressOf(site, version)
  terminal.print(url)
  const data: Deployed = {
    url,
    id: site.id,
    slug: site.slug,
    unchanged: version === undefined,
    version: version ?? null,
    access_mode: isPrivate ? 'viewers' : site.access_mode,
    guest_link: link ?? null,
  }
  terminal.data(data)
}

/** `--dry-run`: the same refusals, and what would change; nothing is made or sent. */
async function describe(context: Context, source: Source, project: Project, args: Arguments): Promise<void> {
  const { terminal } = context
  const name = source.kind === 'folder' ? undefined : path.basename(source.path)
  const { files, blocked, alone = false } = await contentOf(context, source, args.texts('include'))
  const { preview, purge } = uploadOptions(args)
  const changes = await compareWithLive(context, files, {
    slug: args.text('slug'),
    remembered: project.find(name),
    alone,
    publish: { ...(preview === undefined ? {} : { preview }), ...(purge === undefined ? {} : { purge }) },
  })
  const bytes = files.reduce((sum, file) => sum + file.size, 0)
  noteBlocked(terminal, 'Would not be published', blocked)
  printChanges(terminal, changes, preview)
  const drop = changes.site === null ? 'a new drop' : changes.site.slug
  const kind = isNewPreview(changes, preview) ? 'new preview' : 'preview'
  const place = preview === undefined ? drop : `the ${kind} ${preview} of ${drop}`
  terminal.print(`${countOf(files.length, 'file')}, ${bytesInWords(bytes)}, to ${place}. Nothing was published.`)
  terminal.data({
    dry_run: true,
    drop: changes.site?.slug ?? args.text('slug') ?? null,
    preview: preview ?? null,
    ...changes,
    byte_size: bytes,
    file_count: files.length,
    ...(blocked.length > 0 ? { blocked } : {}),
  })
}

/** What would be published, as the service would see it. */
async function contentOf(
  context: Context,
  source: Source,
  include: readonly string[],
): Promise<ArchiveContent & DeployedContent> {
  if (source.kind !== 'folder') await requireFileTaken(context.api, source.path, path.basename(source.path))
  switch (source.kind) {
    case 'folder':
      return { files: (await readPublishable(context, source.path, include)).files, blocked: [] }
    case 'page':
    case 'document': {
      const name = path.basename(source.path)
      const digest = await digestStream({ path: name, file: source.path })
      // The service would call it by the name that it is published under.
      if (digest.size === 0) throw usageError(`"${plain(name)}" is empty.`)
      return { files: [{ path: uploadedName(source.path), ...digest }], blocked: [], alone: true }
    }
    case 'zip': {
      // Other commands need not wait for what it brings along.
      const { readArchive } = await import('../../content/archive-content.ts')
      return readArchive(source.path, include.length > 0)
    }
    default:
      return source satisfies never
  }
}

/** HTML is published as the landing page; the service remembers what else was sent by its own name. */
function uploadedName(file: string): string {
  const name = path.basename(file)
  return fileKindOf(name) === 'html' ? LANDING_PAGE : name
}

function noteBlocked(terminal: Terminal, what: string, blocked: readonly SecretFile[]): void {
  for (const { path: name, what: kind } of blocked)
    terminal.note(`${what}: ${plain(name)} looks like ${kind}. To publish it all the same, use --include.`)
}

function relative(cwd: string, target: string): string {
  return path.relative(cwd, target) || 'this folder'
}
