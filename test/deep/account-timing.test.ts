/** Whether an e-mail has an account must not show in how long an answer takes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAccountsFixture, refusal, VISIT } from '../support/accounts.ts'
import { ratioProblem } from '../support/duration-ratio.ts'

let fixture: Awaited<ReturnType<typeof createAccountsFixture>>

beforeAll(async () => {
  fixture = await createAccountsFixture(pino({ level: 'silent' }))
})
afterAll(() => fixture.close())

/** Without the work for unknown e-mails it is above 10. */
const MAX_RATIO = 2.5
const settle = (): Promise<unknown> => sleep(20)

/** Each from a network of its own; what was counted before is forgotten, so that no attempt is refused before it is judged. */
const from = (round: number, kind: number) => ({ ...VISIT, ip: `10.${kind}.0.${round}` })
const forgetAttempts = (): Promise<unknown> => fixture.sql`delete from throttles`

test('sign-in does not tell by its time', async () => {
  const { email } = await fixture.newAccount()
  const answers = new Set<string>()
  async function signIn(as: string, round: number, kind: number): Promise<void> {
    answers.add(await refusal(fixture.accounts.signIn({ email: as, password: 'wrong password' }, from(round, kind))))
  }
  const problem = await ratioProblem(
    { rounds: 15, maxRatio: MAX_RATIO, prepare: forgetAttempts, settle },
    (round) => signIn(email, round, 1),
    (round) => signIn(`nobody${round}@example.com`, round, 2),
  )
  expect(problem).toBeUndefined()
  expect([...answers]).toEqual(['wrong_credentials'])
})

test('reset does not tell by its time', async () => {
  let people = 0
  const known = (round: number): string => `reset${round}@example.com`
  const problem = await ratioProblem(
    {
      rounds: 25,
      maxRatio: MAX_RATIO,
      async prepare(round) {
        await fixture.newAccount(known(round))
        people++
        await forgetAttempts()
      },
      settle,
    },
    (round) => fixture.accounts.requestReset(known(round), from(round, 3)),
    (round) => fixture.accounts.requestReset(`nobody${round}@example.com`, from(round, 4)),
  )
  expect(problem).toBeUndefined()
  await expect.poll(async () => (await fixture.sql`select 1 from mails where template = 'reset'`).length).toBe(people)
})
