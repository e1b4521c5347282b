/**
 * The longest files first, so that the run does not end with one worker busy and the others idle. Vitest knows how long
 * files took only where it has run before; a fresh checkout would go by their size, which says little.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files of half a minute and more, the longest first. Where one is missing, the run only ends a little later. */
const LONG = [
  'browser/dashboard-pages',
  'browser/publish-by-hand',
  'browser/refused-forms',
  'unit/publishing/complexity',
  'acceptance/cli-safety',
  'acceptance/edge-replica',
  'browser/dashboard-organisations',
  'acceptance/cli',
  'acceptance/cli-matrix',
  'acceptance/supervisor',
  'acceptance/state-table',
  'browser/dashboard-account',
  'acceptance/edge-control',
  'browser/what-was-dropped',
  'acceptance/certificates-edges',
  'acceptance/edge-direct',
  'browser/pasted-text',
  'acceptance/guides',
  'unit/fuzz',
  'acceptance/backup',
  'acceptance/certificates',
  'acceptance/lifecycle',
  'browser/billing',
  'acceptance/api-reference',
].map((name) => `/test/${name}.test.ts`)

export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}

function rank({ moduleId }: TestSpecification): number {
  const index = LONG.findIndex((name) => moduleId.endsWith(name))
  return index < 0 ? LONG.length : index
}
