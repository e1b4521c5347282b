/** A folder as it may be published: read with a progress line, and refused when it holds what must not be public. */
import { stat } from 'node:fs/promises'
import { errors } from '../../shared/contracts/errors.ts'
import type { Context } from '../terminal/command.ts'
import { CliError, exitCodes, unreadable } from '../terminal/failure.ts'
import { isExport } from './exports.ts'
import { readFolder, type Folder } from './folder.ts'
import { createProgress } from '../terminal/progress.ts'
import { plain } from '../terminal/terminal.ts'

/** This many files are named one by one; the rest is counted. */
const MAX_NAMED = 10

export async function readPublishable(
  { api, terminal }: Pick<Context, 'api' | 'terminal'>,
  root: string,
  include: readonly string[],
): Promise<Folder> {
  const progress = createProgress(terminal)
  const folder = await readFolder(root, {
    include,
    async onFound(files, bytes) {
      await requireTaken(api, bytes)
      progress.begin('Reading', files, bytes)
    },
    onRead: (bytes) => progress.advance(bytes, 1),
  }).finally(() => progress.finish())
  for (const name of folder.skipped)
    terminal.note(`Left out: ${plain(name)} (a link out of the folder, or no ordinary file)`)
  for (const name of folder.own) terminal.note(`Left out: ${plain(name)} (an export, or a file of the client's own)`)
  refuseSecrets(folder)
  return folder
}

/** Less than this is read in no time; no plan takes less. */
const UNASKED_BYTES = 10_000_000

/** What is larger than the plan takes is refused before it is read. */
async function requireTaken(api: Context['api'], bytes: number): Promise<void> {
  if (bytes <= UNASKED_BYTES) return
  const { upload_bytes: cap } = await api.call<{ upload_bytes: { limit: number } }>('GET', '/usage')
  if (bytes <= cap.limit) return
  const { message, code } = errors.uploadTooLarge(cap.limit)
  throw new CliError(message, exitCodes.planLimit, code)
}

/** A page, a document or a zip that may be published by itself: not too large, and no export. */
export async function requireFileTaken(api: Context['api'], file: string, name: string): Promise<void> {
  try {
    await requireTaken(api, (await stat(file)).size)
    if (!isExport(file)) return
  } catch (error) {
    throw unreadable(name, error)
  }
  throw new CliError(
    `Nothing was published: "${plain(name)}" is an export of your drops, protected ones too.`,
    exitCodes.failed,
    'own_export',
  )
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
