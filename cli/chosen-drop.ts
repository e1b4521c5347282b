/** Which drop a command is about. */
import type { Site } from './api-client.ts'
import type { Arguments, Context } from './command.ts'
import { CliError, exitCodes, usageError } from './failure.ts'
import { openProject } from './project.ts'

/** `--drop <slug|id>`, or the drop of this folder. */
export async function chosenDrop({ api, cwd, settings }: Context, args: Arguments): Promise<Site> {
  const named = args.text('drop')
  if (named !== undefined) return (await findDrop(api, named)) ?? missing(named)
  const remembered = (await openProject(cwd, settings.url)).find()
  if (remembered === undefined)
    throw usageError(
      'No drop is remembered in this folder. Name one with --drop <slug>, or run "dropway deploy" first.',
    )
  return api.readSite(remembered.id)
}

export async function findDrop(api: Context['api'], slugOrId: string): Promise<Site | undefined> {
  return (await api.listSites()).find((site) => site.slug === slugOrId || site.id === slugOrId)
}

function missing(named: string): never {
  throw new CliError(`You have no drop "${named}". "dropway list" shows yours.`, exitCodes.failed, 'not_found')
}
