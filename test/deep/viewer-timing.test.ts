/** Whether an address may see a drop must not show in how long an answer takes. Medians of turns, one after the other. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { median } from '../support/figures.ts'
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

async function durationOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

test.each(['code', 'try', 'ask'] as const)(
  '%s does not tell by its time who is on the list',
  async (kind) => {
    const ask = (email: string, round: number) =>
      fixture.desk.answer({ kind, ...fixture.about, email, code: '000000', next: '/' }, `10.${round % 250}.0.7`)
    const durations: [number[], number[]] = [[], []]
    for (let round = 0; round < ROUNDS; round++) {
      // An hour apart, so that no limit answers instead; in turns, so that a busy machine slows both alike.
      fixture.advance(HOUR_MS)
      const turns = [
        () => durationOf(() => ask(fixture.listed, round)).then((ms) => void durations[0].push(ms)),
        () => durationOf(() => ask(`stranger${round}@example.com`, round)).then((ms) => void durations[1].push(ms)),
      ]
      for (const turn of round % 2 === 0 ? turns : turns.toReversed()) {
        await turn()
        // What goes on behind an answer, such as the mail, belongs to neither.
        await sleep(20)
      }
    }
    const ratio = median(durations[0]) / median(durations[1])
    expect(ratio).toBeGreaterThan(1 / MAX_RATIO)
    expect(ratio).toBeLessThan(MAX_RATIO)
  },
  120_000,
)
