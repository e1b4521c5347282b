/**
 * `npm run test:pages [-- <part of a file's name>]`: every page and every form of the service in Chromium, one after the
 * other: accessible, light, still, with the keyboard, refused and filled in again. A browser that looks at a page takes a
 * hundred times what an answer takes, so these have a command of their own. CI runs it after `npm test`, which keeps what
 * people do with the service in a browser (`test/browser`).
 */
import { defineConfig } from 'vitest/config'
import { PAGES_FILES } from '../support/programs.ts'
import { settingsFor, withQuickPasswords } from '../support/vitest-settings.ts'

export default defineConfig({
  root: new URL('../../', import.meta.url).pathname,
  test: withQuickPasswords(settingsFor(PAGES_FILES)),
})
