/**
 * Is the database of DATABASE_URL one that control can work with? Asked once, before anything else is, so that what is
 * wrong with it is one sentence to the operator. Answers within ANSWER_MS, whatever the driver does: it tries several
 * hosts without end, and never says that none of them will do.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { patiently } from '../../../shared/settings/patience.ts'
import { one, openPlainly, type Pool } from './sql.ts'

const ANSWER_MS = patiently(5000)

/** A reason why the database cannot be used, that the operator can mend. */
export class DatabaseUnusable extends Error {}

export interface ReachedDatabase {
  /** A pooler (PgBouncer, PgCat, a cloud's proxy) stands between: sessions are not ours (sql.ts). */
  readonly isPooled: boolean
  /** A standby, or a primary that was set so: nothing can be changed. */
  readonly isReadOnly: boolean
}

interface Facts {
  readonly pid: number
  readonly is_read_only: boolean
}

export async function reachDatabase(url: string): Promise<ReachedDatabase> {
  let sql: Pool | undefined
  try {
    sql = openPlainly(url)
    const asked = sql<Facts[]>`
      select pg_backend_pid() as pid, current_setting('transaction_read_only')::boolean as is_read_only`
    const rows = await Promise.race([asked, sleep(ANSWER_MS, undefined, { ref: false })])
    if (rows === undefined) throw new DatabaseUnusable(silenceAt(url))
    const { pid, is_read_only: isReadOnly } = one(rows)
    // A pooler greets with a number of its own; Postgres with that of the process that answers.
    return { isPooled: rows.state.pid !== pid, isReadOnly }
  } catch (error) {
    throw error instanceof DatabaseUnusable ? error : new DatabaseUnusable(problemOf(error, url))
  } finally {
    void sql?.end({ timeout: 0 }).catch(() => {})
  }
}

function silenceAt(url: string): string {
  const attributes = /[?&]target_session_attrs=([\w-]+)/.exec(url)?.[1]
  if (attributes !== undefined)
    return `No Postgres at ${placeOf(url)} is ${attributes}, as target_session_attrs of DATABASE_URL demands, or none answers.`
  return `Postgres does not answer at ${placeOf(url)}. Check DATABASE_URL, and the network between.`
}

/** What Postgres, or the way to it, does not allow; undefined for any other error, which is a mistake of ours. */
export function databaseProblem(error: unknown, url: string): DatabaseUnusable | undefined {
  const { code } = error as { code?: string }
  const isAbout = code !== undefined && (MENDABLE_CLASSES.has(code.slice(0, 2)) || SILENT_CODES.has(code))
  return isAbout ? new DatabaseUnusable(problemOf(error, url)) : undefined
}

/** Classes of SQLSTATE: connections, authorisation, read-only transactions, resources, operators' interventions. */
const MENDABLE_CLASSES: ReadonlySet<string> = new Set(['08', '25', '28', '53', '57'])
const SILENT_CODES: ReadonlySet<string> = new Set([
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'ECONNREFUSED',
  'ECONNRESET',
])

/** What failed when Postgres was asked, as one sentence that says what to do. */
function problemOf(error: unknown, url: string): string {
  const { code = '', message } = error as { code?: string; message: string }
  const place = placeOf(url)
  switch (code) {
    case 'CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
    case 'CONNECTION_DESTROYED':
      return silenceAt(url)
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `The host of DATABASE_URL is not known (${place}). Check its name, and the name server.`
    case '28P01':
    case '28000':
      return `Postgres refuses the user or the password of DATABASE_URL: ${message}.`
    case '3D000':
      return `Postgres at ${place} has no such database: ${message}. Create it, or correct DATABASE_URL.`
    case '25006':
      return READ_ONLY
    case '53100':
      return `Postgres at ${place} has no space left on its disk. Free some there.`
    case 'ECONNREFUSED':
    case 'ECONNRESET':
    case 'EHOSTUNREACH':
    case 'ENOENT':
    case 'CONNECTION_CLOSED':
      return `Postgres cannot be reached at ${place} (${code}). Start it, or correct DATABASE_URL.`
    default:
      return `Postgres at ${place} cannot be used: ${message || code}.`
  }
}

export const READ_ONLY =
  'Postgres only reads: it is a standby, or was set so. Point DATABASE_URL at the primary, or let it be promoted.'

/** `postgres://user:password@a:5432,b/name?…` → `a:5432,b/name` */
function placeOf(url: string): string {
  const [place = ''] = url.split('?', 1)
  return place.slice(place.lastIndexOf('@') + 1).replace(/^\w+:\/\//, '')
}
