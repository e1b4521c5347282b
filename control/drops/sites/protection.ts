/** The password of a drop. Every change of it locks all visitors out, by the generation; the same again is none. */
import { hashPassword, verifyPassword } from '../../../shared/password.ts'
import type { SiteFacts } from './rules.ts'

export interface WantedPassword {
  /** What is compared was read without a lock: a change in between counts as one. */
  readonly before: string | null
  /** Null: no password. */
  readonly hash: string | null
}

type Protected = Pick<SiteFacts, 'password_hash' | 'password_generation'>

/** Slow on purpose (argon2): before a transaction, never inside one. The known password keeps its hash. */
export async function preparePassword(
  site: Pick<Protected, 'password_hash'> | undefined,
  password: string | null,
): Promise<WantedPassword> {
  const before = site?.password_hash ?? null
  if (password === null) return { before, hash: null }
  const isSame = before !== null && (await verifyPassword(password, before))
  return { before, hash: isSame ? before : await hashPassword(password) }
}

/** Columns to write; empty when nothing changes, so that nobody is locked out. */
export function protectionChanges(site: Protected, wanted: WantedPassword): Partial<Protected> {
  if (wanted.hash === wanted.before && wanted.before === site.password_hash) return {}
  return { password_hash: wanted.hash, password_generation: site.password_generation + 1 }
}
