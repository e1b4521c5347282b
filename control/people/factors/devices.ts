/** Browsers that a person has signed in with. */
import type { Sql } from '../../ground/database/sql.ts'
import * as queries from './queries.ts'

/** Notes the device; says whether the person was never seen with it, and whether it is the first at all. */
export const noteDevice = (
  tx: Sql,
  seen: { userId: string; device: string; now: Date },
): Promise<{ isNew: boolean; isFirst: boolean }> => queries.upsertDevice(tx, seen)
