/** What the dashboard asks of the rest of the control plane, and nothing more. */
import type { Clock } from '../../shared/clock.ts'
import type { Access } from '../accounts/access.ts'
import type { Accounts } from '../accounts/contract.ts'
import type { Csrf } from '../accounts/csrf.ts'
import type { Anonymous } from '../anonymous/anonymous.ts'
import type { Billing } from '../billing/billing.ts'
import type { BotCheck } from '../anonymous/bot-check.ts'
import type { BrowserCookie } from '../anonymous/browser-cookie.ts'
import type { ControlConfig } from '../config.ts'
import type { Pool } from '../database/sql.ts'
import type { Domains } from '../domains/domains.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import type { Gallery } from '../gallery/gallery.ts'
import type { DeviceGrants } from '../oauth/device.ts'
import type { OAuth } from '../oauth/oauth.ts'
import type { Organisations } from '../organisations/organisations.ts'
import type { Publishing } from '../publishing/contract.ts'
import type { Sites } from '../sites/sites.ts'
import type { Versions } from '../sites/versions.ts'
import type { Trust } from '../trust/trust.ts'

export interface DashboardServices {
  readonly config: Pick<ControlConfig, 'baseUrl' | 'sitesDomain' | 'publicPort' | 'personalDataKeptMs'>
  readonly clock: Clock
  readonly sql: Pool
  readonly access: Pick<Access, 'sessionActor'>
  readonly accounts: Accounts
  readonly csrf: Csrf
  readonly organisations: Organisations
  readonly sites: Pick<Sites, 'choose' | 'list' | 'get' | 'create' | 'patch' | 'delete' | 'dailyViews' | 'usage'>
  readonly versions: Pick<Versions, 'publish' | 'publishNew' | 'list' | 'promote' | 'changes'>
  readonly publishing: Pick<Publishing, 'receive' | 'readBlob'>
  readonly anonymous: Pick<
    Anonymous,
    'admit' | 'publish' | 'publishText' | 'list' | 'findClaim' | 'claimLink' | 'capBytes'
  >
  readonly browserCookie: BrowserCookie
  readonly limiter: RateLimiter
  readonly botCheck: Pick<BotCheck, 'startToken'>
  readonly domains: Pick<Domains, 'list' | 'get' | 'add' | 'check' | 'makeMain' | 'remove' | 'count'>
  readonly trust: Pick<Trust, 'takedown' | 'restore' | 'report' | 'openQueue' | 'dismiss' | 'search'>
  readonly gallery: Pick<Gallery, 'list'>
  readonly oauth: Pick<OAuth, 'listGrants' | 'revokeGrant'> & { readonly device: Pick<DeviceGrants, 'find' | 'decide'> }
  readonly billing: Pick<Billing, 'checkout' | 'portal' | 'overview' | 'returned' | 'subscriptionsOf'>
}
