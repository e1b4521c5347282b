/** Who may have an account here: the policy of the operator, and what a person brings along. */
import { DAY_MS } from '../../../shared/running/clock.ts'
import type { SignUpPolicy } from '../../ground/terms/sign-up.ts'

/** How long a link of `admin invite` works. The first owner's works until there is an owner. */
export const SIGN_UP_LINK_MS = 14 * DAY_MS

/** What a person brings along: a link of the operator, one that an organisation has mailed to them, or nothing. */
export type Invited = 'by_operator' | 'by_organisation' | 'by_nobody'

export type Welcome = { readonly isWelcome: true } | { readonly isWelcome: false; readonly why: string }

const WELCOME: Welcome = { isWelcome: true }

export function welcomeOf(policy: SignUpPolicy, email: string, invited: Invited): Welcome {
  if (invited === 'by_operator') return WELCOME
  switch (policy.kind) {
    case 'open':
      return WELCOME
    case 'domains':
      return isAtOneOf(email, policy.domains) ? WELCOME : { isWelcome: false, why: closedInWords(policy) }
    case 'invited':
      return invited === 'by_organisation' ? WELCOME : { isWelcome: false, why: closedInWords(policy) }
    case 'closed':
      return { isWelcome: false, why: closedInWords(policy) }
    default:
      return policy satisfies never
  }
}

/** An account whose address could be changed to any other would make the domains mean nothing. */
export function mayChangeTo(policy: SignUpPolicy, email: string): boolean {
  return policy.kind !== 'domains' || isAtOneOf(email, policy.domains)
}

/** Exactly, without regard to case. */
function isAtOneOf(email: string, domains: readonly string[]): boolean {
  return domains.includes(email.slice(email.lastIndexOf('@') + 1).toLowerCase())
}

/** What a person reads who is not let in. */
export function closedInWords(policy: SignUpPolicy): string {
  switch (policy.kind) {
    case 'domains':
      return `Accounts here are for addresses at ${listed(policy.domains.map((domain) => `@${domain}`))}.`
    case 'invited':
      return 'Accounts here are made by invitation. Open the link in the mail that invited you.'
    default:
      return 'Sign-up is closed here. Ask the people who run this service for an account.'
  }
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}
