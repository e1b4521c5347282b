/** What an assistant without an account is told: how a page is kept, and what to do when it cannot publish. Pure. */
import type { ApiError } from '../../../../shared/contracts/errors.ts'
import { MINUTE_MS, SECOND_MS } from '../../../../shared/running/clock.ts'

/** Arguments of the signed-in tool that would need an owner. */
const OWNED = ['slug', 'id'] as const

/** Why arguments ask for more than a page without an owner can be; undefined when they do not. */
export function ownedArgument(args: unknown, signIn: string): string | undefined {
  if (typeof args !== 'object' || args === null) return undefined
  const name = OWNED.find((owned) => Object.hasOwn(args, owned))
  if (name === undefined) return undefined
  return `${name}: a page without an account gets a random address and cannot be changed. Leave it out, or sign in at ${signIn} to choose an address and to update pages.`
}

/** The sentence that goes to the person. */
export function keepText(claimUrl: string, expiresAt: string, signIn: string): string {
  return `The page ends at ${expiresAt}. To keep it, the person opens ${claimUrl} and signs in; its address stays the same. After that, update it at ${signIn}.`
}

/** A refusal in words; one that is about limits says when to come back, and that signing in ends the wait. */
export function refusalText(problem: ApiError, { now, signIn }: { now: number; signIn: string }): string {
  const id = problem.fields['id']
  const said = `${problem.code}: ${problem.message}`
  switch (problem.code) {
    case 'rate_limited':
      return `rate_limited: Too many pages were published without an account, perhaps by others who share your network. ${comeBack(problem, now)} Or sign in at ${signIn}, where this limit does not apply.`
    case 'proof_required':
      return `proof_required: Publishing without an account looks automated from here. Sign in at ${signIn}, or let the person publish on the service's page.`
    case 'content_rejected':
    case 'upload_too_large':
    case 'plan_limit':
      return `${said} Or sign in at ${signIn}.`
    default:
      return typeof id === 'string' ? `${said} ${id}` : said
  }
}

function comeBack({ headers }: ApiError, now: number): string {
  const waitMs = Number(headers['retry-after'] ?? 1) * SECOND_MS
  const minutes = Math.ceil(waitMs / MINUTE_MS)
  const at = new Date(now + waitMs).toISOString()
  return `Come back in ${minutes === 1 ? 'a minute' : `${minutes} minutes`} (at ${at}).`
}
