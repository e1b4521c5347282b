/** The stored answers are git's own. Some of them, since each set is a process; all in a deep run. */
import { expect, test } from 'vitest'
import { IS_DEEP } from '../../../support/depth.ts'
import { askGit } from './ask-git.ts'
import answers from './answers.json' with { type: 'json' }
import { SETS } from './corpus.ts'

const STEP = IS_DEEP ? 1 : 19

test('git says today what the table says', () => {
  const asked = SETS.flatMap((set, index) => (index % STEP === 0 ? [{ set, answer: answers[index] }] : []))
  const said = askGit(asked.map(({ set }) => set))
  expect(asked.filter(({ answer }, index) => answer !== said[index]).map(({ set }) => set)).toEqual([])
})
