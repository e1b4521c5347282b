/** `dropway deploy --watch`: publishes to a named preview whenever a file changes, until it is stopped. */
import { once } from 'node:events'
import { watch } from 'node:fs'
import path from 'node:path'
import type { Context } from '../../terminal/command.ts'

/** Editors write a file in several steps, builds write many files. */
const QUIET_MS = 300
/** The preview that a folder is watched for, where none is named. */
export const WATCHED_PREVIEW = 'watch'

/** What is written by tools and never published must not set off a publish. */
function isIgnored(file: string): boolean {
  return file
    .split(path.sep)
    .some((name) => name === 'node_modules' || name === '.git' || name.startsWith('.dropway.json'))
}

/**
 * Publishes once, and again after each change since that began. The first publish that fails ends the command; a later one
 * is told, and the next change tries again.
 */
export async function watchFolder(
  { terminal }: Pick<Context, 'terminal'>,
  folder: string,
  publish: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  let running = Promise.resolve()
  const again = (): void => {
    if (signal.aborted) return
    running = running.then(publish).catch((error: unknown) => {
      terminal.note(error instanceof Error ? error.message : String(error))
    })
  }
  const watcher = watch(folder, { recursive: true, signal }, (_event, file) => {
    if (file === null || isIgnored(file)) return
    clearTimeout(timer)
    timer = setTimeout(() => void first.then(again, () => {}), QUIET_MS)
  })
  const closed = once(watcher, 'close')
  // What is saved while files are read and sent may be missing in what is published.
  const first = publish()
  const told = first.then(() => terminal.note(`Watching ${path.basename(folder)}. Stop with Ctrl-C.`))
  try {
    await Promise.all([told, closed])
  } finally {
    watcher.close()
    clearTimeout(timer)
    await Promise.allSettled([first, running])
  }
}
