/** OIDC_*: the provider of OpenID Connect by which people sign in, and what its groups mean here. */
import { isLoopbackName } from '../../../shared/http/ip.ts'
import { MINUTE_MS } from '../../../shared/running/clock.ts'
import type { EnvReader } from '../../../shared/settings/env.ts'

export const GROUP_ROLES = ['admin', 'member'] as const
export type GroupRole = (typeof GROUP_ROLES)[number]

export interface ProviderSettings {
  /** Exactly as the provider names itself. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string | undefined
  /** On the button. */
  readonly name: string
  /** The role that a group of the provider has in the organisation of the instance. */
  readonly groups: ReadonlyMap<string, GroupRole>
  /** How often the provider is asked whether a person is still welcome. */
  readonly recheckMs: number
}

export interface SignInSettings {
  readonly provider: ProviderSettings | undefined
  /** Off: nobody comes in by a password, a reset or a passkey. */
  readonly passwordSignIn: boolean
}

export function readSignIn(env: EnvReader): SignInSettings {
  const provider = readProvider(env)
  const passwordSignIn = env.oneOf('PASSWORD_SIGN_IN', ['on', 'off'], 'on') === 'on'
  if (!passwordSignIn && env.optional('OIDC_ISSUER') === undefined)
    env.problem('PASSWORD_SIGN_IN=off needs OIDC_ISSUER: otherwise nobody could sign in', undefined)
  return { provider, passwordSignIn }
}

function readProvider(env: EnvReader): ProviderSettings | undefined {
  const issuer = env.optional('OIDC_ISSUER')
  const clientId = env.optional('OIDC_CLIENT_ID')
  const recheckMs = env.durationMs('OIDC_RECHECK', '45s')
  if (recheckMs > MINUTE_MS)
    env.problem('OIDC_RECHECK must be a minute at most: people who left are out by then', undefined)
  const groups = readGroups(env)
  if (issuer === undefined) {
    if (clientId !== undefined) env.problem('OIDC_ISSUER must be set with OIDC_CLIENT_ID', undefined)
    return undefined
  }
  const url = URL.parse(issuer)
  const isPlain = url?.protocol === 'http:' && isLoopbackName(url.hostname)
  if (!url || (url.protocol !== 'https:' && !isPlain) || url.search !== '' || url.hash !== '')
    env.problem(`OIDC_ISSUER must be an https address (http on this machine alone), not "${issuer}"`, undefined)
  if (clientId === undefined) env.problem('OIDC_CLIENT_ID must be set with OIDC_ISSUER', undefined)
  return {
    issuer,
    clientId: clientId ?? '',
    clientSecret: env.optional('OIDC_CLIENT_SECRET'),
    name: env.text('OIDC_NAME', url?.hostname ?? 'your organisation'),
    groups,
    recheckMs,
  }
}

function readGroups(env: EnvReader): ReadonlyMap<string, GroupRole> {
  const groups = new Map<string, GroupRole>()
  for (const entry of env.list('OIDC_GROUPS')) {
    const at = entry.lastIndexOf('=')
    const role = GROUP_ROLES.find((candidate) => candidate === entry.slice(at + 1).trim())
    const group = entry.slice(0, at).trim()
    if (at > 0 && role && group !== '') groups.set(group, role)
    else
      env.problem(
        `OIDC_GROUPS must list "group=admin" or "group=member", separated by commas, not "${entry}"`,
        undefined,
      )
  }
  return groups
}
