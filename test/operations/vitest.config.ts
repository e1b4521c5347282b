/**
 * `npm run test:operations [-- <part of a file's name>]`: what a machine does when its service is started, stopped, killed,
 * backed up and restored, or stands on a database, a store, a CA and several edges of the operator's own, and what a reader
 * of the guides does with programs of others. Each test starts
 * processes of its own, which takes most of its time, so these have a command of their own. CI runs it after `npm test`.
 */
import { defineConfig } from 'vitest/config'
import { OPERATIONS_FILES } from '../support/programs.ts'
import { settingsFor } from '../support/vitest-settings.ts'

export default defineConfig({
  root: new URL('../../', import.meta.url).pathname,
  test: settingsFor(OPERATIONS_FILES),
})
