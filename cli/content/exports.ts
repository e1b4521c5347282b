/**
 * Exports: archives of all that a person published, protected drops too. They never go up again by accident: the client
 * marks each as its own, knows it by that mark under any name, and writes none into a project unasked.
 */
import { closeSync, existsSync, fstatSync, openSync, readSync, rmSync } from 'node:fs'
import { lstat, open, rename } from 'node:fs/promises'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { LANDING_PAGES } from '../../shared/content/upload-kind.ts'
import { CliError, exitCodes, usageError } from '../terminal/failure.ts'

/** The name of an export for which none was given. */
export const EXPORT_NAME = 'dropway-export.zip'

/** Where the archive's record of its end says how long a comment follows, and how long that record is. */
const END_BYTES = 22
const COMMENT_LENGTH_AT = 20
const END_SIGNATURE = 0x06054b50
/** The comment of the archive: programs that unpack it pass it over. */
const EXPORT_MARK = Buffer.from('Dropway export: every drop of an account. The client never publishes this file.\n')

/** Files that a client is about to finish, or wrote before it marked exports, wherever they are. */
export function isOwnName(name: string): boolean {
  return /(?:^|\/)(?:dropway-export\.zip|\.dropway-export\.\d+\.partial|\.dropway\.json\.\d+)$/.test(name)
}

/** Whether content is an export, from its last bytes. */
export function endsLikeExport(content: Buffer): boolean {
  return content.subarray(-EXPORT_MARK.length).equals(EXPORT_MARK)
}

/** Whether a file is an export; reads its last bytes only. */
export function isExport(file: string): boolean {
  const descriptor = openSync(file, 'r')
  try {
    const { size } = fstatSync(descriptor)
    const end = Buffer.alloc(EXPORT_MARK.length)
    if (size < end.length) return false
    readSync(descriptor, end, 0, end.length, size - end.length)
    return endsLikeExport(end)
  } finally {
    closeSync(descriptor)
  }
}

/** Why an export must be asked for before it is written to this file; undefined when nothing speaks against it. */
export async function objectionTo(file: string, home: string): Promise<string | undefined> {
  const there = await lstat(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw usageError(`"${file}" cannot be written (${error.code ?? error.message}).`)
  })
  if (there !== undefined && !there.isFile())
    throw usageError(`"${file}" is no ordinary file. Name another, or "-" for stdout.`)
  if (there !== undefined) return `${file} exists.`
  const project = projectAround(path.dirname(file), home)
  return project && `${project} is a project, and an export holds every drop, protected ones too.`
}

/** What marks a folder whose files people publish or share. */
const PROJECT_MARKS = ['.dropway.json', '.git', 'package.json', ...LANDING_PAGES]

/** The nearest folder upwards that is a project. The home folder is none, whatever lies in it. */
function projectAround(from: string, home: string): string | undefined {
  for (let folder = from; folder !== home && folder !== path.dirname(folder); folder = path.dirname(folder))
    if (PROJECT_MARKS.some((name) => existsSync(path.join(folder, name)))) return folder
  return undefined
}

/** Writes an export whole or not at all, for its owner alone to read; returns its size. */
export async function writeExport(archive: AsyncIterable<Buffer>, file: string): Promise<number> {
  // A half-written archive never stands under the final name, and nothing that is there is opened.
  const partial = path.join(path.dirname(file), `.dropway-export.${process.pid}.partial`)
  const cleanUp = (): void => rmSync(partial, { force: true })
  // Ctrl-C ends the process in the middle of it.
  process.once('exit', cleanUp)
  try {
    cleanUp()
    // Opened before anything can fail: an opening under way would make the file after it was cleaned up.
    const output = (await open(partial, 'wx', 0o600)).createWriteStream()
    await pipeline(marked(archive), output)
    await rename(partial, file)
    return output.bytesWritten
  } finally {
    process.off('exit', cleanUp)
    cleanUp()
  }
}

/** The archive with the mark as its comment; its last bytes are held back until they are known to be the last. */
export async function* marked(archive: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held = Buffer.alloc(0)
  for await (const chunk of archive) {
    const all = Buffer.concat([held, chunk])
    const cut = Math.max(0, all.length - END_BYTES)
    if (cut > 0) yield all.subarray(0, cut)
    held = all.subarray(cut)
  }
  if (held.length < END_BYTES || held.readUInt32LE(0) !== END_SIGNATURE)
    throw new CliError('The service sent no whole archive. Run the command again.', exitCodes.failed, 'bad_export')
  const end = Buffer.from(held)
  end.writeUInt16LE(EXPORT_MARK.length, COMMENT_LENGTH_AT)
  yield Buffer.concat([end, EXPORT_MARK])
}
