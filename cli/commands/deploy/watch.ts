/** `dropway deploy --watch`: publishes to a named preview whenever a file changes, until it is stopped. */
import { watch } from 'node:fs/promises'
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

/** Publishes once, and again after each change. A publish that fails is told, and the next change tries again. */
export async function watchFolder(
  { terminal }: Pick<Context, 'terminal'>,
  folder: string,
  publish: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  let running = Promise.resolve()
  const again = (): void => {
    running = running.then(publish).catch((error: unknown) => {
      terminal.note(error instanceof Error ? error.message : String(error))
    })
  }
  terminal.note(`Watching ${path.basename(folder)}. Stop with Ctrl-C.`)
  try {
    for await (const { filename } of watch(folder, { recursive: true, signal })) {
      if (filename === null || isIgnored(filename)) continue
      clearTimeout(timer)
      timer = setTimeout(again, QUIET_MS)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    clearTimeout(timer)
    await running
  }
}
