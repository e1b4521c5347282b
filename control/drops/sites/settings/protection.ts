/**
 * The password of a drop: who may set one, and its only writer. Every change of it locks all visitors out, by the
 * generation; the same password again is no change. It is taken away by another mode of access, which needs no plan.
 */
import { errors } from '../../../../shared/contracts/errors.ts'
import { hashPassword, verifyPassword } from '../../../../shared/secrets/password.ts'
import { plans, upgradeFor, type PlanName } from '../../../ground/terms/plans.ts'
import type { Sql } from '../../../ground/database/sql.ts'
import { endKept } from '../kept/kept-files.ts'
import { updateSite } from '../queries.ts'
import type { SiteFacts } from '../rules.ts'

export interface WantedPassword {
  /** What is compared was read without a lock: a change in between counts as one. */
  readonly before: string | null
  readonly hash: string
}

export function requirePasswordFeature(plan: PlanName): void {
  if (!plans[plan].password)
    throw errors.planFeature(
      'Password protection',
      upgradeFor(({ password }) => password),
    )
}

/**
 * Slow on purpose (argon2): before a transaction, never inside one. The known password keeps its hash. `site` is
 * undefined where the drop is yet to be made.
 */
export async function preparePassword(
  plan: PlanName,
  site: Pick<SiteFacts, 'password_hash'> | undefined,
  password: string,
): Promise<WantedPassword> {
  const before = site?.password_hash ?? null
  requirePasswordFeature(plan)
  const isSame = before !== null && (await verifyPassword(password, before))
  return { before, hash: isSame ? before : await hashPassword(password) }
}

/** The site is locked; its plan may have ended since. Returns whether anything changed: else no one is locked out. */
export async function writePassword(sql: Sql, site: SiteFacts, wanted: WantedPassword, now: Date): Promise<boolean> {
  requirePasswordFeature(site.plan)
  if (wanted.hash === wanted.before && wanted.before === site.password_hash) return false
  const changes = { password_hash: wanted.hash, password_generation: site.password_generation + 1 }
  await updateSite(sql, site.id, changes, now)
  // What was public a moment ago and is no part of the live version does not wait behind the password.
  if (site.password_hash === null) await endKept(sql, site.id, now)
  return true
}
