/** The release before works on the newer schema, so a migration takes nothing away from it. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const FOLDER = new URL('../../../control/ground/database/migrations/', import.meta.url)
/** The last one that dropped what an older release read. */
const LAST_THAT_DROPPED = '0061_blob_spans.sql'

const TAKES_AWAY =
  /\bdrop\s+(?:table|column|sequence|type)\b|\brename\s+(?:to|column)\b|\bdrop\s+default\b|\bset\s+not\s+null\b/i

test.each(
  readdirSync(FOLDER)
    .filter((name) => name.endsWith('.sql') && name > LAST_THAT_DROPPED)
    .toSorted(),
)('%s only adds', (name) => {
  const sql = readFileSync(new URL(name, FOLDER), 'utf8').replaceAll(/--.*$/gm, '')
  expect(TAKES_AWAY.exec(sql)?.[0]).toBeUndefined()
  // A column without a default breaks every insert of the release before.
  const required = [...sql.matchAll(/\badd\s+column\s+[^,;]*\bnot\s+null\b[^,;]*/gi)].map(([column]) => column)
  expect(required.filter((column) => !/\bdefault\b|\bgenerated\b/i.test(column))).toEqual([])
})
