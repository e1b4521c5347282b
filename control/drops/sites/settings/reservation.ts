/** How a drop comes to be: room in the plan, a slug, a row. */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../../shared/running/clock.ts'
import { VIEWERS_ONLY } from '../../../../shared/contracts/admission.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { newId } from '../../../../shared/contracts/ids.ts'
import { dropCapInWords, orUpgrade, plans, type PlanName } from '../../../ground/terms/plans.ts'
import { randomSlug } from '../../../../shared/values/readable-slug.ts'
import type { Actor } from '../../../ground/actor.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { inOrder, type Sql } from '../../../ground/database/sql.ts'
import { defaultMode, requireAllowed } from '../../viewers/access.ts'
import { recordAudit } from '../../../people/audit/audit.ts'
import * as queries from '../queries.ts'
import type { SiteFacts } from '../rules.ts'
import { requireUsableSlug, takeRandomSlug } from './slugs.ts'

export interface WantedSite {
  /** Random when omitted. */
  readonly slug?: string | undefined
  readonly name?: string | undefined
  /** Only its viewers are to see it, from the beginning. */
  readonly isPrivate?: boolean | undefined
  /** When visitors meet 410. */
  readonly accessUntil?: Date | null | undefined
}

/** Who a new drop belongs to: an organisation, or a browser without an account until it is claimed. */
export type SiteOwner = { readonly orgId: string } | Unclaimed

export interface Unclaimed {
  readonly anonymousId: string
  readonly network: string
  readonly claimHash: string
}

export interface Reservations {
  /** Before anything is added to an organisation: its plan stays as it is, and it is not deleted, until the commit. */
  lockOrganisation(tx: Sql, orgId: string): Promise<PlanName>
  /** How many more drops may be active. The organisation is locked. */
  roomFor(tx: Sql, orgId: string, plan: PlanName): Promise<number>
  /** Reserves a slug for a new site; its routes are left to the caller. */
  reserve(tx: Sql, owner: { readonly orgId: string }, wanted: WantedSite): Promise<SiteFacts>
  /** A new site without content, within the plan's cap; its routes are left to the caller. */
  add(tx: Sql, actor: Actor, wanted: WantedSite): Promise<SiteFacts>
}

export type NewSiteRow = Parameters<typeof queries.insertSite>[1]

/** The row of a new drop. An owned drop's clock begins with its first content. */
export function newSiteRow(
  owner: SiteOwner,
  wanted: WantedSite,
  now: number,
  { anonymousLifetimeMs }: Pick<ControlConfig, 'anonymousLifetimeMs'>,
): NewSiteRow {
  const [orgId, unclaimed] = 'orgId' in owner ? [owner.orgId, undefined] : [null, owner]
  return {
    id: newId('st', now),
    org_id: orgId,
    slug: wanted.slug ?? randomSlug(),
    name: wanted.name ?? '',
    dns_target: `t-${randomBytes(8).toString('hex')}`,
    password_hash: wanted.isPrivate ? VIEWERS_ONLY : null,
    access_until: wanted.accessUntil ?? null,
    expires_at: unclaimed === undefined ? null : new Date(now + anonymousLifetimeMs),
    anonymous_id: unclaimed?.anonymousId ?? null,
    anonymous_network: unclaimed?.network ?? null,
    claim_hash: unclaimed?.claimHash ?? null,
    created_at: new Date(now),
  }
}

interface ReservationsDependencies {
  clock: Clock
  config: Pick<ControlConfig, 'anonymousLifetimeMs'>
}

export function createReservations({ clock, config }: ReservationsDependencies): Reservations {
  const now = (): Date => new Date(clock.now())

  async function lockOrganisation(tx: Sql, orgId: string): Promise<PlanName> {
    const plan = await queries.lockOrganisation(tx, orgId)
    if (!plan) throw errors.notFound('organisation')
    return plan
  }

  async function roomFor(tx: Sql, orgId: string, plan: PlanName): Promise<number> {
    return plans[plan].activeDrops - (await queries.countActiveSites(tx, orgId, now()))
  }

  async function reserve(tx: Sql, owner: { readonly orgId: string }, wanted: WantedSite): Promise<SiteFacts> {
    if (wanted.slug !== undefined) requireUsableSlug(wanted.slug)
    const row = newSiteRow(owner, wanted, clock.now(), config)
    const { id, slug } = row
    const [, isTaken, site] = await inOrder(
      () => queries.insertSite(tx, row),
      () => queries.takeSlug(tx, slug, id, now()),
      () => queries.findSite(tx, id),
    )
    if (!site) throw new Error(`The drop ${id} was made and is not there`)
    if (isTaken) return site
    if (wanted.slug !== undefined) throw errors.slugTaken(slug)
    return { ...site, slug: await takeRandomSlug(tx, id, now()) }
  }

  async function add(tx: Sql, actor: Actor, wanted: WantedSite): Promise<SiteFacts> {
    if (actor.reach.sites !== undefined)
      throw errors.forbidden('This token is bound to drops that exist. Use one that is not, to make a new drop.')
    const plan = await lockOrganisation(tx, actor.orgId)
    if ((await roomFor(tx, actor.orgId, plan)) < 1)
      throw errors.planLimit(`${dropCapInWords(plan)} Delete one${orUpgrade()}.`)
    const policy = await queries.findPolicy(tx, actor.orgId)
    const isPrivate = wanted.isPrivate ?? defaultMode(policy) === 'viewers'
    if (!isPrivate) requireAllowed(policy, 'public')
    const site = await reserve(tx, { orgId: actor.orgId }, { ...wanted, isPrivate })
    await recordAudit(tx, {
      at: now(),
      orgId: actor.orgId,
      actor,
      action: 'site.created',
      subject: site.id,
      detail: { slug: site.slug },
    })
    return site
  }

  return { lockOrganisation, roomFor, reserve, add }
}
