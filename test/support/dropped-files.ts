/** What people drop on a window: files and folders of this machine, as the desktop hands them to a browser. */
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Page } from 'playwright-core'

/** Lets go of files and folders at a place of the window that has no drop zone, unless told otherwise. */
export async function dropOnWindow(page: Page, paths: readonly string[], at = { x: 8, y: 8 }): Promise<void> {
  const session = await page.context().newCDPSession(page)
  const data = { items: [], files: [...paths], dragOperationsMask: 1 }
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const)
    await session.send('Input.dispatchDragEvent', { type, ...at, data })
  await session.detach()
}

/** Writes files, named by their paths, below a folder; resolves with that folder. */
export async function layFiles(place: string, files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(place, name)), { recursive: true })
    await writeFile(path.join(place, name), content)
  }
  return place
}
