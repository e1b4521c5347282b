/** SIGNUP and ANONYMOUS: who may come in without being let in by someone. */
import { isHostname } from '../../../shared/http/hosts.ts'
import type { EnvReader } from '../../../shared/settings/env.ts'

export type SignUpPolicy =
  | { readonly kind: 'open' }
  /** An organisation's invitation makes an account. */
  | { readonly kind: 'invited' }
  /** Only the operator makes accounts. */
  | { readonly kind: 'closed' }
  /** Addresses at one of these domains, exactly: not at names below them. */
  | { readonly kind: 'domains'; readonly domains: readonly string[] }

const WORDS = ['open', 'invited', 'closed'] as const

/** Undefined when it is none of these. */
export function parseSignUp(text: string): SignUpPolicy | undefined {
  const word = WORDS.find((candidate) => candidate === text.trim().toLowerCase())
  if (word !== undefined) return { kind: word }
  const entries = text.split(',').map((entry) => entry.trim().toLowerCase())
  const domains = entries.map((entry) => entry.slice(1))
  const areDomains = entries.every(
    (entry) => entry.startsWith('@') && entry.includes('.') && isHostname(entry.slice(1)),
  )
  return areDomains ? { kind: 'domains', domains: [...new Set(domains)] } : undefined
}

export function readSignUp(env: EnvReader): SignUpPolicy {
  const given = env.text('SIGNUP', 'open')
  return (
    parseSignUp(given) ??
    env.problem(`SIGNUP must be open, invited, closed, or domains such as @example.com,@example.org, not "${given}"`, {
      kind: 'closed',
    })
  )
}

/** Does a stranger find a form to sign up with? */
export function showsSignUp({ kind }: SignUpPolicy): boolean {
  return kind === 'open' || kind === 'domains'
}
