import { one, type Sql } from '../../ground/database/sql.ts'

/** The ordinal of the history that passes are given in. */
export async function findHistory(sql: Sql): Promise<number> {
  return one(await sql<{ ordinal: number }[]>`select ordinal from history`).ordinal
}
