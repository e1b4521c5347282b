/**
 * The desk where visitors come in who are not in yet. An edge asks here once for each of them (shared/contracts/
 * visit-desk.ts) and decides alone afterwards. An address that may see a drop and one that may not leave the same
 * traces until the answer is given: who is on the list is looked up afterwards, for the mail alone.
 */
import { randomInt } from 'node:crypto'
import { sealAdmission } from '../../../shared/contracts/admission.ts'
import { ApiError, errors } from '../../../shared/contracts/errors.ts'
import {
  DIRECT,
  ENTER_PATH,
  VISIT_PATH,
  type VisitAnswer,
  type VisitQuestion,
} from '../../../shared/contracts/visit-desk.ts'
import { parsePreviewHost, siteHost } from '../../../shared/http/hosts.ts'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import { safeNext } from '../../../shared/http/safe-next.ts'
import type { Clock } from '../../../shared/running/clock.ts'
import type { Log } from '../../../shared/running/log.ts'
import { createTurns } from '../../../shared/running/turns.ts'
import { equalTexts, hashSecret, randomSecret, type Secrets } from '../../../shared/secrets/secrets.ts'
import { addressOf } from '../../../shared/settings/settings.ts'
import { reaches, suffices, type Actor } from '../../ground/actor.ts'
import type { ControlConfig } from '../../ground/config.ts'
import { runAs } from '../../ground/database/call.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import { createThrottle, type Throttle } from '../../ground/http/limits/throttle.ts'
import { parseEmail } from '../../ground/mail/address.ts'
import { linkTo } from '../../ground/mail/links.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import { tellWebhooks } from '../../ground/routing/webhook-outbox.ts'
import { accessModeOf } from '../viewers/access.ts'
import { mailKeyOf, memberSubject, dropNameOf, noteAdmission, subjectOf, useGuestLink } from '../viewers/lists.ts'
import { reviewUrlOf } from '../threads/threads.ts'
import * as queries from './queries.ts'
import * as rules from './rules.ts'

export interface VisitDesk {
  /** `ip`: the visitor's. Never throws for what a visitor may send. */
  answer(question: VisitQuestion, ip: string, door?: Door): Promise<VisitAnswer>
  /** The address at which a member of the drop's organisation comes in, once, without a code. */
  memberLink(actor: Actor, site: { readonly id: string; readonly slug: string }): Promise<string>
  /**
   * Where a visitor goes on whose address the operator's provider has proved: into the drop, where the address is on its
   * list, else to its door. It never leads to a host that is not the drop's.
   */
  provedLink(visit: ProvedVisit): Promise<string>
  /** The door of the drop, which asks for an address. */
  doorOf(visit: Pick<ProvedVisit, 'siteId' | 'host' | 'next'>): Promise<string>
  /** Forgets what no longer works. A job. */
  sweep(): Promise<void>
}

export interface ProvedVisit {
  readonly siteId: string
  readonly host: string
  /** Path and query of the drop. */
  readonly next: string
  readonly email: string
}

/** Where a person proves their address: at the drop, which only viewers see, or at the review page, of any drop. */
type Door = 'drop' | 'review'

export const ACCESS_REQUEST_PATH = '/access-request'

export interface VisitDeskDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly log: Log
  readonly secrets: Secrets
  readonly enqueueMail: EnqueueMail
  readonly config: Pick<
    ControlConfig,
    'baseUrl' | 'sitesDomain' | 'publicPort' | 'viewerCodeLifetimeMs' | 'viewerAdmissionMs'
  >
  /** Whose an API token or a connected app's token is; undefined when it is unknown, over or revoked. */
  machineActor(token: string, ip: string): Promise<Actor | undefined>
}

/** Mails that are decided about at once: the database has other work. */
const PARALLEL_MAILS = 4
const MAX_WAITING_MAILS = 2000

type Refusal = Extract<VisitAnswer, { kind: 'refused' }>
type Question<Kind extends VisitQuestion['kind']> = Extract<VisitQuestion, { kind: Kind }>

const refused = (reason: Refusal['reason']): Refusal => ({ kind: 'refused', reason })

export function createVisitDesk(deps: VisitDeskDependencies): VisitDesk {
  const { sql, clock, log, config } = deps
  const throttle = createThrottle({ sql, clock, allowances: rules.VISIT_ALLOWANCES })
  const mails = createTurns(PARALLEL_MAILS)

  /** After the answer, and as no part of its call: neither its time nor its end tells what came of it. */
  function afterwards(work: () => Promise<void>): void {
    if (mails.waiting >= MAX_WAITING_MAILS) return
    runAs(undefined, () => {
      mails.take(work).catch((error: unknown) => log.error({ err: error }, 'a mail to a visitor was not written'))
    })
  }

  async function answerCode(question: Question<'code'>, network: string, door: Door): Promise<VisitAnswer> {
    const email = emailOf(question.email)
    if (email === undefined) return refused('email')
    await throttle.require('visitorCode', network)
    await throttle.require('dropCode', question.site_id)
    afterwards(() => mailCode(deps, question, email, door))
    return { kind: 'sent' }
  }

  async function answerAsk(question: Question<'ask'>, network: string): Promise<VisitAnswer> {
    const email = emailOf(question.email)
    if (email === undefined) return refused('email')
    await throttle.require('visitorAsk', network)
    afterwards(async () => {
      if (await throttle.admit('dropAsk', question.site_id)) await mailOwner(deps, question, email)
    })
    return { kind: 'asked' }
  }

  return {
    async answer(question, ip, door = 'drop') {
      const network = limitKeyOfIp(ip)
      try {
        switch (question.kind) {
          case 'code':
            return await answerCode(question, network, door)
          case 'ask':
            return await answerAsk(question, network)
          case 'try':
            return await tryCode(deps, throttle, question, { network, door })
          case 'enter':
            return await enter(deps, question, door)
          case 'guest':
            await throttle.require('visitorGuest', network)
            return await admitGuest(deps, question.site_id, question.token, 'browser')
          case 'machine':
            await throttle.require('visitorMachine', network)
            return await admitMachine(deps, question, ip)
          default:
            return question satisfies never
        }
      } catch (error) {
        if (error instanceof ApiError && error.status === 429)
          return { kind: 'refused', reason: 'limited', retry_after: Number(error.headers['retry-after'] ?? 60) }
        throw error
      }
    },

    async memberLink(actor, { id, slug }) {
      const subject = await memberSubject(sql, id, actor.userId)
      if (subject === undefined) throw errors.notFound()
      const token = randomSecret()
      const expires_at = new Date(clock.now() + config.viewerCodeLifetimeMs)
      await queries.insertEntryLink(sql, { token_hash: hashSecret(token), site_id: id, subject, expires_at })
      return `${addressOf(config, siteHost(slug, config.sitesDomain))}${ENTER_PATH}/${token}`
    },

    provedLink: (visit) => provedLink(deps, visit),

    async doorOf(visit) {
      const site = await queries.findVisited(sql, visit.siteId)
      if (!site) return config.baseUrl
      const next = encodeURIComponent(safeNext(visit.next, '/'))
      return `${await ownAddress(sql, deps, site, visit.host)}${VISIT_PATH}?next=${next}`
    },

    sweep: () => queries.deleteEndedVisits(sql, new Date(clock.now()), new Date(clock.now() - rules.REQUEST_KEPT_MS)),
  }
}

/** The entry that a mailed link would be, used at once. */
async function provedLink(
  deps: VisitDeskDependencies,
  { siteId, host, next, email: given }: ProvedVisit,
): Promise<string> {
  const { sql, clock, config } = deps
  const email = emailOf(given)
  const site = await queries.findVisited(sql, siteId)
  if (!site || accessModeOf(site) !== 'viewers') throw errors.notFound()
  const address = await ownAddress(sql, deps, site, host)
  const query = `next=${encodeURIComponent(safeNext(next, '/'))}`
  const subject = email === undefined ? undefined : await subjectOf(sql, site.id, email)
  if (subject === undefined) return `${address}${VISIT_PATH}?${query}`
  const token = randomSecret()
  const expires_at = new Date(clock.now() + config.viewerCodeLifetimeMs)
  await queries.insertEntryLink(sql, { token_hash: hashSecret(token), site_id: site.id, subject, expires_at })
  return `${address}${ENTER_PATH}/${token}?${DIRECT}&${query}`
}

/** Undefined for what cannot be an address. */
function emailOf(text: string): string | undefined {
  try {
    return parseEmail(text)
  } catch {
    return undefined
  }
}

/** Counts towards the mail box of whoever may see the drop; for others nothing is written but the same row. */
async function mailCode(
  deps: VisitDeskDependencies,
  question: Question<'code'>,
  email: string,
  door: Door,
): Promise<void> {
  const { sql, clock, config, enqueueMail } = deps
  await transaction(sql, async (tx) => {
    await queries.lockMailBox(tx, email)
    const site = await queries.findVisited(tx, question.site_id)
    if (!site || !isOpenAt(door, site)) return
    const subject = await subjectOf(tx, site.id, email)
    const now = clock.now()
    const since = new Date(now - rules.CODE_MAIL_WINDOW_MS)
    if ((await queries.countCodeMails(tx, email, since)) >= rules.MAX_CODE_MAILS) return
    const code = String(randomInt(1_000_000)).padStart(6, '0')
    const token = randomSecret()
    const until = new Date(now + config.viewerCodeLifetimeMs)
    await queries.replaceCode(tx, {
      site_id: site.id,
      email_hash: hashSecret(email),
      code_hash: hashOfCode(site.id, email, code),
      link_hash: hashSecret(token),
      subject: subject ?? null,
      expires_at: until,
    })
    if (subject === undefined) return
    const next = safeNext(question.next, '/')
    const query = next === '/' ? '' : `?next=${encodeURIComponent(next)}`
    const isForReview = door === 'review'
    const link = isForReview
      ? `${reviewUrlOf(config.baseUrl, site.slug)}?email=${encodeURIComponent(email)}`
      : `${await ownAddress(tx, deps, site, question.host)}${ENTER_PATH}/${token}${query}`
    await enqueueMail(tx, {
      eventKey: `${mailKeyOf(site.id)}code:${hashSecret(token).slice(0, 32)}`,
      to: email,
      template: 'viewer_code',
      data: { code, link, until, drop: dropNameOf(site), isForReview },
    })
  })
}

/** Those who may comment come to the review page of a public drop, too. */
function isOpenAt(door: Door, site: queries.VisitedSite): boolean {
  return door === 'review' || accessModeOf(site) === 'viewers'
}

/** Where the visitor is, if that host shows the drop; a mail never leads anywhere else. */
async function ownAddress(
  sql: Sql,
  { config }: Pick<VisitDeskDependencies, 'config'>,
  site: queries.VisitedSite,
  host: string,
): Promise<string> {
  const asked = parsePreviewHost(host)?.siteHost ?? host
  const isOurs = await queries.leadsTo(sql, asked, site.id)
  return addressOf(config, isOurs ? host : siteHost(site.slug, config.sitesDomain))
}

/** One mail to the owner for each address and day, with one button. */
async function mailOwner(deps: VisitDeskDependencies, question: Question<'ask'>, email: string): Promise<void> {
  const { sql, clock, config, enqueueMail } = deps
  await transaction(sql, async (tx) => {
    const site = await queries.findVisited(tx, question.site_id)
    if (!site || !site.access_requests || site.owner_email === null || accessModeOf(site) !== 'viewers') return
    if ((await subjectOf(tx, site.id, email)) !== undefined) return
    const token = randomSecret()
    const request = { token_hash: hashSecret(token), site_id: site.id, email, created_at: new Date(clock.now()) }
    if (!(await queries.insertRequest(tx, request))) return
    await tellWebhooks(tx, { type: 'viewer.requested', siteId: site.id, at: request.created_at })
    await enqueueMail(tx, {
      eventKey: `${mailKeyOf(site.id)}request:${request.token_hash.slice(0, 32)}`,
      to: site.owner_email,
      template: 'access_request',
      data: { link: linkTo(config.baseUrl, ACCESS_REQUEST_PATH, token), email, drop: dropNameOf(site) },
    })
  })
}

async function tryCode(
  deps: VisitDeskDependencies,
  throttle: Throttle<keyof typeof rules.VISIT_ALLOWANCES>,
  { site_id: siteId, email: typed, code }: Question<'try'>,
  { network, door }: { network: string; door: Door },
): Promise<VisitAnswer> {
  const email = emailOf(typed)
  if (email === undefined) return refused('email')
  await throttle.require('visitorTry', network)
  await throttle.require('dropTry', siteId)
  const emailHash = hashSecret(email)
  const now = new Date(deps.clock.now())
  const found = await queries.takeTry(deps.sql, { siteId, emailHash, now, most: rules.MAX_TRIES })
  const given = hashOfCode(siteId, email, rules.codeOfText(code))
  if (!equalTexts(found?.code_hash ?? '', given) || found?.subject == null) return refused('code')
  const { subject } = found
  await throttle.refund('visitorTry', network)
  await throttle.refund('dropTry', siteId)
  return transaction(deps.sql, async (tx) => {
    const site = await queries.findVisited(tx, siteId, 'locked')
    // One of two browsers with the same code comes in.
    if (!site || !(await queries.deleteCode(tx, siteId, emailHash))) return refused('code')
    return (await admit(tx, deps, site, subject, { door })) ?? refused('code')
  })
}

function enter(
  deps: VisitDeskDependencies,
  { site_id: siteId, token }: Question<'enter'>,
  door: Door,
): Promise<VisitAnswer> {
  return transaction(deps.sql, async (tx) => {
    const site = await queries.findVisited(tx, siteId, 'locked')
    if (!site) return refused('link')
    const subject = await queries.takeLink(tx, siteId, hashSecret(token), new Date(deps.clock.now()))
    if (subject === undefined) return refused('link')
    return (await admit(tx, deps, site, subject, { door })) ?? refused('link')
  })
}

/** A browser that comes by a link is one use of it; a program that names it with each request is none. */
function admitGuest(
  deps: VisitDeskDependencies,
  siteId: string,
  token: string,
  as: 'browser' | 'program',
): Promise<VisitAnswer> {
  return transaction(deps.sql, async (tx) => {
    const refusal = refused(as === 'browser' ? 'guest' : 'machine')
    const site = await queries.findVisited(tx, siteId, 'locked')
    if (!site || accessModeOf(site) !== 'viewers') return refusal
    const now = new Date(deps.clock.now())
    const link = await useGuestLink(tx, siteId, token, { now, counts: as === 'browser' })
    if (!link) return refusal
    const most = as === 'browser' ? deps.config.viewerAdmissionMs : rules.MACHINE_ADMISSION_MS
    return (await admit(tx, deps, site, link.id, { most, linkEnd: link.expires_at })) ?? refusal
  })
}

/** Members of the organisation may look at it, and so may what acts for them. */
async function admitMachine(
  deps: VisitDeskDependencies,
  { site_id: siteId, bearer, guest }: Question<'machine'>,
  ip: string,
): Promise<VisitAnswer> {
  if (guest !== undefined) {
    const answer = await admitGuest(deps, siteId, guest, 'program')
    if (answer.kind === 'admitted' || bearer === undefined) return answer
  }
  const actor = bearer === undefined ? undefined : await deps.machineActor(bearer, ip)
  const site = await queries.findVisited(deps.sql, siteId)
  const mayRead = actor !== undefined && suffices(actor, 'read') && reaches(actor.reach, siteId)
  if (!site || !mayRead || actor.orgId !== site.org_id || accessModeOf(site) !== 'viewers') return refused('machine')
  const { via } = actor
  const subject = via.kind === 'token' ? via.tokenId : via.kind === 'oauth' ? via.grantId : actor.userId
  return sealed(deps, site, subject, new Date(deps.clock.now() + rules.MACHINE_ADMISSION_MS))
}

/** Undefined when the viewer, the link or the membership is gone. The drop is locked. */
async function admit(
  tx: Sql,
  deps: VisitDeskDependencies,
  site: queries.VisitedSite,
  subject: string,
  {
    most = deps.config.viewerAdmissionMs,
    linkEnd = null,
    door = 'drop',
  }: { most?: number; linkEnd?: Date | null; door?: Door } = {},
): Promise<VisitAnswer | undefined> {
  if (!isOpenAt(door, site)) return undefined
  const end = rules.admissionEnd(deps.clock.now(), { serviceMs: most, dropMs: site.admission_ms, linkEnd })
  return (await noteAdmission(tx, site.id, subject, end)) ? sealed(deps, site, subject, end) : undefined
}

function sealed(
  { secrets }: Pick<VisitDeskDependencies, 'secrets'>,
  site: queries.VisitedSite,
  subject: string,
  end: Date,
): VisitAnswer {
  const endsAt = end.getTime()
  const admission = sealAdmission(secrets, {
    siteId: site.id,
    subject,
    generation: site.password_generation,
    history: site.history,
    endsAt,
  })
  return { kind: 'admitted', admission, ends_at: endsAt }
}

function hashOfCode(siteId: string, email: string, code: string): string {
  return hashSecret(`${siteId} ${email} ${code}`)
}
