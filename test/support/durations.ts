/**
 * How long test files take, in seconds of two quiet cores with the rest of the run beside them (`test/durations.json`). The
 * longest begin first, so that the run does not end with one worker busy and the others idle. `npm test` names files that
 * took more than twice their row; `npm run test:deep -- durations` fails for them.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** A file without a row takes less than this. */
const SHORT_SECONDS = 10
/** Machines differ, and so do neighbours; work that has grown differs more. */
const SLACK = 2

const rows = new Map<string, number>(
  Object.entries(JSON.parse(readFileSync(new URL('../durations.json', import.meta.url), 'utf8')) as object),
)

export function secondsOf(moduleId: string): number {
  return rows.get(path.relative(ROOT, moduleId)) ?? SHORT_SECONDS
}

export interface Took {
  readonly moduleId: string
  readonly seconds: number
}

/** Sentences about files that took longer than their row allows. */
export function overrun(files: readonly Took[]): string[] {
  return files
    .filter(({ moduleId, seconds }) => seconds > SLACK * secondsOf(moduleId))
    .map(
      ({ moduleId, seconds }) =>
        `${path.relative(ROOT, moduleId)} took ${Math.round(seconds)} s; test/durations.json has ${secondsOf(moduleId)}`,
    )
}

export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => secondsOf(b.moduleId) - secondsOf(a.moduleId))
  }
}
