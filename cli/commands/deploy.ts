import { stat } from 'node:fs/promises'
import path from 'node:path'
import { ApiFailure, type Site, type Version } from '../api-client.ts'
import { findDrop } from '../chosen-drop.ts'
import type { Arguments, Command, Context } from '../command.ts'
import { CliError, exitCodes, usageError } from '../failure.ts'
import { digest, readFolder, type Folder } from '../folder.ts'
import { fileForm } from '../multipart.ts'
import { createProgress } from '../progress.ts'
import { openProject, type Project } from '../project.ts'
import { findSource, type Source } from '../source.ts'
import { formatBytes, plain } from '../terminal.ts'
import { createUploader, type UploadOptions } from '../upload.ts'

interface Outcome {
  readonly site: Site
  /** Undefined when what is live is already this. */
  readonly version: Version | undefined
}

export const deploy: Command = {
  name: 'deploy',
  summary: 'Publish a folder, a page or a .zip',
  usage: 'deploy [folder|file] [--slug <slug>] [--message <text>] [--spa] [--dry-run]',
  options: {
    slug: { type: 'string', value: 'slug', help: 'Publish to this drop of yours; made if it is free' },
    message: { type: 'string', value: 'text', help: 'What changed; shown in the list of versions' },
    spa: { type: 'boolean', help: 'Unknown paths serve index.html' },
    'no-spa': { type: 'boolean', help: 'Unknown paths are 404' },
    'dry-run': { type: 'boolean', help: 'Say what would be published, change nothing' },
  },
  details: [
    'Without a folder: this one if it has an index.html, else what was built (dist/, build/, out/, public/ or _site/).',
    'Beside a package.json, what was built comes first.',
    'Remembers the drop in .dropway.json and sends changed files only.',
    'Files listed in .dropwayignore (as in .gitignore) stay at home.',
    'The last line on stdout is the address.',
  ],
  maxPositionals: 1,
  async run(context, args) {
    const source = await findSource(context.cwd, args.positionals[0])
    const options = uploadOptions(args)
    const project = await openProject(source.project, context.settings.url)
    context.terminal.note(`Publishing ${relative(context.cwd, source.path)}`)
    if (args.flag('dry-run')) return describe(context, source, project, args.text('slug'))
    const outcome =
      source.kind === 'folder'
        ? await deployFolder(context, source, project, args.text('slug'), options)
        : await deployFile(context, source, project, args.text('slug'), options)
    report(context, outcome)
  },
}

function uploadOptions(args: Arguments): UploadOptions {
  if (args.flag('spa') && args.flag('no-spa')) throw usageError('--spa and --no-spa exclude each other.')
  const message = args.text('message')
  return {
    ...(message === undefined ? {} : { message }),
    ...(args.flag('spa') ? { spaFallback: true } : args.flag('no-spa') ? { spaFallback: false } : {}),
  }
}

async function deployFolder(
  context: Context,
  source: Source,
  project: Project,
  slug: string | undefined,
  options: UploadOptions,
): Promise<Outcome> {
  const folder = await readFolder(source.path)
  mentionSkipped(context, folder)
  const site = await siteFor(context, project, slug)
  const uploader = createUploader({ api: context.api, configDir: context.settings.configDir })
  const upload = await uploader.start(site.id, folder.files, options)
  if (upload.unchanged) return { site: await applySettings(context, site, options), version: undefined }
  await uploader.sendMissing(site.id, upload, folder.files, createProgress(context.terminal))
  context.terminal.note(`Sent ${upload.missing.length} of ${folder.files.length} files`)
  return { site, version: await uploader.finish(site.id, upload, folder.files, options) }
}

/** The service keeps what was uploaded; whether a page is still the live one is told by what was remembered here. */
async function deployFile(
  context: Context,
  source: Source,
  project: Project,
  slug: string | undefined,
  options: UploadOptions,
): Promise<Outcome> {
  const name = path.basename(source.path)
  const { sha256 } = await digest(source.path)
  const site = await siteFor(context, project, slug, name)
  const remembered = project.find(name)
  if (remembered?.sha256 === sha256 && remembered.version_id === site.live_version_id) {
    return { site: await applySettings(context, site, options), version: undefined }
  }
  const form = await fileForm(source.path, options.message === undefined ? {} : { message: options.message })
  const version = await context.api.call<Version>(
    'POST',
    `${context.api.sitePath(site.id)}/${source.kind === 'zip' ? 'upload-bundle' : 'upload'}`,
    form,
  )
  await project.remember({ id: site.id, slug: site.slug, sha256, version_id: version.version_id }, name)
  return { site: await applySettings(context, site, options), version }
}

/** `--slug` names the drop; else the remembered one; else a new one. Remembered before anything is sent. */
async function siteFor(
  { api, terminal }: Context,
  project: Project,
  slug: string | undefined,
  name?: string,
): Promise<Site> {
  const remembered = project.find(name)
  if (remembered !== undefined && (slug === undefined || slug === remembered.slug))
    return rememberedSite(api, remembered.id)
  const existing = slug === undefined ? undefined : await findDrop(api, slug)
  const site = existing ?? (await api.createSite(slug === undefined ? {} : { slug }))
  if (existing === undefined) terminal.note(`New drop ${site.slug}`)
  await project.remember({ id: site.id, slug: site.slug }, name)
  return site
}

async function rememberedSite(api: Context['api'], id: string): Promise<Site> {
  try {
    return await api.readSite(id)
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 404) throw error
    throw new CliError(
      `The drop ${id} that .dropway.json remembers is gone or belongs to another account. Delete .dropway.json to publish a new drop, or name one with --slug.`,
      exitCodes.failed,
      'not_found',
    )
  }
}

async function applySettings({ api }: Context, site: Site, { spaFallback }: UploadOptions): Promise<Site> {
  return spaFallback === undefined || spaFallback === site.spa_fallback
    ? site
    : api.changeSite(site.id, { spa_fallback: spaFallback })
}

function report({ terminal }: Context, { site, version }: Outcome): void {
  const warnings = version?.report?.warnings ?? []
  for (const warning of warnings) {
    const place =
      warning.path === undefined ? '' : `${warning.path}${warning.line === undefined ? '' : `:${warning.line}`}: `
    terminal.note(`Warning: ${plain(place + warning.message)}`)
  }
  if (version === undefined) terminal.note('Nothing has changed; the live version stays.')
  else
    terminal.note(
      `Version ${version.version_number} is live: ${version.file_count} files, ${formatBytes(version.byte_size)}`,
    )
  terminal.print(site.url)
  terminal.data({
    url: site.url,
    id: site.id,
    slug: site.slug,
    unchanged: version === undefined,
    version: version ?? null,
  })
}

async function describe(
  { terminal }: Context,
  source: Source,
  project: Project,
  slug: string | undefined,
): Promise<void> {
  const folder = source.kind === 'folder' ? await readFolder(source.path) : undefined
  const files = folder?.files.map((file) => ({ path: file.path, size: file.size })) ?? [
    { path: path.basename(source.path), size: (await stat(source.path)).size },
  ]
  const bytes = files.reduce((sum, file) => sum + file.size, 0)
  const drop = slug ?? project.find(folder ? undefined : path.basename(source.path))?.slug
  for (const file of files) terminal.print(`${plain(file.path)}  ${formatBytes(file.size)}`)
  terminal.print(
    `${files.length} files, ${formatBytes(bytes)}, to ${drop === undefined ? 'a new drop' : drop}. Nothing was published.`,
  )
  terminal.data({ dry_run: true, drop: drop ?? null, files, byte_size: bytes, file_count: files.length })
}

function mentionSkipped({ terminal }: Context, { skipped }: Folder): void {
  for (const name of skipped) terminal.note(`Left out: ${plain(name)} (a link out of the folder, or no ordinary file)`)
}

function relative(cwd: string, target: string): string {
  return path.relative(cwd, target) || 'this folder'
}
