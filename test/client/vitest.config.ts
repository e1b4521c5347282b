/** `npm run test:client`: the packed client on every Node that it supports. Fetches Node from the registry; five minutes. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  root: new URL('../../', import.meta.url).pathname,
  test: {
    include: ['test/client/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    testTimeout: 180_000,
    hookTimeout: 180_000,
    teardownTimeout: 30_000,
  },
})
