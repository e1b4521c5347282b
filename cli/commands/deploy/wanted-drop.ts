/** Which drop a deploy goes to: the one that is named, the remembered one, or a new one. */
import { randomSlug } from '../../../shared/values/readable-slug.ts'
import { ApiFailure } from '../../service/api-failure.ts'
import type { ArchiveContent } from '../../content/archive-content.ts'
import { findDrop, requireLinked } from '../../content/chosen-drop.ts'
import type { Arguments, Context } from '../../terminal/command.ts'
import { compareWithLive } from '../../content/comparison.ts'
import { CliError, exitCodes } from '../../terminal/failure.ts'
import type { Site } from '../../terminal/json-output.ts'
import type { Project, RememberedDrop } from '../../content/project/project.ts'

/** Two random slugs hardly ever meet. */
const MAX_SLUG_TRIES = 5

export interface DeployedContent extends Pick<ArchiveContent, 'files'> {
  /** One page or document by itself. */
  readonly alone?: boolean
}

export interface ChosenDrop {
  readonly site: Site
  /** The drop was made for this deploy. */
  readonly isNew: boolean
  /** The name that a page or a zip is remembered by. */
  readonly name: string | undefined
}

interface WantedDrop {
  /** Undefined when it is to be made. */
  readonly site: Site | undefined
  /** What `--slug` says. */
  readonly slug: string | undefined
  readonly name: string | undefined
}

/** `--slug` names the drop; else the remembered one; else a new one. Questions are asked before anything is read. */
export async function findWanted(
  context: Context,
  project: Project,
  args: Arguments,
  name?: string,
): Promise<WantedDrop> {
  const { api } = context
  const slug = args.text('slug')
  const remembered = project.find(name)
  if (slug === undefined && remembered !== undefined) {
    const site = await rememberedSite(api, remembered)
    await requireLinked(context, args, project, { site, name, option: '--slug' })
    return { site, slug, name }
  }
  const site = slug === undefined ? undefined : await findDrop(api, slug)
  const isLinked = site !== undefined && site.id === remembered?.id && project.isLinkedTo(site.id, name)
  if (site !== undefined && !isLinked) await requireOverwriting(context, args, site)
  return { site, slug, name }
}

/**
 * The drop as it is, or a new one. What the service would refuse, it refuses before that is made, so that a refused first
 * deploy leaves nothing behind. Remembered before anything is sent.
 */
export async function chooseDrop(
  context: Context,
  project: Project,
  wanted: WantedDrop,
  content: () => Promise<DeployedContent> | DeployedContent,
): Promise<ChosenDrop> {
  const { api, terminal } = context
  const { slug, name } = wanted
  const remembered = project.find(name)
  if (slug === undefined && wanted.site !== undefined) return { site: wanted.site, isNew: false, name }
  const existing = wanted.site ?? (slug === undefined ? await findUnfinished(context, project, name) : undefined)
  if (existing === undefined) {
    const { files, alone = false } = await content()
    await compareWithLive(context, files, { slug, remembered: undefined, alone })
  }
  const site = existing ?? (await (slug === undefined ? inventDrop(context, project, name) : createDrop(context, slug)))
  if (remembered === undefined || (await mayForget(api, remembered, site)))
    await project.remember({ id: site.id, slug: site.slug }, name)
  else terminal.note(`This folder stays linked to ${remembered.slug}; "dropway link ${site.slug}" changes that.`)
  return { site, isNew: wanted.site === undefined && site.live_version_id === null, name }
}

/**
 * A drop with a random slug. It is noted before it is made: a client that is killed in between, or that never hears
 * the answer, finds it with the next deploy.
 */
async function inventDrop(context: Context, project: Project, name: string | undefined): Promise<Site> {
  const begun = project.unfinished(name)
  for (let tries = 1; ; tries++) {
    const slug = tries === 1 && begun !== undefined ? begun : randomSlug()
    project.announce(slug, name)
    try {
      return await createDrop(context, slug)
    } catch (error) {
      if (error instanceof ApiFailure && error.status < 500) await project.forget(name)
      if (!(error instanceof CliError) || error.code !== 'slug_taken' || tries === MAX_SLUG_TRIES) throw error
    }
  }
}

/** The drop that a deploy from here made or was about to make when it was cut short. */
async function findUnfinished({ api }: Context, project: Project, name: string | undefined): Promise<Site | undefined> {
  const begun = project.unfinished(name)
  return begun === undefined ? undefined : findDrop(api, begun)
}

async function createDrop({ api, terminal }: Context, slug: string): Promise<Site> {
  const site = await api.createSite({ slug }).catch(async (error: unknown) => {
    // The answer to an attempt that made it may have been lost.
    const own = error instanceof CliError ? await ownAfter(api, error, slug) : undefined
    if (own === undefined) throw error
    return own
  })
  terminal.note(`New drop ${site.slug}`)
  return site
}

async function ownAfter(api: Context['api'], error: CliError, slug: string): Promise<Site | undefined> {
  return error.code === 'slug_taken' || error.code === 'unreachable' ? findDrop(api, slug) : undefined
}

/** What a folder was linked to stays, unless there was nothing or it is gone. */
async function mayForget(api: Context['api'], remembered: RememberedDrop, site: Site): Promise<boolean> {
  if (remembered.id === site.id) return true
  return (await findDrop(api, remembered.id)) === undefined
}

/** Another person, or another folder, published what is there. CI names the drop in its own script. */
async function requireOverwriting({ terminal }: Context, args: Arguments, site: Site): Promise<void> {
  if (site.live_version_id === null || args.flag('yes')) return
  if (terminal.unattended) {
    terminal.note(`${site.slug} was not published from this folder before.`)
    return
  }
  const answer = await terminal.confirm(
    `${site.slug} has content that was not published from this folder. Publish over it?`,
  )
  if (answer === true) return
  const hint =
    answer === undefined
      ? `${site.slug} has content that was not published from this folder. Say --yes to publish over it, or link the folder once: dropway link ${site.slug}`
      : 'Nothing was published.'
  throw new CliError(hint, answer === undefined ? exitCodes.usage : exitCodes.failed, 'not_linked')
}

async function rememberedSite(api: Context['api'], { id, slug }: RememberedDrop): Promise<Site> {
  try {
    return await api.readSite(id)
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 404) throw error
    throw new CliError(
      `The drop ${slug} that .dropway.json remembers is gone or belongs to another account. Name a drop with --slug, or forget it with "dropway unlink" to publish a new one.`,
      exitCodes.failed,
      'not_found',
    )
  }
}
