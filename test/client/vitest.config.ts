/** `npm run test:client`: the packed client on every Node that it supports. Fetches Node from the registry; five minutes. */
import { defineConfig } from 'vitest/config'
import { settingsFor } from '../support/vitest-settings.ts'

export default defineConfig({
  root: new URL('../../', import.meta.url).pathname,
  test: settingsFor(['test/client/*.test.ts']),
})
