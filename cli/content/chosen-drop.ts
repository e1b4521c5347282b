/** Which drop a command is about. */
import { nearestName } from '../../shared/values/nearest-name.ts'
import type { Arguments, Context } from '../terminal/command.ts'
import { CliError, exitCodes, usageError } from '../terminal/failure.ts'
import type { Site } from '../terminal/json-output.ts'
import { openProject } from './project.ts'

/** `--drop <slug|id>`, or the drop of this folder. */
export async function chosenDrop({ api, cwd, url }: Context, args: Arguments): Promise<Site> {
  const named = args.text('drop')
  if (named !== undefined) return requireDrop(api, named)
  const remembered = (await openProject(cwd, url)).find()
  if (remembered === undefined)
    throw usageError(
      'No drop is remembered in this folder. Name one with --drop <slug>, link one with "dropway link <slug>", or run "dropway deploy" first.',
    )
  return api.readSite(remembered.id)
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
