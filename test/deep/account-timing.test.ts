/** Whether an e-mail has an account must not show in how long an answer takes. Medians of turns, one after the other. */
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAccountsFixture, VISIT } from '../support/accounts.ts'

let fixture: Awaited<ReturnType<typeof createAccountsFixture>>

beforeAll(async () => {
  fixture = await createAccountsFixture(pino({ level: 'silent' }))
})
afterAll(() => fixture.close())

async function durationOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work().catch(() => {})
  return performance.now() - start
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

/** In turns, so that a busy machine slows both alike. */
async function ratioOf(
  rounds: number,
  one: (round: number) => Promise<unknown>,
  other: (round: number) => Promise<unknown>,
): Promise<number> {
  const durations: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    durations[0].push(await durationOf(() => one(round)))
    durations[1].push(await durationOf(() => other(round)))
    // What goes on behind an answer belongs to neither.
    await sleep(5)
  }
  return median(durations[0]) / median(durations[1])
}

// Each from a network of its own, so that no attempt is refused before it is judged.
const from = (round: number, kind: number) => ({ ...VISIT, ip: `10.${kind}.0.${round}` })

test('sign-in does not tell by its time', async () => {
  const { email } = await fixture.newAccount()
  const ratio = await ratioOf(
    15,
    (round) => fixture.accounts.signIn({ email, password: 'wrong password' }, from(round, 1)),
    (round) =>
      fixture.accounts.signIn({ email: `nobody${round}@example.com`, password: 'wrong password' }, from(round, 2)),
  )
  // Without the work for unknown e-mails it is above 10.
  expect(ratio).toBeGreaterThan(1 / 2.5)
  expect(ratio).toBeLessThan(2.5)
})

test('reset does not tell by its time', async () => {
  const people = await Promise.all(
    Array.from({ length: 25 }, (_, index) => fixture.newAccount(`reset${index}@example.com`)),
  )
  await fixture.sql`delete from throttles`
  const ratio = await ratioOf(
    people.length,
    (round) => fixture.accounts.requestReset(people[round]!.email, from(round, 3)),
    (round) => fixture.accounts.requestReset(`nobody${round}@example.com`, from(round, 4)),
  )
  expect(ratio).toBeGreaterThan(1 / 2.5)
  expect(ratio).toBeLessThan(2.5)
  await expect
    .poll(async () => (await fixture.sql`select 1 from mails where template = 'reset'`).length)
    .toBe(people.length)
})
