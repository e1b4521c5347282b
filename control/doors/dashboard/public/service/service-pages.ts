/**
 * Pages that a public service has: terms, privacy, imprint, help. Each is a Markdown text: the operator's own in
 * `DATA_DIR/pages/<name>.md`, else ours, which says what the software does. A changed file is shown at once.
 */
import { readFileSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { html } from '../../../../../shared/pages/html.ts'
import { onFirstUse } from '../../../../../shared/values/on-first-use.ts'
import { PAGES_FOLDER } from '../../../../ground/config.ts'
import type { Route } from '../../../../ground/http/route.ts'
import type { Handlers } from '../../frame/handlers.ts'
import type { Page } from '../../frame/layout.ts'
import { renderText, type Facts } from '../markdown-text.ts'
import { textPage } from './service-view.ts'

/** Each is a file of `texts/` and an address. */
const NAMES = ['terms', 'privacy', 'imprint', 'help'] as const
type Name = (typeof NAMES)[number]

export const SERVICE_PATHS: readonly string[] = NAMES.map((name) => `/${name}`)

/** What the licence asks for, whatever the service is called and whatever its operator has written. */
const LICENCE_NOTE = html`<p class="small soft">
  This service runs on Dropway, free software under the MIT licence.
</p>`

export function servicePages(handlers: Handlers, facts: Facts, dataDir: string): Route[] {
  return NAMES.map((name) => {
    const text = createText(path.join(dataDir, PAGES_FOLDER, `${name}.md`), name, facts)
    return handlers.page(`/${name}`, () => text())
  })
}

/** The page as it is now: rendered when its file has changed, looked for with every request. */
function createText(file: string, name: Name, facts: Facts): () => Promise<Page> {
  const render = async (source: string): Promise<Page> =>
    textPage(`/${name}`, await renderText(source, facts, name), name === 'imprint' ? LICENCE_NOTE : undefined)
  const ours = onFirstUse(() => render(readFileSync(path.join(import.meta.dirname, 'texts', `${name}.md`), 'utf8')))
  let theirs: { readonly changed: number; readonly page: Page } | undefined
  return async () => {
    const found = await stat(file).catch(ifMissing)
    if (!found) return ours()
    if (theirs?.changed !== found.mtimeMs)
      theirs = { changed: found.mtimeMs, page: await render(await readFile(file, 'utf8')) }
    return theirs.page
  }
}

function ifMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
