/**
 * The lists of who may see a drop, inside the transaction of their change: viewers, guest links, and the mode in which
 * they count. The caller has locked the drop, writes its routes afterwards and records the deed.
 */
import { MAX_ENDED_ADMISSIONS, VIEWERS_ONLY } from '../../../shared/contracts/admission.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { ENTER_PATH, GUEST_PATH } from '../../../shared/contracts/visit-desk.ts'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../../shared/running/clock.ts'
import { hashSecret, randomSecret } from '../../../shared/secrets/secrets.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { createThrottle, type Allowance } from '../../ground/http/limits/throttle.ts'
import { eraseMailsAbout, type EnqueueMail } from '../../ground/mail/mail.ts'
import { orUpgrade, plans, type PlanName } from '../../ground/terms/plans.ts'
import { accessModeOf, type NamedViewer, type ViewerRole } from './access.ts'
import * as queries from './queries.ts'
import type { GuestLinkRow, ViewerRow } from './queries.ts'

export type { GuestLinkRow, ViewerRow } from './queries.ts'

/** What these functions need to know of a drop. */
export interface ListedDrop {
  readonly id: string
  readonly org_id: string | null
  readonly slug: string
  readonly name: string
  readonly plan: PlanName
  readonly password_hash: string | null
  readonly password_generation: number
}

/** How a change is made: by whom, when, and how mails go out. */
export interface Sharing {
  readonly now: Date
  readonly inviter: string
  /** The account that mails are counted for. */
  readonly inviterId: string
  /** The drop's own address, without a slash at its end. */
  readonly url: string
  /** The address at which it is talked about. */
  readonly reviewUrl: string
  readonly enqueueMail: EnqueueMail
}

/** An invitation lies in a mail box until its reader has time. */
const INVITATION_LIFETIME_MS = 30 * DAY_MS
/** Behind the address of the review page: the token of a mail follows. */
export const INVITATION_PATH = '/invitation'
/** How long the review page shows a drop to who was let in to it; what is taken back ends it before. */
export const REVIEW_VISIT_MS = 4 * HOUR_MS
/** 192 bits. */
const GUEST_TOKEN_BYTES = 24

/** Both lists, the oldest entry first. */
export async function listShared(
  sql: Sql,
  siteId: string,
): Promise<{ viewers: ViewerRow[]; guestLinks: GuestLinkRow[] }> {
  return { viewers: await queries.listViewers(sql, siteId), guestLinks: await queries.listGuestLinks(sql, siteId) }
}

export interface WantedViewers {
  readonly named: readonly NamedViewer[]
  /** Undefined: `view` for new ones, and others keep theirs. */
  readonly role?: ViewerRole | undefined
  readonly invite: boolean
}

/** All that were named, and the ids of those who were not on the list before. */
export interface AddedViewers {
  readonly named: ViewerRow[]
  readonly added: readonly string[]
}

/** Adds those who are not on the list yet, whole or not at all. */
export async function addViewers(
  tx: Sql,
  drop: ListedDrop,
  { named, role, invite }: WantedViewers,
  sharing: Sharing,
): Promise<AddedViewers> {
  const wanted = [...new Map(named.map((viewer) => [`${viewer.kind} ${viewer.value}`, viewer])).values()]
  const present = await queries.listNamed(tx, drop.id, wanted)
  const added = wanted
    .filter(({ kind, value }) => !present.some((row) => row.kind === kind && row.value === value))
    .map((viewer) => ({ ...viewer, id: newId('vw', sharing.now.getTime()) }))
  const cap = plans[drop.plan].viewersPerDrop
  if (added.length > 0 && (await queries.countViewers(tx, drop.id)) + added.length > cap)
    throw errors.planLimit(
      `Your plan allows ${cap} viewers per drop. Remove some, or name a domain instead${orUpgrade()}.`,
    )
  if (role !== undefined)
    await queries.setViewerRole(
      tx,
      present.map(({ id }) => id),
      role,
    )
  const { now } = sharing
  if (added.length > 0)
    await queries.insertViewers(tx, drop.id, added, { role: role ?? 'view', now, invitedAt: invite ? now : null })
  if (invite) for (const viewer of added) await invitePerson(tx, drop, { ...viewer, role: role ?? 'view' }, sharing)
  return { named: await queries.listNamed(tx, drop.id, wanted), added: added.map(({ id }) => id) }
}

/** A domain has no mail box. */
async function invitePerson(
  tx: Sql,
  drop: ListedDrop,
  viewer: NamedViewer & { readonly id: string; readonly role: ViewerRole },
  sharing: Sharing,
  isReminder = false,
): Promise<void> {
  if (viewer.kind !== 'email') return
  const { now, inviter, url, reviewUrl, enqueueMail } = sharing
  await requireFewMails(tx, drop, sharing)
  const token = randomSecret()
  const until = new Date(now.getTime() + INVITATION_LIFETIME_MS)
  await queries.insertViewerInvitation(tx, {
    token_hash: hashSecret(token),
    site_id: drop.id,
    subject: viewer.id,
    expires_at: until,
  })
  await enqueueMail(tx, {
    eventKey: `${mailKeyOf(drop.id)}${viewer.id}:${isReminder ? 'reminder' : 'invitation'}`,
    to: viewer.value,
    template: 'viewer_invitation',
    data: {
      link: `${url}${ENTER_PATH}/${token}`,
      until,
      drop: dropNameOf(drop),
      inviter,
      isReminder,
      ...(viewer.role === 'comment' ? { reviewLink: `${reviewUrl}${INVITATION_PATH}/${token}` } : {}),
    },
  })
}

/**
 * Mails to strangers: so many a day for each drop, whatever is removed and added again, for its organisation, whatever
 * drops are made, and for each account, whatever organisations. Always in this order, so that two never wait for each
 * other.
 */
async function requireFewMails(tx: Sql, drop: ListedDrop, { now, inviterId }: Sharing): Promise<void> {
  const clock = { now: () => now.getTime() }
  const throttle = createThrottle({ sql: tx, clock, allowances: invitationAllowances(plans[drop.plan].viewersPerDrop) })
  const isWithin =
    (await throttle.admit('viewerInvitations', drop.id)) &&
    (await throttle.admit('organisationInvitations', drop.org_id ?? drop.id)) &&
    // Each plan has a bound of its own: what a large one was used for leaves room in a small one.
    (await throttle.admit('accountInvitations', `${inviterId} ${drop.plan}`))
  if (!isWithin)
    throw errors.rateLimited(
      DAY_MS / SECOND_MS,
      'Very many invitations were mailed today. Add people without a mail (invite: false), or wait.',
    )
}

/** Twice the whole list of a drop, and for all drops together twice that; as many as members may be invited at least. */
export function invitationAllowances(
  viewersPerDrop: number,
): Record<'viewerInvitations' | 'organisationInvitations' | 'accountInvitations', Allowance> {
  const ofDrop = Math.max(20, 2 * viewersPerDrop)
  const ofAll = { limit: Math.max(50, 2 * ofDrop), windowMs: DAY_MS }
  return {
    viewerInvitations: { limit: ofDrop, windowMs: DAY_MS },
    organisationInvitations: ofAll,
    accountInvitations: ofAll,
  }
}

/** Once for each viewer who has a mail box and has not opened the drop yet. */
export async function remindViewer(tx: Sql, drop: ListedDrop, viewerId: string, sharing: Sharing): Promise<ViewerRow> {
  const viewer = await queries.findViewer(tx, drop.id, viewerId)
  if (!viewer) throw errors.notFound('viewer')
  if (viewer.kind !== 'email') throw errors.invalidRequest('A domain has no mail box to remind.')
  if (viewer.last_opened_at !== null) throw errors.invalidRequest(`${viewer.value} has opened it already.`)
  if (!(await queries.setReminded(tx, viewerId, sharing.now)))
    throw errors.invalidRequest(`${viewer.value} was reminded before. One reminder is sent, no more.`)
  await queries.setInvited(tx, viewerId, sharing.now)
  await invitePerson(tx, drop, viewer, sharing, true)
  return { ...viewer, invited_at: viewer.invited_at ?? sharing.now, reminded_at: sharing.now }
}

/** A viewer goes, with what was opened by it. */
export async function removeViewer(tx: Sql, drop: ListedDrop, viewerId: string, now: Date): Promise<void> {
  if (!(await queries.deleteViewer(tx, drop.id, viewerId))) throw errors.notFound('viewer')
  await queries.deleteInvitations(tx, drop.id, viewerId)
  await eraseMailsAbout(tx, `${mailKeyOf(drop.id)}${viewerId}:`)
  await endAdmission(tx, drop.id, viewerId, now)
}

export interface WantedLink {
  readonly name?: string | undefined
  readonly role?: ViewerRole | undefined
  readonly expiresAt?: Date | null | undefined
  readonly maxUses?: number | null | undefined
}

export type NewGuestLink = GuestLinkRow & { readonly url: string }

/** The address holds the secret; it is shown once and stored as a hash. */
export async function addGuestLink(
  tx: Sql,
  drop: ListedDrop,
  wanted: WantedLink,
  { now, url, reviewUrl }: Pick<Sharing, 'now' | 'url' | 'reviewUrl'>,
): Promise<NewGuestLink> {
  const cap = plans[drop.plan].viewersPerDrop
  if ((await queries.countGuestLinks(tx, drop.id)) >= cap)
    throw errors.planLimit(`Your plan allows ${cap} guest links per drop. Remove one${orUpgrade()}.`)
  const token = randomSecret(GUEST_TOKEN_BYTES)
  const link = {
    id: newId('gl', now.getTime()),
    name: wanted.name ?? '',
    role: wanted.role ?? ('view' as const),
    expires_at: wanted.expiresAt ?? null,
    max_uses: wanted.maxUses ?? null,
    created_at: now,
  }
  await queries.insertGuestLink(tx, drop.id, { ...link, token_hash: hashSecret(token) })
  // Who may comment comes to where that is done; who may look, to the drop.
  const address = link.role === 'comment' ? `${reviewUrl}/guest/${token}` : `${url}${GUEST_PATH}/${token}`
  return { ...link, uses: 0, last_opened_at: null, url: address }
}

export async function removeGuestLink(tx: Sql, drop: ListedDrop, linkId: string, now: Date): Promise<void> {
  if (!(await queries.deleteGuestLink(tx, drop.id, linkId))) throw errors.notFound('guest link')
  await endAdmission(tx, drop.id, linkId, now)
}

/** Entries of the lists, by id. */
export interface SharedEntries {
  readonly viewers: readonly string[]
  readonly guestLinks: readonly string[]
}

/** removeShared takes entries off the lists, with what was opened by them. One that is gone already is passed over. */
export async function removeShared(
  tx: Sql,
  drop: ListedDrop,
  { viewers, guestLinks }: SharedEntries,
  now: Date,
): Promise<void> {
  for (const id of viewers) if (await queries.findViewer(tx, drop.id, id)) await removeViewer(tx, drop, id, now)
  for (const id of guestLinks)
    if (await queries.findGuestLink(tx, drop.id, { id })) await removeGuestLink(tx, drop, id, now)
}

export type WriteGeneration = (
  tx: Sql,
  siteId: string,
  changes: { password_hash?: string | null; password_generation: number },
  now: Date,
) => Promise<void>

/** Only those who are named may see it, or everyone may again. Whoever was in has to come in anew. */
export async function setViewersOnly(
  tx: Sql,
  drop: ListedDrop,
  isOn: boolean,
  { now, write }: { now: Date; write: WriteGeneration },
): Promise<boolean> {
  const mode = accessModeOf(drop)
  if (mode === (isOn ? 'viewers' : 'public')) return false
  const password_hash = isOn ? VIEWERS_ONLY : null
  await write(tx, drop.id, { password_hash, password_generation: drop.password_generation + 1 }, now)
  return true
}

/**
 * Names the admission in the drop's record until it would have ended by itself. When there are too many, a new generation
 * begins, and the last of them stays named: a public drop's record says its generation as long as it names one.
 */
async function endAdmission(tx: Sql, siteId: string, subject: string, now: Date): Promise<void> {
  if (!(await queries.endAdmission(tx, siteId, subject, now))) return
  if ((await queries.listEnded(tx, siteId, now)).length <= MAX_ENDED_ADMISSIONS) return
  await queries.beginGeneration(tx, siteId, now)
  await queries.deleteOtherAdmissions(tx, siteId, subject)
  await queries.upsertAdmission(tx, siteId, subject, new Date(now.getTime() + REVIEW_VISIT_MS))
}

/** What a drop's record says of admissions that were taken back. */
export async function endedAdmissions(sql: Sql, siteId: string, now: Date): Promise<[string, number][]> {
  return (await queries.listEnded(sql, siteId, now)).map(({ subject, until }) => [subject, until.getTime()])
}

/**
 * A person left an organisation, or all: what they opened as a member ends. Returns the drops whose routes change.
 * The drops are locked before, as they are where an admission is given: one that is being given is seen here, and one that
 * comes later waits and is refused. Memberships are locked by no one, and may be deleted before or after.
 */
export async function endMemberAdmissions(
  tx: Sql,
  { userId, orgId, now }: { userId: string; orgId?: string | undefined; now: Date },
): Promise<string[]> {
  await queries.lockDropsOfMember(tx, userId, orgId)
  const found = await queries.admissionsOfMember(tx, userId, orgId, now)
  for (const { siteId, subject } of found) await endAdmission(tx, siteId, subject, now)
  return [...new Set(found.map(({ siteId }) => siteId))]
}

/** A person is welcome again: what they opened as a member goes on. Returns the drops whose routes change. */
export const resumeMemberAdmissions = (tx: Sql, userId: string, now: Date): Promise<string[]> =>
  queries.resumeAdmissionsOfMember(tx, userId, now)

/** A drop is deleted: the addresses of its viewers go with it, and the mails to them. */
export async function eraseViewers(tx: Sql, siteId: string): Promise<void> {
  await queries.eraseSite(tx, siteId)
  await eraseMailsAbout(tx, mailKeyOf(siteId))
}

/** Mails about who sees a drop have keys that begin so. */
export function mailKeyOf(siteId: string): string {
  return `viewers:${siteId}:`
}

export function dropNameOf({ name, slug }: Pick<ListedDrop, 'name' | 'slug'>): string {
  return name === '' ? slug : name
}

/** Pages that a viewer or a guest opened in one second since the epoch. */
export interface Visit {
  readonly subject: string
  readonly second: number
  readonly count: number
}

/** Adds what edges noted, unless the batch was added before. */
export async function addVisitBatch(tx: Sql, batchId: string, visits: readonly Visit[]): Promise<void> {
  if (await queries.insertVisitBatch(tx, batchId)) await queries.addVisits(tx, visits)
}

/** Forgets admissions that are over, and batches of visits that are long gone from Redis. */
export async function sweepLists(sql: Sql, now: Date, foldedBefore: Date): Promise<void> {
  await queries.deletePastAdmissions(sql, now)
  await queries.deleteVisitBatches(sql, foldedBefore)
}

/** A person on the list, by name or by domain. */
export interface CommentingViewer {
  readonly id: string
  readonly role: ViewerRole
}

/** findViewerOf is the entry of the list that lets an address in: the person's own before that of a domain. */
export async function findViewerOf(sql: Sql, siteId: string, email: string): Promise<CommentingViewer | undefined> {
  const id = await queries.findViewerFor(sql, siteId, email.toLowerCase())
  return id === undefined ? undefined : queries.findViewer(sql, siteId, id)
}

/** findInvitedBy is the viewer whom a mailed invitation names; undefined when it was used or is over. */
export async function findInvitedBy(
  sql: Sql,
  siteId: string,
  token: string,
  now: Date,
): Promise<(CommentingViewer & { readonly email: string }) | undefined> {
  const found = await queries.findInvited(sql, siteId, hashSecret(token), now)
  return found && { id: found.id, role: found.role, email: found.value }
}

/** findGuestLinkBy is a guest link by its secret or by its id, over or not. */
export async function findGuestLinkBy(
  sql: Sql,
  siteId: string,
  by: { readonly token: string } | { readonly id: string },
): Promise<GuestLinkRow | undefined> {
  return queries.findGuestLink(sql, siteId, 'token' in by ? { tokenHash: hashSecret(by.token) } : by)
}

/** Who an address is to a drop: a viewer by name, everyone at a domain, a member of its organisation; or no one. */
export async function subjectOf(sql: Sql, siteId: string, email: string): Promise<string | undefined> {
  const viewer = await queries.findViewerFor(sql, siteId, email)
  return viewer ?? queries.findMemberFor(sql, siteId, { email })
}

/**
 * mayBeMentioned says whether a comment is mailed to an address: to a member, and to a viewer who is named themselves and
 * was invited or has come. Who was added without a mail is a stranger still: only invitations, which are counted, reach
 * them.
 */
export async function mayBeMentioned(sql: Sql, siteId: string, email: string): Promise<boolean> {
  const [viewer] = await queries.listNamed(sql, siteId, [{ kind: 'email', value: email }])
  const isKnown = viewer !== undefined && (viewer.invited_at !== null || viewer.first_opened_at !== null)
  return isKnown || (await queries.findMemberFor(sql, siteId, { email })) !== undefined
}

export const memberSubject = (sql: Sql, siteId: string, userId: string): Promise<string | undefined> =>
  queries.findMemberFor(sql, siteId, { userId })

/**
 * Notes until when someone is in, so that it can be taken back before. False when the viewer, the link or the membership
 * is gone. The drop is locked.
 */
export async function noteAdmission(tx: Sql, siteId: string, subject: string, until: Date): Promise<boolean> {
  if (!(await queries.subjectExists(tx, siteId, subject))) return false
  await queries.upsertAdmission(tx, siteId, subject, until)
  return true
}

/** Takes one use of a guest link; undefined when it is unknown, over or used up. The drop is locked. */
export async function useGuestLink(
  tx: Sql,
  siteId: string,
  token: string,
  { now, counts }: { now: Date; counts: boolean },
): Promise<GuestLinkRow | undefined> {
  const link = await queries.lockGuestLink(tx, siteId, hashSecret(token))
  if (!link || (link.expires_at !== null && link.expires_at <= now)) return undefined
  if (!counts) return link
  if (link.max_uses !== null && link.uses >= link.max_uses) return undefined
  await queries.countUse(tx, link.id)
  return link
}
