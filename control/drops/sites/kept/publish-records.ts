/** The list of what went live when: how long an entry stays. */
import type { Sql } from '../../../ground/database/sql.ts'
import { forgetInBatches } from '../../../ground/database/forget.ts'
import { deletePublishesBefore } from './queries.ts'

/** Forgets publishes from before then. A drop that was not touched since keeps its versions; only the list is shorter. */
export const forgetPublishes = (sql: Sql, before: Date): Promise<number> =>
  forgetInBatches((limit) => deletePublishesBefore(sql, before, limit))
