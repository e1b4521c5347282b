/** Every parser of publishing takes work linear in what a stranger sends. */
import { expect, test } from 'vitest'
import { countWork, growthProblem } from '../../support/counting/growth.ts'
import { cases } from './complexity.cases.ts'

const counted = countWork(new URL('./complexity.cases.ts', import.meta.url))

test.each(Object.entries(cases))('%s', async (name, one) => {
  expect(growthProblem(one, (await counted).get(name))).toBeUndefined()
})
