import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/{unit,integration,acceptance,browser}/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    // Most files wait for sockets and processes, so a few more than there are cores keep two cores busy.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 30_000,
    // Patience on a busy machine, not an expectation: a poll ends as soon as it is met.
    expect: { poll: { timeout: 15_000 } },
    reporters: process.env['CI'] ? ['default', './test/support/plain-reporter.ts'] : ['default'],
  },
})
