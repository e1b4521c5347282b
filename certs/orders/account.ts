/**
 * The one ACME account of all edges. The first edge to come writes the key (SET NX), sealed; the account is registered
 * under a lock and its address kept beside the key, so that the CA is asked once, not once per edge.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import acme from 'acme-client'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import { keys } from '../../shared/redis/keys.ts'
import type { Secrets } from '../../shared/secrets/secrets.ts'
import { acquireOrderLock } from './order-lock.ts'

const SEAL_CONTEXT = 'acme-account'
/** No domain has this name: a host has no colon. */
const LOCK_NAME = 'account:registration'
const LOCK_POLL_MS = 100
const MAX_LOCK_POLLS = 300

const accountSchema = z.object({
  key: z.string(),
  /** Where it is registered: address by directory; a CA that was never used has none. */
  urls: z.record(z.string(), z.string()),
})
type StoredAccount = z.infer<typeof accountSchema>

export interface Account {
  readonly key: string
  readonly url: string
}

export interface AccountDependencies {
  readonly redis: Redis
  readonly secrets: Secrets
  readonly directoryUrl: string
  /** Registers the key at the CA and returns the account's address. */
  register(key: string): Promise<string>
}

export async function openAccount(deps: AccountDependencies): Promise<Account> {
  for (let poll = 0; poll < MAX_LOCK_POLLS; poll++) {
    const stored = await readOrCreate(deps)
    const url = stored.urls[deps.directoryUrl]
    if (url !== undefined) return { key: stored.key, url }
    const lock = await acquireOrderLock(deps.redis, LOCK_NAME)
    if (!lock) {
      await sleep(LOCK_POLL_MS)
      continue
    }
    try {
      return await registerOnce(deps)
    } finally {
      await lock.release()
    }
  }
  throw new Error('the ACME account is being registered by another edge that does not finish')
}

/** The CA may have forgotten the account: it is registered anew, with the same key, which is harmless if it has not. */
export async function forgetRegistration({
  redis,
  secrets,
  directoryUrl,
}: Omit<AccountDependencies, 'register'>): Promise<void> {
  const present = await redis.get(keys.acmeAccount)
  if (present === null) return
  const account = open(secrets, present)
  delete account.urls[directoryUrl]
  await redis.set(keys.acmeAccount, seal(secrets, account))
}

/** Caller holds the lock; another edge may have finished just before. */
async function registerOnce(deps: AccountDependencies): Promise<Account> {
  const stored = await readOrCreate(deps)
  const known = stored.urls[deps.directoryUrl]
  if (known !== undefined) return { key: stored.key, url: known }
  const url = await deps.register(stored.key)
  const account: StoredAccount = { key: stored.key, urls: { ...stored.urls, [deps.directoryUrl]: url } }
  await deps.redis.set(keys.acmeAccount, seal(deps.secrets, account))
  return { key: stored.key, url }
}

async function readOrCreate({ redis, secrets }: AccountDependencies): Promise<StoredAccount> {
  const present = await redis.get(keys.acmeAccount)
  if (present !== null) return open(secrets, present)
  const key = (await acme.crypto.createPrivateEcdsaKey('P-256')).toString()
  await redis.set(keys.acmeAccount, seal(secrets, { key, urls: {} }), 'NX')
  const kept = await redis.get(keys.acmeAccount)
  if (kept === null) throw new Error('Redis has lost the ACME account that was just written')
  return open(secrets, kept)
}

function seal(secrets: Secrets, account: StoredAccount): string {
  return secrets.seal(JSON.stringify(account), SEAL_CONTEXT)
}

function open(secrets: Secrets, sealed: string): StoredAccount {
  return accountSchema.parse(JSON.parse(secrets.open(sealed, SEAL_CONTEXT).toString('utf8')))
}
