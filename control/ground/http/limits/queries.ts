import type { Sql } from '../../database/sql.ts'

export async function countAttempt(
  sql: Sql,
  key: string,
  window: { now: Date; resetsAt: Date },
): Promise<{ count: number; resetsAt: Date }> {
  const [row] = await sql<{ count: number; resetsAt: Date }[]>`
    insert into throttles (key, count, resets_at) values (${key}, 1, ${window.resetsAt})
    on conflict (key) do update set
      count = case when throttles.resets_at <= ${window.now} then 1 else throttles.count + 1 end,
      resets_at = case when throttles.resets_at <= ${window.now} then excluded.resets_at else throttles.resets_at end
    returning count, resets_at as "resetsAt"`
  if (row === undefined) throw new Error('an upsert returned no row')
  return row
}

export async function forgetAttempts(sql: Sql, key: string): Promise<void> {
  await sql`delete from throttles where key = ${key}`
}

export async function refundAttempt(sql: Sql, key: string): Promise<void> {
  await sql`update throttles set count = count - 1 where key = ${key} and count > 0`
}

export async function deleteEndedThrottles(sql: Sql, now: Date): Promise<void> {
  await sql`delete from throttles where resets_at <= ${now}`
}
