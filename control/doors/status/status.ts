/**
 * Is the service well? What control itself can see, in words for everyone: no names, addresses or figures of anyone.
 * Asked anew at most every FRESH_MS, whoever asks how often; each question has a time limit, because what is broken
 * usually does not answer.
 */
import { DAY_MS, SECOND_MS, type Clock } from '../../../shared/clock.ts'
import { liveEdges, type EdgeRegistry } from '../../../shared/live-edges.ts'
import type { Domains } from '../../drops/domains/domains.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { outboxBacklog } from '../../ground/events/outbox.ts'

const FRESH_MS = 5 * SECOND_MS
const QUESTION_MS = 1500
/** More waiting changes than this is not a moment's backlog. */
const MAX_BACKLOG = 1000
/** Certificates are renewed weeks before this. */
const CERTIFICATE_WARNING_MS = 7 * DAY_MS

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
  readonly redis: EdgeRegistry & { ping(): Promise<string> }
  readonly clock: Clock
}

export function createServiceStatus({ sql, domains, redis, clock }: StatusDependencies): ServiceStatus {
  let last: { readonly at: number; readonly status: Promise<Status> } | undefined

  async function ask(): Promise<Status> {
    const checkedAt = new Date(clock.now())
    const [edges, backlog, pong, ending] = await Promise.all([
      answered(liveEdges(redis)),
      answered(outboxBacklog(sql)),
      answered(redis.ping()),
      answered(domains.endingCertificates(new Date(checkedAt.getTime() + CERTIFICATE_WARNING_MS))),
    ])
    return summarise(checkedAt, {
      edges: edges?.length,
      database: backlog !== undefined,
      waitingChanges: pong === undefined ? undefined : backlog,
      endingCertificates: ending,
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
  readonly endingCertificates: number | undefined
}

export function summarise(checkedAt: Date, facts: Facts): Status {
  const parts = [drops(facts), publishing(facts), changes(facts), certificates(facts)]
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

function certificates({ endingCertificates }: Facts): Part {
  const name = 'Certificates'
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
