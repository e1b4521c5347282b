/**
 * `npm run test:pages [-- <part of a file's name>]`: all that needs a browser. Every page and every form of the service in
 * Chromium, one after the other (accessible, light, still, with the keyboard, refused and filled in again), and what people
 * do with the service there (`test/browser`). A browser that looks at a page takes a hundred times what an answer takes, so
 * these have a command of their own. CI runs it after `npm test`, which starts no browser.
 */
import { defineConfig } from 'vitest/config'
import { PAGES_FILES } from '../support/programs.ts'
import { settingsFor, withQuickPasswords } from '../support/vitest-settings.ts'

export default defineConfig({
  root: new URL('../../', import.meta.url).pathname,
  test: withQuickPasswords(settingsFor(PAGES_FILES)),
})
