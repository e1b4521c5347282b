/** What the dashboard asks of the rest of the control plane, and nothing more. */
import type { Clock } from '../../../../shared/running/clock.ts'
import type { Access } from '../../../people/access/access.ts'
import type { Accounts } from '../../../people/accounts/contract.ts'
import type { Csrf } from '../../../people/access/csrf.ts'
import type { Tokens } from '../../../people/access/tokens.ts'
import type { Anonymous } from '../../../drops/anonymous/anonymous.ts'
import type { Billing } from '../../../plans/billing/billing.ts'
import type { BotCheck } from '../../../drops/anonymous/bot-check.ts'
import type { BrowserCookie } from '../../../drops/anonymous/browser-cookie.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import type { Pool } from '../../../ground/database/sql.ts'
import type { Domains } from '../../../drops/domains/domains.ts'
import type { RateLimiter } from '../../../ground/http/limits/rate-limit.ts'
import type { Gallery } from '../../../drops/gallery/gallery.ts'
import type { DeviceGrants } from '../../oauth/device.ts'
import type { OAuth } from '../../oauth/oauth.ts'
import type { Search } from '../../search/search.ts'
import type { ServiceStatus } from '../../status/status.ts'
import type { Newcomers } from '../../../people/newcomers/newcomers.ts'
import type { ProviderSignIn } from '../../../people/provider/provider-sign-in.ts'
import type { Organisations } from '../../../people/organisations/organisations.ts'
import type { Factors } from '../../../people/factors/factors.ts'
import type { Passkeys } from '../../../people/factors/passkeys.ts'
import type { Publishers } from '../../../drops/publishers/publishers.ts'
import type { Publishing } from '../../../drops/publishing/contract.ts'
import type { Sites } from '../../../drops/sites/sites.ts'
import type { Webhooks } from '../../../drops/webhooks/webhooks.ts'
import type { Previews } from '../../../drops/sites/kept/previews.ts'
import type { Secrets } from '../../../../shared/secrets/secrets.ts'
import type { Uploads } from '../../../drops/sites/uploads/uploads.ts'
import type { Versions } from '../../../drops/sites/versions/versions.ts'
import type { AccessRequests } from '../../../drops/visiting/requests.ts'
import type { SharedWithMe } from '../../../drops/visiting/shared-with-me.ts'
import type { ReviewFrames } from '../../../drops/review/frames.ts'
import type { Reviewers } from '../../../drops/review/reviewers.ts'
import type { ThreadImages } from '../../../drops/threads/images.ts'
import type { Review } from '../../../drops/threads/review.ts'
import type { ViewerSharing } from '../../../drops/visiting/sharing.ts'
import type { VisitDesk } from '../../../drops/visiting/visit-desk.ts'
import type { Trust } from '../../../drops/trust/trust.ts'

export interface DashboardServices {
  readonly config: Pick<
    ControlConfig,
    | 'allowsAnonymous'
    | 'anonymousLifetimeMs'
    | 'baseUrl'
    | 'contact'
    | 'dataDir'
    | 'freeIdleLifetimeMs'
    | 'look'
    | 'passwordSignIn'
    | 'personalDataKeptMs'
    | 'provider'
    | 'publicPort'
    | 'recoveryWindowMs'
    | 'signUp'
    | 'sitesDomain'
    | 'slugCooldownMs'
    | 'unverifiedLifetimeMs'
  >
  readonly clock: Clock
  readonly search: Pick<Search, 'find'>
  readonly sql: Pool
  readonly access: Pick<Access, 'sessionActor'>
  readonly accounts: Accounts
  readonly factors: Pick<
    Factors,
    | 'stateOf'
    | 'begin'
    | 'begun'
    | 'confirm'
    | 'renewRecoveryCodes'
    | 'remove'
    | 'prove'
    | 'requestRecovery'
    | 'cancelRecovery'
    | 'stopRecovery'
  >
  readonly passkeys: Pick<Passkeys, 'list' | 'remove'>
  readonly publishers: Pick<Publishers, 'add' | 'list' | 'remove'>
  readonly tokens: Pick<Tokens, 'list' | 'create' | 'revoke'>
  readonly csrf: Csrf
  readonly providerSignIn: ProviderSignIn | undefined
  readonly newcomers: Pick<Newcomers, 'peek'>
  readonly organisations: Organisations
  readonly sites: Pick<
    Sites,
    | 'choose'
    | 'findNamed'
    | 'list'
    | 'get'
    | 'create'
    | 'patch'
    | 'delete'
    | 'dailyViews'
    | 'lookAtSlug'
    | 'organisationOf'
    | 'usage'
  >
  readonly versions: Pick<
    Versions,
    'publish' | 'publishNew' | 'liveVersion' | 'list' | 'history' | 'promote' | 'changes' | 'compare' | 'liveManifest'
  >
  readonly previews: Pick<Previews, 'list' | 'named' | 'promote' | 'remove'>
  readonly secrets: Pick<Secrets, 'sign' | 'open'>
  readonly webhooks: Webhooks
  readonly uploads: Pick<Uploads, 'requireWelcome'>
  readonly publishing: Pick<Publishing, 'receive' | 'readBlob' | 'renderMarkdown'>
  readonly anonymous: Pick<
    Anonymous,
    'admit' | 'publish' | 'publishText' | 'list' | 'delete' | 'findClaim' | 'claimLink' | 'capBytes'
  >
  readonly browserCookie: BrowserCookie
  readonly limiter: RateLimiter
  readonly botCheck: Pick<BotCheck, 'startToken'>
  readonly domains: Pick<
    Domains,
    'list' | 'get' | 'add' | 'check' | 'makeMain' | 'remove' | 'count' | 'offersWildcards'
  >
  readonly trust: Pick<Trust, 'takedown' | 'restore' | 'report' | 'openQueue' | 'dismiss' | 'search'>
  readonly gallery: Pick<Gallery, 'list'>
  readonly viewerSharing: ViewerSharing
  readonly review: Review
  readonly threadImages: ThreadImages
  readonly reviewers: Reviewers
  readonly reviewFrames: ReviewFrames
  readonly sharedWithMe: SharedWithMe
  readonly accessRequests: AccessRequests
  readonly visitDesk: Pick<VisitDesk, 'answer' | 'memberLink' | 'provedLink' | 'doorOf'>
  readonly oauth: Pick<OAuth, 'listGrants' | 'revokeGrant'> & { readonly device: Pick<DeviceGrants, 'find' | 'decide'> }
  readonly serviceStatus: ServiceStatus
  readonly billing: Pick<Billing, 'checkout' | 'portal' | 'overview' | 'returned' | 'subscriptionsOf'>
}
