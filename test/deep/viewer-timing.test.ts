/** Whether an address may see a drop must not show in how long an answer takes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ratioProblem } from '../support/duration-ratio.ts'
import { createVisitDeskFixture, type VisitDeskFixture } from '../support/visit-desk.ts'

const ROUNDS = 60
const HOUR_MS = 3_600_000
/** The same work takes the same time, give or take what a busy machine adds; looking at one list more is not that much. */
const MAX_RATIO = 1.5

let fixture: VisitDeskFixture
beforeAll(async () => {
  fixture = await createVisitDeskFixture()
})
afterAll(() => fixture.close())

test.each(['code', 'try', 'ask'] as const)('%s does not tell by its time who is on the list', async (kind) => {
  const ask = (email: string, round: number) =>
    fixture.desk.answer({ kind, ...fixture.about, email, code: '000000', next: '/' }, `10.${round % 250}.0.7`)
  const problem = await ratioProblem(
    {
      rounds: ROUNDS,
      maxRatio: MAX_RATIO,
      // An hour apart, so that no limit answers instead.
      prepare: async () => fixture.advance(HOUR_MS),
      async settle() {
        await sleep(20)
        await fixture.idle()
      },
    },
    (round) => ask(fixture.listed, round),
    (round) => ask(`stranger${round}@example.com`, round),
  )
  expect(problem).toBeUndefined()
})
