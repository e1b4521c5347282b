/** `npm run test:faults [-- <part of a file's name>]`: one after the other, since each wants the machine for itself. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  root: new URL('../../', import.meta.url).pathname,
  test: {
    include: ['test/faults/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    setupFiles: 'test/support/event-loop-report.ts',
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 180_000,
    teardownTimeout: 30_000,
    // Patience on a busy machine, not an expectation: a poll ends as soon as it is met.
    expect: { poll: { timeout: 60_000 } },
  },
})
