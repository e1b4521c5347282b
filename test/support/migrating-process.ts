/** A control as far as its migrations. It is told over its channel which database and which folder of migrations. */
import { once } from 'node:events'
import { migrate } from '../../control/ground/database/migrate.ts'
import { openDatabase } from '../../control/ground/database/sql.ts'

export interface Migrating {
  readonly url: string
  readonly folder: string
}

const [{ url, folder }] = (await once(process, 'message')) as [Migrating]
const sql = openDatabase({ url, maxConnections: 2 })
await migrate(sql, new URL(folder))
await sql.end({ timeout: 1 })
process.disconnect?.()
