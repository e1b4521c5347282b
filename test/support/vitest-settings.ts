/** How test files are run, whichever command runs them. */
import { configDefaults, type ViteUserConfig } from 'vitest/config'
import { IS_DEEP } from './depth.ts'
import { LongFirst } from './durations.ts'
import { filesInNeedOf, missingPackages } from './programs.ts'
import { leaveSurroundings } from './surroundings.ts'

const ROOT = new URL('../../', import.meta.url).pathname

/** For the commands that sign thousands of people in: see `quick-passwords.ts`. A deep run pays for each of them. */
export function withQuickPasswords(settings: NonNullable<ViteUserConfig['test']>): NonNullable<ViteUserConfig['test']> {
  // The processes of the tests, and what this one starts for all of them, read it there.
  if (!IS_DEEP) process.env['QUICK_PASSWORDS'] = '1'
  return settings
}

/** The parts of an instance wait for one another so many times as long: machines that others use stand still for seconds. */
const PATIENCE = '5'

/** Files in need of a program that is missing are left out: `pretest` has tried to install it, and has told which. */
export function settingsFor(files: readonly string[]): NonNullable<ViteUserConfig['test']> {
  process.env['PATIENCE'] ??= PATIENCE
  leaveSurroundings()
  const skipped = filesInNeedOf(missingPackages(), files, ROOT)
  return {
    include: [...files],
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
    testTimeout: 600_000,
    hookTimeout: 600_000,
    teardownTimeout: 120_000,
    // A poll ends as soon as it is met.
    expect: { poll: { timeout: 120_000 } },
    reporters: [
      'default',
      './test/support/durations-reporter.ts',
      ...(process.env['CI'] ? ['./test/support/plain-reporter.ts'] : []),
    ],
  }
}
