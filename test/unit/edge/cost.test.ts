/** What a visitor says is read in work linear in its length, up to the most that the edge lets in. */
import { describe, expect, test } from 'vitest'
import { countWork, growthProblem } from '../../support/counting/growth.ts'
import { cases, sites } from './cost.cases.ts'

const counted = countWork(new URL('./cost.cases.ts', import.meta.url))

test.each(Object.entries(cases))('%s', async (name, one) => {
  expect(growthProblem(one, (await counted).get(name))).toBeUndefined()
})

/** Beside one long segment, each of thousands may cost a look-up, and no more. */
const MAX_TIMES_ONE_SEGMENT = 4

describe('a path of thousands of segments costs no more than a long one', () => {
  test.each(['read', ...Object.keys(sites).map((site) => `located in ${site}`)])('%s', async (what) => {
    const [many, one] = ['many segments', 'one segment'].map(async (path) =>
      (await counted).get(`${path}: ${what}`)?.at(-1),
    )
    expect(await many).toBeLessThanOrEqual(MAX_TIMES_ONE_SEGMENT * ((await one) ?? 0))
  })
})
