/** SQL of second factors. */
import type { Sql } from '../../ground/database/sql.ts'

export interface GeneratorRow {
  readonly sealedSecret: string
  readonly confirmedAt: Date | null
  readonly lastStep: number
}

export async function lockGenerator(sql: Sql, userId: string): Promise<GeneratorRow | undefined> {
  const [row] = await sql<GeneratorRow[]>`
    select sealed_secret as "sealedSecret", confirmed_at as "confirmedAt", last_step::int as "lastStep"
    from code_generators where user_id = ${userId} for update`
  return row
}

/** Takes the place of one that was never confirmed; false when there is a confirmed one. */
export async function putGenerator(
  sql: Sql,
  { userId, sealedSecret, now }: { userId: string; sealedSecret: string; now: Date },
): Promise<boolean> {
  const { count } = await sql`
    insert into code_generators (user_id, sealed_secret, created_at) values (${userId}, ${sealedSecret}, ${now})
    on conflict (user_id) do update set sealed_secret = excluded.sealed_secret, created_at = excluded.created_at, last_step = 0
    where code_generators.confirmed_at is null`
  return count === 1
}

export async function confirmGenerator(sql: Sql, userId: string, step: number, now: Date): Promise<void> {
  await sql`update code_generators set confirmed_at = ${now}, last_step = ${step} where user_id = ${userId}`
}

export async function takeStep(sql: Sql, userId: string, step: number): Promise<void> {
  await sql`update code_generators set last_step = ${step} where user_id = ${userId}`
}

export async function hasFactor(sql: Sql, userId: string): Promise<boolean> {
  const rows = await sql`select 1 from code_generators where user_id = ${userId} and confirmed_at is not null`
  return rows.length > 0
}

export async function deleteFactors(sql: Sql, userId: string): Promise<void> {
  await sql`delete from code_generators where user_id = ${userId}`
  await sql`delete from recovery_codes where user_id = ${userId}`
  await sql`delete from factor_recoveries where user_id = ${userId}`
}

export async function replaceRecoveryCodes(sql: Sql, userId: string, hashes: readonly string[]): Promise<void> {
  await sql`delete from recovery_codes where user_id = ${userId}`
  await sql`
    insert into recovery_codes (user_id, code_hash) select ${userId}, unnest(${hashes as string[]}::text[])`
}

/** False when there is no such code, or it was used. */
export async function spendRecoveryCode(sql: Sql, userId: string, hash: string, now: Date): Promise<boolean> {
  const { count } = await sql`
    update recovery_codes set used_at = ${now} where user_id = ${userId} and code_hash = ${hash} and used_at is null`
  return count === 1
}

export async function countRecoveryCodes(sql: Sql, userId: string): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from recovery_codes where user_id = ${userId} and used_at is null`
  return row?.count ?? 0
}

export async function markProved(sql: Sql, sessionId: string, now: Date): Promise<void> {
  await sql`update sessions set proved_at = ${now} where id = ${sessionId}`
}

/** False when one is under way already: its day is not begun anew. */
export async function insertRecovery(
  sql: Sql,
  recovery: { userId: string; cancelHash: string; now: Date; dueAt: Date },
): Promise<boolean> {
  const { count } = await sql`
    insert into factor_recoveries (user_id, cancel_hash, requested_at, due_at)
    values (${recovery.userId}, ${recovery.cancelHash}, ${recovery.now}, ${recovery.dueAt}) on conflict do nothing`
  return count === 1
}

export async function findRecovery(sql: Sql, userId: string): Promise<{ dueAt: Date } | undefined> {
  const [row] = await sql<{ dueAt: Date }[]>`
    select due_at as "dueAt" from factor_recoveries where user_id = ${userId}`
  return row
}

export async function findRecoveryByHash(sql: Sql, cancelHash: string): Promise<{ userId: string } | undefined> {
  const [row] = await sql<{ userId: string }[]>`
    select user_id as "userId" from factor_recoveries where cancel_hash = ${cancelHash}`
  return row
}

/** The person's address; undefined when none was under way. */
export async function deleteRecovery(sql: Sql, userId: string): Promise<string | undefined> {
  const [row] = await sql<{ email: string }[]>`
    delete from factor_recoveries using users where user_id = ${userId} and users.id = user_id returning email`
  return row?.email
}

/** False when the person was seen with this device before; true also notes it. */
export async function upsertDevice(
  sql: Sql,
  { userId, device, now }: { userId: string; device: string; now: Date },
): Promise<{ isNew: boolean; isFirst: boolean }> {
  const [known] = await sql<{ devices: number; same: number }[]>`
    select count(*)::int as devices, count(*) filter (where device = ${device})::int as same
    from known_devices where user_id = ${userId}`
  await sql`
    insert into known_devices (user_id, device, seen_at) values (${userId}, ${device}, ${now})
    on conflict (user_id, device) do update set seen_at = excluded.seen_at`
  return { isNew: (known?.same ?? 0) === 0, isFirst: (known?.devices ?? 0) === 0 }
}

export async function deleteDevices(sql: Sql, userId: string): Promise<void> {
  await sql`delete from known_devices where user_id = ${userId}`
}
