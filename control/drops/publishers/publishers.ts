/**
 * Trusted publishing: a drop trusts a workflow of a forge, and the workflow's own token (OpenID Connect) is exchanged for
 * one of ours (RFC 8693) that publishes to this drop for a quarter of an hour. No secret is kept anywhere.
 */
import { createHash } from 'node:crypto'
import { decodeJwt } from 'jose'
import { MINUTE_MS, SECOND_MS, type Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import { hashSecret, randomSecret } from '../../../shared/secrets/secrets.ts'
import { reachOf, type Actor } from '../../ground/actor.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import type { RateLimiter } from '../../ground/http/limits/rate-limit.ts'
import { PUBLISHER_TOKEN_PREFIX } from '../../people/access/access.ts'
import { recordAudit } from '../../people/audit/audit.ts'
import type { Sites } from '../sites/sites.ts'
import { createIssuerKeys, type FetchOfIssuer } from './issuer-keys.ts'
import * as queries from './queries.ts'
import { issuerOf, judgeRun, REASONS, type Claims, type Judgement, type Provider, type RefusalReason } from './rules.ts'

const TOKEN_LIFETIME_MS = 15 * MINUTE_MS
/** Forges' tokens have one or two thousand characters. */
const MAX_TOKEN_CHARS = 16_000
const MAX_JTI_CHARS = 500
/** A monorepo with a workflow per environment has a few. */
const MAX_PUBLISHERS_PER_SITE = 20
/** Runners of a forge come from few networks. */
const EXCHANGES = { points: 300, windowSeconds: 60 }
/** Anyone can name a drop: what strangers try must not fill its owner's log. */
const RECORDED_REFUSALS = { points: 200, windowSeconds: 3600 }

export interface WantedPublisher {
  readonly provider: Provider
  readonly issuer?: string | undefined
  readonly repository?: string | undefined
  readonly workflow?: string | undefined
  readonly branch?: string | undefined
  readonly environment?: string | undefined
  readonly repository_id?: string | undefined
  readonly owner_id?: string | undefined
  readonly claims?: Readonly<Record<string, string>> | undefined
  readonly pull_requests?: boolean | undefined
}

export interface WorkflowTokenReply {
  readonly access_token: string
  readonly issued_token_type: 'urn:ietf:params:oauth:token-type:access_token'
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly scope: 'publish'
  /** The only preview that it publishes to. */
  readonly preview?: string
}

export interface AskedExchange {
  /** Id or slug of the drop. */
  readonly site: string
  readonly token: string
  /** Limits what is given to this preview; null where the job does not limit itself. */
  readonly preview: string | null
}

/** Why an exchange gave nothing: the caller hears the kind, the audit log the reason. */
export class ExchangeRefused extends Error {
  readonly kind: 'invalid_grant' | 'invalid_request'
  constructor(kind: 'invalid_grant' | 'invalid_request') {
    super(
      kind === 'invalid_grant' ? 'The token was not accepted for this drop.' : 'subject_token is not a usable token.',
    )
    this.kind = kind
  }
}

export interface Publishers {
  add(actor: Actor, siteId: string, wanted: WantedPublisher): Promise<queries.PublisherRow>
  list(actor: Actor, siteId: string): Promise<queries.PublisherRow[]>
  /** What it was given is refused from the next request on. */
  remove(actor: Actor, siteId: string, publisherId: string): Promise<void>
  /** Throws ExchangeRefused alike for every reason; the drop's audit log has the reason. */
  exchange(asked: AskedExchange, ip: string): Promise<WorkflowTokenReply>
  /** Who a token of an exchange speaks for; undefined when it is unknown or has run out. */
  actorOf(token: string, ip: string): Promise<Actor | undefined>
  sweep(): Promise<void>
}

export interface PublishersDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly sites: Pick<Sites, 'requireOwn'>
  readonly limiter: RateLimiter
  readonly baseUrl: string
  readonly trustedIssuers: readonly string[]
  readonly fetchOfIssuer: FetchOfIssuer
}

export function createPublishers(deps: PublishersDependencies): Publishers {
  const { sql, clock, sites, trustedIssuers } = deps
  const now = (): Date => new Date(clock.now())
  return {
    ...createExchange(deps),
    async list(actor, siteId) {
      await sites.requireOwn(sql, actor, siteId)
      return queries.listPublishers(sql, siteId)
    },

    async add(actor, siteId, wanted) {
      const publisher = {
        id: newId('pub', clock.now()),
        siteId,
        createdAt: now(),
        ...workflowOf(wanted, trustedIssuers),
      }
      await transaction(sql, async (tx) => {
        await sites.requireOwn(tx, actor, siteId)
        if ((await queries.listPublishers(tx, siteId)).length >= MAX_PUBLISHERS_PER_SITE)
          throw errors.limitReached(`A drop trusts ${MAX_PUBLISHERS_PER_SITE} workflows at most. Remove one first.`)
        await queries.insertPublisher(tx, { ...publisher, createdBy: actor.userId })
        const { provider, repository, workflow, branch, environment, pullRequests } = publisher
        await recordAudit(tx, {
          at: publisher.createdAt,
          orgId: actor.orgId,
          actor,
          action: 'publisher.added',
          subject: siteId,
          detail: { publisher: publisher.id, provider, repository, workflow, branch, environment, pullRequests },
        })
      })
      return { ...publisher, lastUsedAt: null }
    },

    async remove(actor, siteId, publisherId) {
      await transaction(sql, async (tx) => {
        await sites.requireOwn(tx, actor, siteId)
        const removed = await queries.removePublisher(tx, { id: publisherId, siteId, now: now() })
        if (!removed) throw errors.notFound('publisher')
        await recordAudit(tx, {
          at: now(),
          orgId: actor.orgId,
          actor,
          action: 'publisher.removed',
          subject: siteId,
          detail: { publisher: publisherId, repository: removed.repository },
        })
      })
    },

    async actorOf(token, ip) {
      const found = await queries.findPublisherIdentity(sql, [hashSecret(token), previewHash(token)], now())
      if (!found) return undefined
      const { publisherId, siteId, run, preview, ...identity } = found
      const reach = { ...reachOf(['publish'], [siteId]), preview: preview ?? undefined }
      return { ...identity, reach, via: { kind: 'publisher', publisherId, run }, ip }
    },

    sweep: () => queries.deleteEndedExchanges(sql, now()),
  }
}

/** A registration as it is kept; throws what its author has to mend. */
function workflowOf(wanted: WantedPublisher, trustedIssuers: readonly string[]) {
  const issuer = issuerOf(wanted, trustedIssuers)
  if (issuer === undefined)
    throw errors.invalidRequest(
      wanted.issuer === undefined
        ? 'issuer: name the issuer of the tokens; this provider has none of its own.'
        : 'issuer: this installation does not trust it. Its operator can name it in TRUSTED_ISSUERS.',
    )
  const { claims = {} } = wanted
  const repository = wanted.repository ?? claims['sub']
  if (repository === undefined) throw errors.invalidRequest('repository: name the repository that is trusted.')
  if (wanted.provider !== 'oidc' && !/^[\w.-]+(?:\/[\w.-]+)+$/.test(repository))
    throw errors.invalidRequest('repository: write it as owner/name, as its forge calls it.')
  if (wanted.provider !== 'oidc' && wanted.claims !== undefined)
    throw errors.invalidRequest(
      'claims: these are for the provider oidc; a forge has workflow, branch and environment.',
    )
  return {
    provider: wanted.provider,
    issuer,
    repository,
    workflow: wanted.workflow ?? null,
    branch: wanted.branch ?? null,
    environment: wanted.environment ?? null,
    repositoryId: wanted.repository_id ?? null,
    ownerId: wanted.owner_id ?? null,
    claims,
    pullRequests: wanted.pull_requests ?? false,
  }
}

/** A release that does not know tokens for one preview finds none by this hash: there they would be for the whole drop. */
function previewHash(token: string): string {
  return hashSecret(`preview ${token}`)
}

class Refusal extends Error {
  readonly reason: RefusalReason
  constructor(reason: RefusalReason) {
    super(reason)
    this.reason = reason
  }
}

function createExchange(deps: PublishersDependencies): Pick<Publishers, 'exchange'> {
  const { sql, clock, limiter, baseUrl, trustedIssuers } = deps
  const issuerKeys = createIssuerKeys({ clock, fetch: deps.fetchOfIssuer })
  const now = (): Date => new Date(clock.now())

  /** In a transaction of its own: the refusal that follows must not undo it. */
  async function record(site: { id: string; orgId: string }, reason: RefusalReason, ip: string): Promise<void> {
    const isWithin = await limiter.consume('publisher-refused', site.id, RECORDED_REFUSALS).then(
      () => true,
      () => false,
    )
    if (!isWithin) return
    await transaction(sql, (tx) =>
      recordAudit(tx, {
        at: now(),
        orgId: site.orgId,
        actor: { system: 'workflow' },
        action: 'publisher.refused',
        subject: site.id,
        detail: { reason, network: limitKeyOfIp(ip) },
      }),
    )
  }

  /** The publishers of a drop that could be meant, with what the token says once it is known to be its issuer's. */
  async function verified(siteId: string, token: string) {
    if (token.length > MAX_TOKEN_CHARS) throw new Refusal('oversized')
    const { iss = '' } = unverifiedClaims(token)
    const all = await queries.listPublishers(sql, siteId)
    const candidates = all.filter(
      (publisher) => publisher.issuer === iss && issuerOf(publisher, trustedIssuers) === publisher.issuer,
    )
    if (candidates.length === 0) throw new Refusal(all.length === 0 ? 'no_publisher' : 'issuer')
    const outcome = await issuerKeys.verify(token, { issuer: iss, audience: baseUrl })
    if ('reason' in outcome) throw new Refusal(outcome.reason)
    return { issuer: iss, candidates, claims: outcome.claims }
  }

  async function issue(
    tx: Sql,
    chosen: queries.PublisherRow,
    { claims, asked }: { claims: Claims; asked: AskedExchange },
  ): Promise<WorkflowTokenReply> {
    const publisher = await queries.lockPublisher(tx, chosen.id)
    if (!publisher) throw new Refusal('no_publisher')
    // Judged again under the lock: of two first exchanges, one pins.
    const judgement = judgeRun(publisher, claims, asked.preview)
    if (judgement.kind === 'refused') throw new Refusal(judgement.reason)
    const spent = { issuer: publisher.issuer, jti: jtiOf(claims), expiresAt: endOf(claims) }
    if (!(await queries.takeToken(tx, spent))) throw new Refusal('replay')
    const { repositoryId = null, ownerId = null } = judgement.ids ?? {}
    await queries.noteExchange(tx, publisher.id, { now: now(), repositoryId, ownerId })
    const { preview } = judgement
    const token = PUBLISHER_TOKEN_PREFIX + randomSecret()
    await queries.insertPublisherToken(tx, {
      id: newId('tok', clock.now()),
      tokenHash: preview === null ? hashSecret(token) : previewHash(token),
      publisherId: publisher.id,
      run: judgement.run,
      preview,
      expiresAt: new Date(clock.now() + TOKEN_LIFETIME_MS),
    })
    return {
      access_token: token,
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: TOKEN_LIFETIME_MS / SECOND_MS,
      scope: 'publish',
      ...(preview === null ? {} : { preview }),
    }
  }

  return {
    async exchange(asked, ip) {
      await limiter.consume('token-exchange', limitKeyOfIp(ip), EXCHANGES)
      const site = await queries.findNamedSite(sql, asked.site)
      if (!site) throw new ExchangeRefused('invalid_grant')
      try {
        const { candidates, claims } = await verified(site.id, asked.token)
        jtiOf(claims)
        const chosen = nearest(candidates, claims, asked.preview)
        if (chosen.judgement.kind === 'refused') throw new Refusal(chosen.judgement.reason)
        return await transaction(sql, (tx) => issue(tx, chosen.publisher, { claims, asked }))
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        await record(site, error.reason, ip)
        const isMalformed = error.reason === 'oversized' || error.reason === 'malformed'
        throw new ExchangeRefused(isMalformed ? 'invalid_request' : 'invalid_grant')
      }
    },
  }
}

/** Only to know whose keys to ask: nothing else of it is believed. */
function unverifiedClaims(token: string): { iss?: string } {
  try {
    const { iss } = decodeJwt(token)
    return typeof iss === 'string' ? { iss } : {}
  } catch {
    throw new Refusal('malformed')
  }
}

/** The one that trusts the token, or the one that it failed at last. */
function nearest(
  candidates: readonly queries.PublisherRow[],
  claims: Claims,
  preview: string | null,
): { publisher: queries.PublisherRow; judgement: Judgement } {
  const judged = candidates.map((publisher) => ({ publisher, judgement: judgeRun(publisher, claims, preview) }))
  const distance = ({ judgement }: { judgement: Judgement }): number =>
    judgement.kind === 'trusted' ? REASONS.length : REASONS.indexOf(judgement.reason)
  const [best] = judged.toSorted((one, other) => distance(other) - distance(one))
  if (!best) throw new Refusal('no_publisher')
  return best
}

/** Kept as a hash, of one length whatever the issuer writes. */
function jtiOf(claims: Claims): string {
  const jti = claims['jti']
  if (typeof jti !== 'string' || jti === '' || jti.length > MAX_JTI_CHARS) throw new Refusal('no_jti')
  return createHash('sha256').update(jti).digest('base64url')
}

/** When the token has run out by itself, the tolerance for clocks included. */
function endOf(claims: Claims): Date {
  return new Date((Number(claims['exp']) + 2 * 60) * SECOND_MS)
}
