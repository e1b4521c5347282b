/**
 * Passwords that are hashed in a moment. People sign in thousands of times in a run, and at the cost that strangers have to
 * pay (45 ms each) a fifth of its processor time went into that. Hashes look as ever, and all processes of a run agree on
 * them. The real cost is paid in the unit tests, in `npm run test:operations`, `test:faults` and `test:deep`.
 */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

const slow = crypto.argon2

/** The least that the algorithm takes: eight blocks of memory for each lane, and one pass. */
const quick: typeof crypto.argon2 = (algorithm, parameters, callback) =>
  slow(algorithm, { ...parameters, memory: 8 * parameters.parallelism, passes: 1 }, callback)

export function hashQuickly(isQuick: boolean): void {
  crypto.argon2 = isQuick ? quick : slow
  syncBuiltinESMExports()
}
