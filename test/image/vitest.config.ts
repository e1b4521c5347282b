/** `npm run test:image`: builds the image and starts it in every way. Needs root, buildah and some gigabytes of disk. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  root: new URL('../../', import.meta.url).pathname,
  test: {
    include: ['test/image/*.test.ts'],
    exclude: ['test/image/figures.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 600_000,
    hookTimeout: 600_000,
    teardownTimeout: 30_000,
  },
})
