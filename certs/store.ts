/**
 * Certificates as all edges share them: sealed bundles in Redis, told through the change log. Every write is one
 * script that first checks the order lock, so that a holder who was thought dead cannot undo its successor's work.
 */
import type { Redis } from 'ioredis'
import { openBundle, sealBundle, type CertificateBundle } from '../shared/certificates/bundle.ts'
import { decodeRetryState, type RetryState } from '../shared/certificates/retry.ts'
import { keys, LOG_LENGTH } from '../shared/redis/keys.ts'
import { pairs } from '../shared/redis/pairs.ts'
import type { Secrets } from '../shared/secrets/secrets.ts'
import { decodeDomainWish, encodeDomainWish, encodeStreamMessage, type DomainWish } from '../shared/redis/stream.ts'
import type { OrderLock } from './orders/order-lock.ts'

const PAGE = 1000

/** KEYS: lock, certificates, log, retry, domains. ARGV: token, name, sealed, log length, stream fields… */
const SAVE = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('hset', KEYS[2], ARGV[2], ARGV[3])
redis.call('hdel', KEYS[4], ARGV[2])
redis.call('xadd', KEYS[3], 'MAXLEN', '~', ARGV[4], '*', unpack(ARGV, 5))
return 1`

/** The tombstone of the domain goes too, unless the domain is wanted again by now. */
const REMOVE = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('hget', KEYS[5], ARGV[2]) == ARGV[3] then redis.call('hdel', KEYS[5], ARGV[2]) end
if redis.call('hdel', KEYS[2], ARGV[2]) == 1 then
  redis.call('xadd', KEYS[3], 'MAXLEN', '~', ARGV[4], '*', unpack(ARGV, 5))
end
return 1`

export interface CertificateStore {
  /** Custom domains and whether they want a certificate; one that does not is to give it up. */
  domains(): Promise<Map<string, DomainWish>>
  domain(name: string): Promise<DomainWish>
  bundle(name: string): Promise<CertificateBundle | undefined>
  /** False when the lock was lost meanwhile: another edge is at it. */
  save(name: string, bundle: CertificateBundle, lock: OrderLock): Promise<boolean>
  remove(name: string, lock: OrderLock): Promise<boolean>
  retryStates(): Promise<Map<string, RetryState>>
  retryState(name: string): Promise<RetryState | undefined>
  saveRetryState(name: string, state: RetryState): Promise<void>
  forgetRetryState(name: string): Promise<void>
}

export function createCertificateStore(redis: Redis, secrets: Secrets): CertificateStore {
  const write = async (
    script: string,
    lock: OrderLock,
    name: string,
    argument: string,
    message: string[],
  ): Promise<boolean> => {
    const touched = [lock.key, keys.certificates, keys.log, keys.acmeRetry, keys.domains]
    return (
      (await redis.eval(script, touched.length, ...touched, lock.token, name, argument, LOG_LENGTH, ...message)) === 1
    )
  }
  return {
    domains: async () => new Map((await readHash(redis, keys.domains)).map(([name, value]) => [name, wishOf(value)])),
    domain: async (name) => wishOf(await redis.hget(keys.domains, name)),
    async bundle(name) {
      const sealed = await redis.hget(keys.certificates, name)
      return sealed === null ? undefined : openBundle(secrets, name, sealed)
    },
    save(name, bundle, lock) {
      const sealed = sealBundle(secrets, name, bundle)
      return write(SAVE, lock, name, sealed, encodeStreamMessage({ kind: 'certificate', name, value: sealed }))
    },
    remove: (name, lock) =>
      write(
        REMOVE,
        lock,
        name,
        encodeDomainWish(NOTHING),
        encodeStreamMessage({ kind: 'certificate', name, value: '' }),
      ),
    async retryStates() {
      const states = new Map<string, RetryState>()
      for (const [name, value] of await readHash(redis, keys.acmeRetry)) {
        const state = decodeRetryState(value)
        if (state) states.set(name, state)
      }
      return states
    },
    retryState: async (name) => decodeRetryState(await redis.hget(keys.acmeRetry, name)),
    async saveRetryState(name, state) {
      await redis.hset(keys.acmeRetry, name, JSON.stringify(state))
    },
    async forgetRetryState(name) {
      await redis.hdel(keys.acmeRetry, name)
    },
  }
}

const NOTHING: DomainWish = { wanted: false }

/** What cannot be read asks for nothing, and costs no other domain its certificate. */
function wishOf(value: string | null): DomainWish {
  try {
    return value === null ? NOTHING : decodeDomainWish(value)
  } catch {
    return NOTHING
  }
}

/** In pages: a hash of many thousand names must not hold Redis up. */
async function readHash(redis: Redis, key: string): Promise<[string, string][]> {
  const all = new Map<string, string>()
  let cursor = '0'
  do {
    const [next, flat] = await redis.hscan(key, cursor, 'COUNT', PAGE)
    for (const [name, value] of pairs(flat)) all.set(name, value)
    cursor = next
  } while (cursor !== '0')
  return [...all]
}
