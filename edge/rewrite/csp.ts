/**
 * A page's own Content-Security-Policy would block what we add to the page. It is extended by exactly that,
 * and by nothing where it already allows it; nothing that the publisher allowed is taken away.
 */
import { CSP_LIMITS } from '../../shared/contracts/limits.ts'
import type { Snippets } from '../context.ts'

export type CspNeeds = Snippets['csp']

/** Directives that govern a kind of source, the most specific one first (CSP 3 §6.8). */
const GOVERNED_BY: readonly (readonly [keyof CspNeeds, readonly string[]])[] = [
  ['scriptSrc', ['script-src-elem', 'script-src', 'default-src']],
  ['connectSrc', ['connect-src', 'default-src']],
  ['imgSrc', ['img-src', 'default-src']],
  ['styleSrc', ['style-src-elem', 'style-src', 'default-src']],
  ['frameSrc', ['frame-src', 'child-src', 'default-src']],
]

/** Name that a need gets when only `default-src` governs it. */
const OWN_DIRECTIVE: Readonly<Record<keyof CspNeeds, string>> = {
  scriptSrc: 'script-src',
  connectSrc: 'connect-src',
  imgSrc: 'img-src',
  styleSrc: 'style-src',
  frameSrc: 'frame-src',
}

const { policies: MAX_POLICIES, chars: MAX_POLICY_CHARS } = CSP_LIMITS.extended

/** A header value, which may hold several policies separated by commas: all of them apply, so all are extended. */
export function extendPolicies(header: string, needs: CspNeeds): string {
  const policies = header.split(',', MAX_POLICIES + 1)
  if (policies.length > MAX_POLICIES || header.length > MAX_POLICY_CHARS) return header
  return policies
    .map((policy) => extendPolicy(policy, needs))
    .filter((policy) => policy !== '')
    .join(', ')
}

export function extendPolicy(policy: string, needs: CspNeeds): string {
  const directives = parsePolicy(policy)
  for (const [need, governing] of GOVERNED_BY) {
    const name = governing.find((candidate) => directives.has(candidate))
    const allowed = name === undefined ? undefined : directives.get(name)
    if (name === undefined || allowed === undefined) continue
    const missing = missingSources(allowed, needs[need])
    if (missing.length === 0) continue
    // `default-src` itself stays narrow: only the one kind that we need gets a directive of its own.
    directives.set(name === 'default-src' ? OWN_DIRECTIVE[need] : name, [
      ...allowed.filter((source) => !isNone(source)),
      ...missing,
    ])
  }
  return written(directives)
}

/** Each policy that names frames allows this origin too; one without a word about them allows it already. */
export function withAncestor(header: string, origin: string): string {
  return header
    .split(',')
    .map((policy) => {
      const directives = parsePolicy(policy)
      const allowed = directives.get('frame-ancestors')
      if (allowed === undefined) return policy.trim()
      directives.set('frame-ancestors', [...allowed.filter((source) => !isNone(source)), origin])
      return written(directives)
    })
    .join(', ')
}

function written(directives: ReadonlyMap<string, readonly string[]>): string {
  return [...directives].map(([name, sources]) => [name, ...sources].join(' ')).join('; ')
}

/** The first directive of a name counts, later ones are ignored, as in a browser. */
function parsePolicy(policy: string): Map<string, readonly string[]> {
  const directives = new Map<string, readonly string[]>()
  for (const part of policy.split(';')) {
    const [name, ...sources] = part.trim().split(/\s+/)
    if (name && !directives.has(name.toLowerCase())) directives.set(name.toLowerCase(), sources)
  }
  return directives
}

/**
 * A hash next to 'unsafe-inline' switches 'unsafe-inline' off (CSP 3 §6.7.3.3) and would break the page's own
 * inline code, so where that is in force no hash is added.
 */
function missingSources(allowed: readonly string[], needed: readonly string[]): readonly string[] {
  const inlineIsOpen =
    allowed.some((source) => source.toLowerCase() === "'unsafe-inline'") &&
    !allowed.some((source) => /^'(?:nonce-|sha(?:256|384|512)-|strict-dynamic')/i.test(source))
  return needed.filter((source) => !allowed.includes(source) && !(inlineIsOpen && source.startsWith("'sha")))
}

function isNone(source: string): boolean {
  return source.toLowerCase() === "'none'"
}
