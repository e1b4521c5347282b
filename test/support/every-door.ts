/**
 * A stranger who tries every route of the control plane with everything that could open it: each field that any form or
 * body of ours knows, in each encoding, with each kind of credential that is not an account's. What they got is counted
 * in the database, not in the answers.
 */
import type { Route } from '../../control/ground/http/route.ts'
import type { Sql } from '../../control/ground/database/sql.ts'

/** What a person has who has come in. */
const TABLES = [
  'users',
  'sessions',
  'memberships',
  'organisations',
  'api_tokens',
  'oauth_grants',
  'sites',
  'versions',
  'uploads',
  'sign_up_links',
] as const

export type Belongings = Readonly<Record<(typeof TABLES)[number], number>>

export async function belongings(sql: Sql): Promise<Belongings> {
  const counts = await Promise.all(
    TABLES.map(async (table) => {
      const [row] = await sql<{ count: number }[]>`select count(*)::int as count from ${sql(table)}`
      return [table, row?.count ?? 0] as const
    }),
  )
  return Object.fromEntries(counts) as Belongings
}

export interface Door {
  readonly name: string
  readonly headers?: Readonly<Record<string, string>>
  /** Fields that take the place of the ordinary ones. */
  readonly fields?: Readonly<Record<string, string>>
}

export interface Attempt {
  readonly what: string
  readonly status: number
  /** Whether the answer gives the browser a session. */
  readonly hasSession: boolean
}

interface Stranger {
  readonly url: string
  readonly origin: string
  /** What stands at the `:name` parts of paths. */
  readonly params: Readonly<Record<string, string>>
  readonly fields: Readonly<Record<string, string>>
}

const ENCODINGS = ['json', 'form', 'multipart'] as const

/** Every route through one door. */
export async function tryEvery(routes: readonly Route[], door: Door, stranger: Stranger): Promise<Attempt[]> {
  const attempts: Attempt[] = []
  for (const route of routes) {
    const encodings = route.method === 'GET' || route.method === 'OPTIONS' ? [undefined] : ENCODINGS
    for (const encoding of encodings) attempts.push(await tryOne(route, door, stranger, encoding))
  }
  return attempts
}

async function tryOne(
  { method, path }: Route,
  door: Door,
  { url, origin, params, fields }: Stranger,
  encoding: (typeof ENCODINGS)[number] | undefined,
): Promise<Attempt> {
  const all = { ...fields, ...door.fields }
  const filled = path.replaceAll(/:(\w+)/g, (_whole, name: string) => encodeURIComponent(params[name] ?? 'x'))
  const address = new URL(filled.replace(/\*$/, 'x'), url)
  for (const [name, value] of Object.entries(all)) address.searchParams.set(name, value)
  const response = await fetch(address, {
    method,
    redirect: 'manual',
    headers: { origin, 'sec-fetch-site': 'same-origin', ...door.headers, ...typeOf(encoding) },
    ...(encoding === undefined ? {} : { body: bodyOf(encoding, all) }),
  })
  await response.arrayBuffer()
  const hasSession = response.headers.getSetCookie().some((cookie) => /_session=[^;]/.test(cookie))
  return { what: `${method} ${path} as ${encoding ?? 'a page'}, ${door.name}`, status: response.status, hasSession }
}

function typeOf(encoding: (typeof ENCODINGS)[number] | undefined): Record<string, string> {
  return encoding === 'json' ? { 'content-type': 'application/json' } : {}
}

function bodyOf(encoding: (typeof ENCODINGS)[number], fields: Readonly<Record<string, string>>): BodyInit {
  if (encoding === 'json') return JSON.stringify(fields)
  if (encoding === 'form') return new URLSearchParams(fields)
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  form.set('file', new File(['<!doctype html><title>x</title>'], 'index.html', { type: 'text/html' }))
  return form
}
