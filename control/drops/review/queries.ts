import type { Sql } from '../../ground/database/sql.ts'

/** A drop as a pass for it says it. */
export interface PassedDrop {
  readonly password_generation: number
  readonly admission_ms: number | null
  /** The ordinal of the history that passes are given in. */
  readonly history: number
}

/** Locked: a change of who may see the drop waits, or is seen. */
export async function lockPassedDrop(sql: Sql, siteId: string): Promise<PassedDrop | undefined> {
  const [row] = await sql<PassedDrop[]>`
    select password_generation, admission_ms, (select ordinal from history) as history
    from sites where id = ${siteId} and deleted_at is null for share`
  return row
}
