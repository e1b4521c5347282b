/**
 * How long test files take, in seconds of two quiet cores with the rest of the run beside them (`test/durations.json`). The
 * longest begin first, so that the run does not end with one worker busy and the others idle. A slow machine, and what else
 * it has to do, slows all files; work that has grown slows one. So files are compared with the file in the middle: `npm test`
 * names those that took more than twice their row at the pace of the run; `npm run test:deep -- durations` fails for them,
 * and for a pace that no machine explains.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { median } from './figures.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** A file without a row takes less than this. */
const SHORT_SECONDS = 10
/** Files differ from run to run; work that has grown differs more. */
const SLACK = 2
/** Slower than this is not the machine any more: everything has grown. */
const MAX_PACE = 3
/** Fewer files with a row have no middle. */
const LEAST_FILES = 20

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

/** How many times its row the file in the middle took, among those that have one; at least 1. */
function paceOf(files: readonly Took[]): number {
  const ratios = files
    .filter(({ moduleId }) => rows.has(path.relative(ROOT, moduleId)))
    .map(({ moduleId, seconds }) => seconds / secondsOf(moduleId))
  return ratios.length < LEAST_FILES ? 1 : Math.max(1, median(ratios))
}

/** Sentences about what took longer than the rows allow. */
export function overrun(files: readonly Took[]): string[] {
  const pace = paceOf(files)
  const late = files
    .filter(({ moduleId, seconds }) => seconds > SLACK * pace * secondsOf(moduleId))
    .map(
      ({ moduleId, seconds }) =>
        `${path.relative(ROOT, moduleId)} took ${Math.round(seconds)} s; test/durations.json has ${secondsOf(moduleId)}` +
        (pace > 1 ? `, and half of the files took more than ${pace.toFixed(1)} times their row` : ''),
    )
  if (pace > MAX_PACE) late.push(`Half of the files took more than ${pace.toFixed(1)} times their row.`)
  return late
}

export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => secondsOf(b.moduleId) - secondsOf(a.moduleId))
  }
}
