/**
 * Is the service well? What control itself can see, in words for everyone: no names, addresses or figures of anyone.
 * Asked anew at most every FRESH_MS, whoever asks how often; each question has a time limit, because what is broken
 * usually does not answer.
 */
import { DAY_MS, MINUTE_MS, SECOND_MS, type Clock } from '../../../shared/running/clock.ts'
import { patiently } from '../../../shared/settings/patience.ts'
import { liveEdges, type EdgeRegistry } from '../../../shared/contracts/live-edges.ts'
import type { Domains } from '../../drops/domains/domains.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { certificateEnd, type TlsPlace } from '../../ground/certificate-end.ts'
import { outboxBacklog } from '../../ground/routing/outbox.ts'
import type { Mailer } from '../../ground/mail/mailer.ts'

const FRESH_MS = 5 * SECOND_MS
const QUESTION_MS = patiently(1500)
/** More waiting changes than this is not a moment's backlog. */
const MAX_BACKLOG = 1000
/** Certificates are renewed weeks before this. */
const CERTIFICATE_WARNING_MS = 7 * DAY_MS
/** A mail leaves within seconds. One that was turned down is tried again later than this. */
const LATE_MAIL_MS = 10 * MINUTE_MS
/** As many mailboxes are not full by chance at the same time: it is our way out that does not work. */
const MAX_LATE_RECIPIENTS = 5

export type PartState = 'ok' | 'degraded' | 'away'

export interface Part {
  readonly name: string
  readonly state: PartState
  /** One sentence: what works, or what does not. */
  readonly detail: string
}

export interface Status {
  /** The worst of its parts that visitors or publishers notice. */
  readonly state: PartState
  readonly checkedAt: Date
  /** Sessions and all else that Postgres knows can be read. */
  readonly databaseAnswers: boolean
  readonly parts: readonly Part[]
}

export interface ServiceStatus {
  current(): Promise<Status>
}

interface StatusDependencies {
  readonly sql: Sql
  readonly domains: Pick<Domains, 'endingCertificates'>
  readonly mailer: Pick<Mailer, 'lateRecipients'>
  readonly redis: EdgeRegistry & { ping(): Promise<string> }
  readonly clock: Clock
  readonly config: { readonly baseUrl: string }
}

export function createServiceStatus({ sql, domains, mailer, redis, clock, config }: StatusDependencies): ServiceStatus {
  let last: { readonly at: number; readonly status: Promise<Status> } | undefined

  async function ask(): Promise<Status> {
    const checkedAt = new Date(clock.now())
    const [edges, backlog, pong, ending, own, late] = await Promise.all([
      answered(liveEdges(redis)),
      answered(outboxBacklog(sql)),
      answered(redis.ping()),
      answered(domains.endingCertificates(new Date(checkedAt.getTime() + CERTIFICATE_WARNING_MS))),
      answered(certificateEnd(placeOf(config.baseUrl))),
      answered(mailer.lateRecipients(new Date(checkedAt.getTime() - LATE_MAIL_MS))),
    ])
    return summarise(checkedAt, {
      edges: edges?.length,
      database: backlog !== undefined,
      waitingChanges: pong === undefined ? undefined : backlog,
      endingCertificates: ending,
      ownCertificateLeftMs: own && own.getTime() - checkedAt.getTime(),
      lateRecipients: late,
    })
  }

  return {
    current() {
      const now = clock.now()
      if (!last || now - last.at >= FRESH_MS || now < last.at) last = { at: now, status: ask() }
      return last.status
    },
  }
}

/** Undefined stands for: no answer. */
export interface Facts {
  readonly edges: number | undefined
  readonly database: boolean
  readonly waitingChanges: number | undefined
  /** Certificates of custom domains that end soon. */
  readonly endingCertificates: number | undefined
  /** The certificate of the service's own name, as edges show it; no answer when control cannot reach an edge itself. */
  readonly ownCertificateLeftMs: number | undefined
  readonly lateRecipients: number | undefined
}

export function summarise(checkedAt: Date, facts: Facts): Status {
  const parts = [drops(facts), publishing(facts), changes(facts), certificates(facts), mails(facts)]
  const state = parts.some((part) => part.state === 'away')
    ? 'away'
    : parts.some((part) => part.state === 'degraded')
      ? 'degraded'
      : 'ok'
  return { state, checkedAt, databaseAnswers: facts.database, parts }
}

/** Edges answer from their own copy, so that not being able to ask them says little about visitors. */
function drops({ edges }: Facts): Part {
  const name = 'Published drops'
  if (edges === undefined)
    return { name, state: 'degraded', detail: 'The edges cannot be asked right now. They serve what they know.' }
  if (edges === 0) return { name, state: 'away', detail: 'No edge has reported lately.' }
  return { name, state: 'ok', detail: edges === 1 ? 'The edge answers.' : `All ${edges} edges answer.` }
}

function publishing({ database }: Facts): Part {
  const name = 'Publishing, accounts and dashboard'
  return database
    ? { name, state: 'ok', detail: 'The database answers.' }
    : { name, state: 'away', detail: 'The database does not answer. What is published stays online.' }
}

function changes({ waitingChanges }: Facts): Part {
  const name = 'Changes on their way to visitors'
  if (waitingChanges === undefined)
    return { name, state: 'degraded', detail: 'Changes are kept and arrive as soon as the way is free again.' }
  return waitingChanges > MAX_BACKLOG
    ? { name, state: 'degraded', detail: 'Many changes wait. They arrive later than usual.' }
    : { name, state: 'ok', detail: 'Changes arrive at once.' }
}

function certificates({ endingCertificates, ownCertificateLeftMs = Number.POSITIVE_INFINITY }: Facts): Part {
  const name = 'Certificates'
  if (ownCertificateLeftMs <= 0)
    return { name, state: 'away', detail: 'The certificate of this service has ended. Browsers warn of it.' }
  if (ownCertificateLeftMs < CERTIFICATE_WARNING_MS)
    return {
      name,
      state: 'degraded',
      detail: 'The certificate of this service ends within a week and is not renewed yet.',
    }
  if (endingCertificates === undefined)
    return { name, state: 'degraded', detail: 'Cannot be looked at right now. Those in use stay in use.' }
  return endingCertificates > 0
    ? {
        name,
        state: 'degraded',
        detail: 'Some certificates of custom domains end within a week and are not renewed yet.',
      }
    : { name, state: 'ok', detail: 'All certificates are renewed in time.' }
}

/** Links to verify an address and to reset a password come by mail. */
function mails({ lateRecipients }: Facts): Part {
  const name = 'Mails'
  if (lateRecipients === undefined)
    return { name, state: 'degraded', detail: 'Mails are kept and leave as soon as the database answers again.' }
  return lateRecipients > MAX_LATE_RECIPIENTS
    ? { name, state: 'degraded', detail: 'Mails leave later than usual. They are kept and tried again.' }
    : { name, state: 'ok', detail: 'Mails leave at once.' }
}

function placeOf(baseUrl: string): TlsPlace {
  const { hostname, port } = new URL(baseUrl)
  return { host: hostname, port: Number(port || 443), servername: hostname, timeoutMs: QUESTION_MS }
}

/** Undefined when it failed or took too long. */
async function answered<Value>(question: Promise<Value>): Promise<Value | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, QUESTION_MS, undefined)
  })
  try {
    return await Promise.race([question, late])
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}
