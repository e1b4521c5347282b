import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { instrument } from './instrument.ts'
import { findTargets, ROOT, toRelative } from './targets.ts'

const { MUTATION_FILTERS = '[]', MUTATION_WITNESSES = '[]' } = process.env
const targets = new Map(findTargets(JSON.parse(MUTATION_FILTERS) as string[]).map((target) => [target.file, target]))

const witnesses = JSON.parse(MUTATION_WITNESSES) as string[]

class AsGiven extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => witnesses.indexOf(toRelative(moduleId))
    return files.toSorted((a, b) => place(a) - place(b))
  }
}

export default defineConfig({
  root: ROOT,
  plugins: [
    {
      name: 'mutants',
      enforce: 'pre',
      transform(_code, id) {
        const target = targets.get(toRelative(id))
        return target && { code: instrument(target.source, target.mutants, target.first), map: null }
      },
    },
  ],
  test: {
    include: witnesses,
    sequence: { sequencer: AsGiven },
    runner: 'test/mutation/runner.ts',
    setupFiles: 'test/mutation/setup.ts',
    // What is kept from another run knows other faults.
    fsModuleCache: false,
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 5000,
    // A promise that a fault leaves behind is a fault's, not the run's.
    dangerouslyIgnoreUnhandledErrors: true,
    reporters: ['default'],
  },
})
