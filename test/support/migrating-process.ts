/** A control as far as its migrations: `node migrating-process.ts <database> <folder of migrations>`. */
import { migrate } from '../../control/ground/database/migrate.ts'
import { openDatabase } from '../../control/ground/database/sql.ts'

const [url = '', folder = ''] = process.argv.slice(2)
const sql = openDatabase({ url, maxConnections: 2 })
await migrate(sql, new URL(folder))
await sql.end({ timeout: 1 })
