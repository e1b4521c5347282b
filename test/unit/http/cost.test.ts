/** Control reads bodies, forms and addresses in work linear in their length, whatever they are made of. */
import { expect, test } from 'vitest'
import { countWork, growthProblem } from '../../support/counting/growth.ts'
import { cases } from './cost.cases.ts'

const counted = countWork(new URL('./cost.cases.ts', import.meta.url))

test.each(Object.entries(cases))('%s', async (name, one) => {
  expect(growthProblem(one, (await counted).get(name))).toBeUndefined()
})
