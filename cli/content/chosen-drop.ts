/** Which drop a command is about. */
import { nearestName } from '../../shared/values/nearest-name.ts'
import type { Arguments, Context } from '../terminal/command.ts'
import { CliError, exitCodes, usageError } from '../terminal/failure.ts'
import type { Site } from '../terminal/json-output.ts'
import { findProjectFolder, openProject, type Project } from './project/project.ts'

/** The project that this folder belongs to: the nearest upwards, or a new one here. */
export function openNearestProject({
  cwd,
  url,
  settings,
}: Pick<Context, 'cwd' | 'url' | 'settings'>): Promise<Project> {
  return openProject(findProjectFolder(cwd) ?? cwd, url, settings.configDir)
}

/** `--drop <slug|id>`, or the drop of this folder. One that is to be changed must have been linked by this person. */
export async function chosenDrop(context: Context, args: Arguments, use: 'shows' | 'changes'): Promise<Site> {
  const { api } = context
  const named = args.text('drop')
  if (named !== undefined) return requireDrop(api, named)
  const project = await openNearestProject(context)
  const remembered = project.find()
  if (remembered === undefined)
    throw usageError(
      'No drop is remembered in this folder. Name one with --drop <slug>, link one with "dropway link <slug>", or run "dropway deploy" first.',
    )
  const site = await api.readSite(remembered.id)
  if (use === 'changes') await requireLinked(context, args, project, { site, option: '--drop' })
  return site
}

interface Proposal {
  /** What `.dropway.json` names. */
  readonly site: Site
  /** The name of a page or a zip. */
  readonly name?: string | undefined
  /** What names a drop on the command line. */
  readonly option: '--drop' | '--slug'
}

/**
 * A repository may come from anyone, and its `.dropway.json` with it: the first time on this machine the person is
 * asked whether the folder really belongs to that drop of theirs.
 */
export async function requireLinked(
  { terminal }: Pick<Context, 'terminal'>,
  args: Arguments,
  project: Project,
  { site, name, option }: Proposal,
): Promise<void> {
  if (project.isLinkedTo(site.id, name)) return
  const what = `${name === undefined ? 'This folder was' : `"${name}" was`} not linked to ${site.slug} on this machine; only its .dropway.json names that drop.`
  const answer = args.flag('yes') || (await terminal.confirm(`${what} Is it yours to change from here?`))
  if (answer === undefined)
    throw new CliError(`${what} Name the drop with ${option} ${site.slug}.`, exitCodes.usage, 'not_linked')
  if (!answer) throw new CliError('Nothing was changed.', exitCodes.failed, 'not_linked')
  project.link(site.id, name)
}

export async function findDrop(api: Context['api'], slugOrId: string): Promise<Site | undefined> {
  return (await api.listSites()).find((site) => site.slug === slugOrId || site.id === slugOrId)
}

export async function requireDrop(api: Context['api'], named: string): Promise<Site> {
  const sites = await api.listSites()
  const found = sites.find((site) => site.slug === named || site.id === named)
  if (found) return found
  const meant = nearestName(
    named,
    sites.map((site) => site.slug),
  )
  const hint = meant === undefined ? '"dropway list" shows yours.' : `Did you mean "${meant}"?`
  throw new CliError(`You have no drop "${named}". ${hint}`, exitCodes.failed, 'not_found')
}

/** Asks before something that cannot be undone; without a terminal, --yes has to say so. */
export async function confirmed(
  { terminal }: Pick<Context, 'terminal'>,
  args: Arguments,
  question: string,
): Promise<void> {
  if (args.flag('yes')) return
  const answer = await terminal.confirm(question)
  if (answer === undefined) throw usageError('There is no one to ask here. Say --yes if you mean it.')
  if (!answer) throw new CliError('Nothing was changed.', exitCodes.failed, 'declined')
}
