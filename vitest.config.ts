import { configDefaults, defineConfig } from 'vitest/config'
import { LongFirst } from './test/support/long-first.ts'
import { filesInNeedOf, missingPackages, TEST_FILES } from './test/support/programs.ts'

/** Told by `pretest`, which has tried to install what they need. */
const skipped = filesInNeedOf(missingPackages(), TEST_FILES, import.meta.dirname)

export default defineConfig({
  test: {
    include: TEST_FILES,
    exclude: [...configDefaults.exclude, ...skipped.keys()],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    // Files leave nothing behind in their process, and the next need not load everything again.
    isolate: false,
    // Most files wait for sockets and processes, so a few more than there are cores keep two cores busy.
    maxWorkers: 3,
    sequence: { sequencer: LongFirst },
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 30_000,
    // Patience on a busy machine, not an expectation: a poll ends as soon as it is met.
    expect: { poll: { timeout: 15_000 } },
    reporters: process.env['CI'] ? ['default', './test/support/plain-reporter.ts'] : ['default'],
  },
})
