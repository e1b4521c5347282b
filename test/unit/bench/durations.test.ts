/** Which files of a run took too long: compared with the others of it, whatever machine it was on. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { overrun, type Took } from '../../support/durations.ts'

const ROOT = path.resolve(import.meta.dirname, '../../..')
const ROWS = JSON.parse(readFileSync(path.join(ROOT, 'test/durations.json'), 'utf8')) as Record<string, number>
const [FIRST = '', SECOND = ''] = Object.keys(ROWS)
const WITHOUT_ROW = 'test/unit/bench/durations.test.ts'

/** A run of all files with a row and of one without, each of which took so many times as long. */
function runAt(pace: number, grown: Readonly<Record<string, number>> = {}): Took[] {
  return [...Object.entries(ROWS), [WITHOUT_ROW, 10] as const].map(([file, seconds]) => ({
    moduleId: path.join(ROOT, file),
    seconds: pace * seconds * (grown[file] ?? 1),
  }))
}

test.each<[string, Took[], string[]]>([
  ['as the rows say', runAt(1), []],
  ['on a machine half as fast', runAt(2), []],
  ['on one twice as fast', runAt(0.5), []],
  ['one file has grown', runAt(1, { [FIRST]: 2.1 }), [FIRST]],
  ['two have grown, on a slow machine', runAt(2.5, { [FIRST]: 2.1, [SECOND]: 3 }), [FIRST, SECOND]],
  ['one without a row has grown', runAt(1, { [WITHOUT_ROW]: 2.1 }), [WITHOUT_ROW]],
  ['one takes a little longer than others', runAt(1.5, { [FIRST]: 1.9 }), []],
  ['all have grown', runAt(3.1), ['Half']],
  ['one file alone', runAt(2.1).slice(0, 1), [FIRST]],
])('%s', (_, files, named) => {
  const sentences = overrun(files)
  expect(sentences.map((sentence) => sentence.split(' ')[0])).toEqual(named)
})
