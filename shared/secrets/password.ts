/**
 * Passwords of accounts and of protected drops: argon2id, kept as a PHC string, so that a later change of
 * the cost leaves the old hashes readable.
 */
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { errors } from '../contracts/errors.ts'
import { createTurns } from '../running/turns.ts'

/** OWASP's second recommended set: 19 MiB, two passes, one lane; about 45 ms of one core. */
const COST = { memoryKib: 19_456, passes: 2, parallelism: 1 } as const
const SALT_BYTES = 16
const TAG_BYTES = 32
/** A stored hash may not ask for more than this: a corrupt record must not eat the machine. */
const MAX_MEMORY_KIB = 65_536
const MAX_PASSES = 10
const MAX_PARALLELISM = 4
/** Node hashes in the pool that also reads files: two of its four threads stay free for them. */
const MAX_RUNNING = 2
/** A caller behind this many would wait for over a second, and is told to come back instead. */
const MAX_WAITING = 64

interface Phc {
  readonly memory: number
  readonly passes: number
  readonly parallelism: number
  readonly salt: Buffer
  readonly tag: Buffer
}

/** Hashes any password, whatever it consists of; its length is the caller's rule (MAX_PASSWORD_CHARS). */
export async function hashPassword(plain: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const { memoryKib, passes, parallelism } = COST
  const tag = await derive(plain, { memory: memoryKib, passes, parallelism, salt, tag: Buffer.alloc(TAG_BYTES) })
  return `$argon2id$v=19$m=${memoryKib},t=${passes},p=${parallelism}$${unpadded(salt)}$${unpadded(tag)}`
}

/** False for a wrong password, and for a stored text that is not one of our hashes. */
export async function verifyPassword(plain: string, phc: string): Promise<boolean> {
  const stored = parsePhc(phc)
  if (!stored) return false
  return timingSafeEqual(await derive(plain, stored), stored.tag)
}

const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{16,86})$/

function parsePhc(text: string): Phc | undefined {
  const match = PHC.exec(text)
  if (!match) return undefined
  const [memory = 0, passes = 0, parallelism = 0] = match.slice(1, 4).map(Number)
  const [salt = '', tag = ''] = match.slice(4)
  const isAffordable =
    parallelism >= 1 &&
    parallelism <= MAX_PARALLELISM &&
    passes >= 1 &&
    passes <= MAX_PASSES &&
    memory >= 8 * parallelism &&
    memory <= MAX_MEMORY_KIB
  if (!isAffordable) return undefined
  return { memory, passes, parallelism, salt: Buffer.from(salt, 'base64'), tag: Buffer.from(tag, 'base64') }
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}

function derive(plain: string, { memory, passes, parallelism, salt, tag }: Phc): Promise<Buffer> {
  // The same letters typed on another keyboard (é as one or two code points) are the same password.
  const message = plain.normalize('NFC')
  return inTurn(
    () =>
      new Promise<Buffer>((resolve, reject) => {
        argon2(
          'argon2id',
          { message, nonce: salt, memory, passes, parallelism, tagLength: tag.length },
          (error, derived) => (error ? reject(error) : resolve(derived)),
        )
      }),
  )
}

/** One queue per process, because what it protects, the thread pool and the memory, is the process's. */
const turns = createTurns(MAX_RUNNING)

async function inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
  if (turns.waiting >= MAX_WAITING)
    throw errors.unavailable('Too many passwords are being checked. Try again in a moment.')
  return turns.take(work)
}
