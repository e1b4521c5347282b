/** What a folder would change at its drop: asked of the service, which refuses here what it would refuse later. */
import type { Context } from '../terminal/command.ts'
import type { LocalFile } from './folder.ts'
import type { Changes } from '../terminal/json-output.ts'
import type { UploadOptions } from '../service/upload.ts'
import type { RememberedDrop } from './project/project.ts'
import { countOf, plain, type Terminal } from '../terminal/terminal.ts'
import { bytesInWords } from '../../shared/values/sizes.ts'

export function compareWithLive(
  { api }: Context,
  files: readonly Pick<LocalFile, 'path' | 'sha256' | 'size'>[],
  {
    slug,
    remembered,
    alone = false,
    publish = {},
  }: {
    slug: string | undefined
    remembered: RememberedDrop | undefined
    /** One page or document by itself. */
    alone?: boolean
    /** What the publish is asked for that decides where its files go and what has room. */
    publish?: Pick<UploadOptions, 'preview' | 'purge'>
  },
): Promise<Changes> {
  const drop = slug === undefined ? (remembered ? { site_id: remembered.id } : {}) : { slug }
  const list = files.map(({ path, sha256, size }) => ({ path, sha256, size }))
  return api.call('POST', '/sites/check', {
    json: { ...drop, files: list, ...(alone ? { alone } : {}), ...publish },
    repeatable: true,
  })
}

/** Would the publish make the preview? */
export function isNewPreview({ compared_with }: Changes, preview: string | undefined): boolean {
  return preview !== undefined && compared_with !== undefined && compared_with !== 'preview'
}

export function printChanges(terminal: Terminal, changes: Changes, preview?: string): void {
  const { added, changed, removed, unchanged, missing } = changes
  if (isNewPreview(changes, preview) && changes.compared_with === 'live')
    terminal.print(`There is no preview ${preview} yet; beside what is live it has`)
  for (const path of added) terminal.print(`+ ${plain(path)}`)
  for (const path of changed) terminal.print(`~ ${plain(path)}`)
  for (const path of removed) terminal.print(`- ${plain(path)}`)
  terminal.print(
    unchanged
      ? `Nothing differs from what is ${preview === undefined ? 'live' : `at the preview ${preview}`}.`
      : `${added.length} new, ${changed.length} changed, ${removed.length} removed; ${countOf(missing.file_count, 'file')} to send, ${bytesInWords(missing.byte_size)}.`,
  )
}
