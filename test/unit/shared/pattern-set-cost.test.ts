/** Many patterns asked at once cost no more for being many than what they share with the path. */
import { expect, test } from 'vitest'
import { countWork, growthProblem } from '../../support/counting/growth.ts'
import { cases } from './pattern-set-cost.cases.ts'

const counted = countWork(new URL('./pattern-set-cost.cases.ts', import.meta.url))

test.each(Object.entries(cases))('%s', async (name, one) => {
  expect(growthProblem(one, (await counted).get(name))).toBeUndefined()
})
