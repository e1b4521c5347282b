import type { Sql } from '../../ground/database/sql.ts'
import type { GrantRow } from './queries.ts'

export interface DeviceCodeRow {
  hash: string
  client_id: string
  client_name: string
  scopes: string[]
  resource: string
  asked_from: string
  created_at: Date
  expires_at: Date
  interval_seconds: number
  polled_at: Date | null
  denied_at: Date | null
  grant_id: string | null
  used_at: Date | null
}

type NewDeviceCode = Omit<DeviceCodeRow, 'polled_at' | 'denied_at' | 'grant_id' | 'used_at'> & {
  user_code_hash: string
}

/** False when the short code is in use, which the caller answers with another one. */
export async function insertDeviceCode(sql: Sql, code: NewDeviceCode): Promise<boolean> {
  const result = await sql`insert into oauth_device_codes ${sql(code)} on conflict (user_code_hash) do nothing`
  return result.count === 1
}

export async function lockDeviceCode(sql: Sql, hash: string): Promise<DeviceCodeRow | undefined> {
  const [row] = await sql<DeviceCodeRow[]>`select * from oauth_device_codes where hash = ${hash} for update`
  return row
}

/** The request that a person may still decide. */
export async function findUndecided(sql: Sql, userCodeHash: string, now: Date): Promise<DeviceCodeRow | undefined> {
  const [row] = await sql<DeviceCodeRow[]>`
    select * from oauth_device_codes
    where user_code_hash = ${userCodeHash} and expires_at > ${now} and denied_at is null and grant_id is null
    for update`
  return row
}

export async function findGrant(sql: Sql, grantId: string): Promise<GrantRow | undefined> {
  const [row] = await sql<GrantRow[]>`select * from oauth_grants where id = ${grantId}`
  return row
}

export async function updateDeviceCode(
  sql: Sql,
  hash: string,
  changes: Partial<Pick<DeviceCodeRow, 'interval_seconds' | 'polled_at' | 'denied_at' | 'grant_id' | 'used_at'>>,
): Promise<void> {
  await sql`update oauth_device_codes set ${sql(changes)} where hash = ${hash}`
}
