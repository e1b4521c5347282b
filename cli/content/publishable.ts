/** A folder as it may be published: read with a progress line, and refused when it holds what must not be public. */
import type { LocalContext } from '../terminal/command.ts'
import { CliError, exitCodes } from '../terminal/failure.ts'
import { readFolder, type Folder } from './folder.ts'
import { createProgress } from '../terminal/progress.ts'
import { plain } from '../terminal/terminal.ts'

/** This many files are named one by one; the rest is counted. */
const MAX_NAMED = 10

export async function readPublishable(
  { terminal }: Pick<LocalContext, 'terminal'>,
  root: string,
  include: readonly string[],
): Promise<Folder> {
  const progress = createProgress(terminal)
  const folder = await readFolder(root, {
    include,
    onFound: (files, bytes) => progress.begin('Reading', files, bytes),
    onRead: (bytes) => progress.advance(bytes, 1),
  }).finally(() => progress.finish())
  for (const name of folder.skipped)
    terminal.note(`Left out: ${plain(name)} (a link out of the folder, or no ordinary file)`)
  refuseSecrets(folder)
  return folder
}

function refuseSecrets({ secrets }: Folder): void {
  const [first] = secrets
  if (!first) return
  const named = secrets.slice(0, MAX_NAMED).map(({ path, what }) => `${plain(path)} looks like ${what}`)
  const more = secrets.length > MAX_NAMED ? `, and ${secrets.length - MAX_NAMED} more` : ''
  throw new CliError(
    `Nothing was published: ${named.join('; ')}${more}. Leave them out in .dropwayignore, or publish one all the same with --include "${plain(first.path)}".`,
    exitCodes.failed,
    'blocked_secrets',
  )
}
