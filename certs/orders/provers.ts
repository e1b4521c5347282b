/** How a CA is shown that a name is ours: a file on every edge (http-01), or a record in the DNS (dns-01). */
import { announceChallenge, withdrawChallenge, type ChallengeLog } from '../../shared/certificates/challenges.ts'
import { SECOND_MS } from '../../shared/running/clock.ts'
import type { Dns01, Proof } from '../dns/dns01.ts'
import { IssueError } from '../source.ts'
import type { OrderLock } from './order-lock.ts'

/** An edge that hangs for longer loses its place in the list of live edges, or the order fails and is tried again. */
const WAIT_FOR_EDGES_MS = 10 * SECOND_MS

/** What the CA wants to see for one name of an order; `host` is without the label of a wildcard. */
export interface OpenChallenge {
  readonly host: string
  readonly token: string
  readonly answer: string
}

export interface Prover {
  readonly type: 'http-01' | 'dns-01'
  /** Resolves when the CA may look at all of them. */
  announce(challenges: readonly OpenChallenge[]): Promise<void>
  /** Afterwards, whatever came of it. */
  withdraw(challenges: readonly OpenChallenge[]): Promise<void>
}

export function createHttpProver(redis: ChallengeLog): Prover {
  return {
    type: 'http-01',
    async announce(challenges) {
      for (const { token, answer } of challenges)
        if (!(await announceChallenge(redis, token, answer, WAIT_FOR_EDGES_MS)))
          throw new Error('some edge does not answer the challenge yet')
    },
    async withdraw(challenges) {
      for (const { token } of challenges) await withdrawChallenge(redis, token)
    },
  }
}

/** `takeTurn` keeps two orders from writing to the same name at once. */
export function createDnsProver(
  dns: Pick<Dns01, 'announce' | 'withdraw'>,
  takeTurn: () => Promise<Pick<OrderLock, 'release'>>,
): Prover {
  let turn: Pick<OrderLock, 'release'> | undefined
  const proofsOf = (challenges: readonly OpenChallenge[]): Proof[] =>
    challenges.map(({ host, answer }) => ({ host, value: answer }))
  return {
    type: 'dns-01',
    async announce(challenges) {
      try {
        turn = await takeTurn()
        await dns.announce(proofsOf(challenges))
      } catch (error) {
        // The CA was not asked to look: what failed is ours to mend, and its words are for the operator.
        throw error instanceof IssueError
          ? error
          : new IssueError('internal', (error as Error).message, { cause: error })
      }
    },
    async withdraw(challenges) {
      if (turn === undefined) return
      try {
        await dns.withdraw(proofsOf(challenges))
      } finally {
        await turn.release()
      }
    },
  }
}
