/** People: who is calling, and for whom. */
import { siteHost } from '../../shared/http/hosts.ts'
import { addressOf } from '../../shared/settings/settings.ts'
import type { OAuth } from '../doors/oauth/oauth.ts'
import { createAccess, type Access } from '../people/access/access.ts'
import { createCsrf, type Csrf } from '../people/access/csrf.ts'
import { createTokens, type Tokens } from '../people/access/tokens.ts'
import { createAccounts } from '../people/accounts/accounts.ts'
import type { Accounts } from '../people/accounts/contract.ts'
import type { Publishers } from '../drops/publishers/publishers.ts'
import { createPasskeys, type Passkeys } from '../people/factors/passkeys.ts'
import { createFactors, type Factors } from '../people/factors/factors.ts'
import { createNewcomers, type Newcomers } from '../people/newcomers/newcomers.ts'
import { createProviderClient } from '../people/provider/client.ts'
import { createProviderSignIn, type ProviderSignIn } from '../people/provider/provider-sign-in.ts'
import { createOrganisations, type Organisations } from '../people/organisations/organisations.ts'
import type { Drops } from './drops.ts'
import type { Ground } from './ground.ts'
import type { Hooks } from './hooks.ts'

export interface People {
  readonly accounts: Accounts
  readonly organisations: Organisations
  readonly access: Access
  readonly tokens: Tokens
  readonly csrf: Csrf
  readonly factors: Factors
  readonly passkeys: Passkeys
  readonly newcomers: Newcomers
  /** Undefined: no provider is configured. */
  readonly providerSignIn: ProviderSignIn | undefined
}

export function composePeople(
  ground: Ground,
  { browserCookie }: Pick<Drops, 'browserCookie'>,
  {
    hooks,
    oauth,
    publishers,
  }: { hooks: Hooks; oauth: Pick<OAuth, 'actorOf'>; publishers: Pick<Publishers, 'actorOf'> },
): People {
  const { sql, clock, log, config, secrets, enqueueMail } = ground
  const { baseUrl } = config
  const factors = createFactors({ sql, clock, baseUrl, secrets, enqueueMail, hooks })
  const passkeys = createPasskeys({ sql, clock, baseUrl, serviceName: config.look.name, factors, hooks })
  const newcomers = createNewcomers({ sql, clock, baseUrl, secrets, enqueueMail, policy: config.signUp })
  const accounts = createAccounts({
    sql,
    clock,
    log,
    baseUrl,
    secrets,
    enqueueMail,
    hooks,
    factors,
    passkeys,
    newcomers,
    passwordSignIn: config.passwordSignIn,
    personalDataKeptMs: config.personalDataKeptMs,
    settings: config,
    dropUrl: (slug) => addressOf(config, siteHost(slug, config.sitesDomain)),
    // Without a trusted proxy in front, the header is whatever a visitor says.
    geoHeader: config.trustedProxies.length > 0 ? config.geoHeader : undefined,
    anonymousIdOf: browserCookie.read,
  })
  const { provider: settings } = config
  const client = settings && createProviderClient(settings, clock)
  return {
    factors,
    passkeys,
    newcomers,
    accounts,
    providerSignIn:
      settings &&
      client &&
      createProviderSignIn({ sql, clock, log, baseUrl, secrets, settings, client, accounts, hooks }),
    organisations: createOrganisations({ sql, clock, baseUrl, enqueueMail, hooks }),
    access: createAccess({
      sql,
      clock,
      log,
      baseUrl,
      publisher: (token, request) => publishers.actorOf(token, request.ip),
      oauth: (token, request) => oauth.actorOf(token, `${baseUrl}/api/v1`, request.ip),
    }),
    tokens: createTokens({ sql, clock, baseUrl, enqueueMail }),
    csrf: createCsrf({ secrets, baseUrl }),
  }
}
