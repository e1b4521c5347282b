/** Who may see a drop, changed in the transaction of a publish or of a change of settings. */
import { VIEWERS_ONLY } from '../../../../shared/contracts/admission.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { siteHost } from '../../../../shared/http/hosts.ts'
import { addressOf } from '../../../../shared/settings/settings.ts'
import type { Actor } from '../../../ground/actor.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import type { Sql } from '../../../ground/database/sql.ts'
import type { EnqueueMail } from '../../../ground/mail/mail.ts'
import { accessModeOf, requireAllowed, type WantedAccess } from '../../viewers/access.ts'
import { reviewUrlOf } from '../../threads/threads.ts'
import {
  addGuestLink,
  addViewers,
  removeShared,
  setViewersOnly,
  type SharedEntries,
  type Sharing,
} from '../../viewers/lists.ts'
import { showGuestLink, type ApiGuestLink } from '../../viewers/schemas.ts'
import { findSite, updateSite, type SiteChanges } from '../queries.ts'
import type { SiteFacts } from '../rules.ts'

export interface SharingTools {
  readonly enqueueMail: EnqueueMail
  readonly config: Pick<ControlConfig, 'sitesDomain' | 'publicPort' | 'baseUrl'>
}

/** How the lists of a drop are changed, by this caller and now. */
export function sharingBy(
  actor: Pick<Actor, 'userId' | 'email'>,
  site: SiteFacts,
  now: Date,
  tools: SharingTools,
): Sharing {
  const { config, enqueueMail } = tools
  return {
    now,
    inviter: actor.email,
    inviterId: actor.userId,
    url: addressOf(config, siteHost(site.slug, config.sitesDomain)),
    reviewUrl: reviewUrlOf(config.baseUrl, site.slug),
    enqueueMail,
  }
}

/** What was given beside the mode. */
export interface AccessChange {
  readonly wanted: WantedAccess
  /** A password comes with it; its writer is protection.ts. */
  readonly hasPassword: boolean
}

/** Refuses before anything slow is done what the transaction would refuse. */
export function requireAccess(
  site: Pick<SiteFacts, 'password_hash' | 'visibility_policy'>,
  { wanted: { mode }, hasPassword }: AccessChange,
): void {
  if (mode !== undefined) requireAllowed(site.visibility_policy, mode)
  if (hasPassword) requireAllowed(site.visibility_policy, 'password')
  if (hasPassword && mode !== undefined && mode !== 'password')
    throw errors.invalidRequest(`password: access_mode "${mode}" has none. Leave one of the two out.`)
  if (mode === 'password' && !hasPassword && accessModeOf(site) !== 'password')
    throw errors.invalidRequest('password: access_mode "password" needs one.')
}

/** What became of a change. */
export interface WrittenAccess {
  /** Names of what is different now, for the audit log. */
  readonly fields: readonly string[]
  readonly guestLink: ApiGuestLink | undefined
  readonly written: GivenAccess
}

/** What a change has written about who may see a drop; what is undefined was left as it was. */
export interface GivenAccess {
  readonly columns: Pick<SiteChanges, 'password_hash' | 'access_until'>
  readonly added: SharedEntries
}

/** The site is locked; its routes and the audit entry are left to the caller. A password is written before. */
export async function writeAccess(
  tx: Sql,
  site: SiteFacts,
  change: AccessChange,
  sharing: Sharing,
): Promise<WrittenAccess> {
  requireAccess(site, change)
  const { now } = sharing
  const { mode, viewers = [], guestLink, invite, until } = change.wanted
  const fields: string[] = []
  const columns: SiteChanges = {}
  if (mode === 'public' || mode === 'viewers') {
    const isChanged = await setViewersOnly(tx, site, mode === 'viewers', { now, write: updateSite })
    if (isChanged) {
      fields.push('access_mode')
      columns.password_hash = mode === 'viewers' ? VIEWERS_ONLY : null
    }
  }
  if (until !== undefined) {
    await updateSite(tx, site.id, { access_until: until }, now)
    fields.push('access_until')
    columns.access_until = until
  }
  const named = { named: viewers, invite: invite ?? true }
  const added = viewers.length > 0 ? (await addViewers(tx, site, named, sharing)).added : []
  if (viewers.length > 0) fields.push('viewers')
  const link = guestLink === true ? showGuestLink(await addGuestLink(tx, site, {}, sharing)) : undefined
  if (link) fields.push('guest_links')
  return { fields, guestLink: link, written: { columns, added: { viewers: added, guestLinks: link ? [link.id] : [] } } }
}

/**
 * takeBackAccess undoes what a publish wrote that is taken back; resolves to the names of what is different now. What
 * was changed once more since then stays. Whoever was let in meanwhile is out, by a new generation, and invitations that
 * were not sent yet are not sent. The site is locked; its routes and the audit entry are left to the caller.
 */
export async function takeBackAccess(
  tx: Sql,
  before: SiteFacts,
  { columns, added }: GivenAccess,
  now: Date,
): Promise<string[]> {
  const site = await findSite(tx, before.id)
  if (!site) return []
  const fields: string[] = []
  if (columns.password_hash !== undefined && site.password_hash === columns.password_hash) {
    const password_generation = site.password_generation + 1
    await updateSite(tx, site.id, { password_hash: before.password_hash, password_generation }, now)
    fields.push('access_mode')
  }
  if (columns.access_until !== undefined && site.access_until?.getTime() === columns.access_until?.getTime()) {
    await updateSite(tx, site.id, { access_until: before.access_until }, now)
    fields.push('access_until')
  }
  await removeShared(tx, site, added, now)
  if (added.viewers.length > 0) fields.push('viewers')
  if (added.guestLinks.length > 0) fields.push('guest_links')
  return fields
}
