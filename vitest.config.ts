import { configDefaults, defineConfig } from 'vitest/config'
import { LongFirst } from './test/support/durations.ts'
import { filesInNeedOf, missingPackages, TEST_FILES } from './test/support/programs.ts'

/** Told by `pretest`, which has tried to install what they need. */
const skipped = filesInNeedOf(missingPackages(), TEST_FILES, import.meta.dirname)

export default defineConfig({
  test: {
    include: TEST_FILES,
    exclude: [...configDefaults.exclude, ...skipped.keys()],
    globalSetup: 'test/support/global-setup.ts',
    setupFiles: ['test/support/seeded.ts'],
    pool: 'forks',
    // Files leave nothing behind in their process, and the next need not load everything again.
    isolate: false,
    // Most files wait for sockets and processes, so a few more than there are cores keep two cores busy.
    maxWorkers: 4,
    sequence: { sequencer: LongFirst },
    // Patience on a busy machine, not an expectation: only what hangs meets it.
    testTimeout: 180_000,
    hookTimeout: 240_000,
    teardownTimeout: 30_000,
    // A poll ends as soon as it is met.
    expect: { poll: { timeout: 60_000 } },
    reporters: [
      'default',
      './test/support/durations-reporter.ts',
      ...(process.env['CI'] ? ['./test/support/plain-reporter.ts'] : []),
    ],
  },
})
