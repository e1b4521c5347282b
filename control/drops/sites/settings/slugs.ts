/** Which slugs a drop may have, and how it gets one. */
import { errors, type ApiError } from '../../../../shared/contracts/errors.ts'
import { SLUG_RULE, slugProblem } from '../../../../shared/http/hosts.ts'
import { randomSlug } from '../../../../shared/values/readable-slug.ts'
import type { Sql } from '../../../ground/database/sql.ts'
import * as queries from '../queries.ts'

/** Random slugs do not collide in practice; this bounds the impossible. */
const MAX_SLUG_TRIES = 8

/** Why no drop may have this slug, whether it is free or not; undefined when one may. */
export function slugRefusal(slug: string): ApiError | undefined {
  const problem = slugProblem(slug)
  if (problem === 'invalid') return errors.invalidRequest(`slug: use ${SLUG_RULE}, with no hyphen at either end`)
  if (problem === 'reserved') return errors.slugReserved(slug)
  return problem === 'prefixed' ? errors.slugPrefixed(slug) : undefined
}

export function requireUsableSlug(slug: string): void {
  const refusal = slugRefusal(slug)
  if (refusal) throw refusal
}

export async function takeWantedSlug(tx: Sql, slug: string, siteId: string, now: Date): Promise<void> {
  requireUsableSlug(slug)
  if (!(await queries.takeSlug(tx, slug, siteId, now))) throw errors.slugTaken(slug)
}

/** Gives another random slug to a drop whose first one was taken already. */
export async function takeRandomSlug(tx: Sql, siteId: string, now: Date): Promise<string> {
  for (let attempt = 1; attempt < MAX_SLUG_TRIES; attempt++) {
    const slug = randomSlug()
    if (!(await queries.takeSlug(tx, slug, siteId, now))) continue
    await queries.updateSite(tx, siteId, { slug }, now)
    return slug
  }
  throw new Error('No random address is free')
}
