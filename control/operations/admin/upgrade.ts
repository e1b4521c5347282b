/** `admin upgrade --check`: what this release would do to the database, before it does it. Changes nothing. */
import { readFile } from 'node:fs/promises'
import { appliedMigrations, migrationNames, readMigration } from '../../ground/database/migrate.ts'
import type { Pool } from '../../ground/database/sql.ts'
import { tableSizes } from './queries.ts'
import { estimateSeconds, heldTables, isAdditive, stepsOf } from './upgrade-rules.ts'

export interface PendingMigration {
  readonly name: string
  readonly statements: number
  /** A cautious guess, from what the tables hold. */
  readonly seconds: number
  /** Tables whose changes wait meanwhile; reading goes on. */
  readonly holds: readonly { readonly table: string; readonly rows: number; readonly bytes: number }[]
}

export interface UpgradePlan {
  readonly release: string
  readonly applied: number
  readonly pending: readonly PendingMigration[]
  readonly seconds: number
  /** Migrations that the database has and this release does not know: a newer release has run on it. */
  readonly of_a_newer_release: readonly string[]
  readonly release_before: string
  readonly going_back: string
}

export async function planUpgrade(sql: Pool): Promise<UpgradePlan> {
  const known = await migrationNames()
  const applied = await appliedMigrations(sql)
  const sizes = await tableSizes(sql)
  const pending = await Promise.all(
    known
      .filter((name) => !applied.includes(name))
      .map(async (name) => ({ name, steps: stepsOf(await readMigration(name)) })),
  )
  const ending = pending.filter(({ steps }) => !isAdditive(steps)).map(({ name }) => name)
  return {
    release: await releaseOf(),
    applied: applied.length,
    pending: pending.map(({ name, steps }) => ({
      name,
      statements: steps.length,
      seconds: estimateSeconds(steps, sizes),
      holds: heldTables(steps, sizes).map((table) => ({ table, ...(sizes.get(table) ?? { rows: 0, bytes: 0 }) })),
    })),
    seconds: Math.round(pending.reduce((sum, { steps }) => sum + estimateSeconds(steps, sizes), 0) * 10) / 10,
    of_a_newer_release: applied.filter((name) => !known.includes(name)).toSorted(),
    release_before: wordsAbout(pending.length, ending),
    going_back:
      ending.length === 0
        ? 'Start the release before again, edges first: the schema stays as it is.'
        : 'Restore the backup that was taken before the upgrade.',
  }
}

function wordsAbout(pending: number, ending: readonly string[]): string {
  if (pending === 0) return 'Nothing changes for it: the database is up to date.'
  if (ending.length > 0) return `Stop it first: ${ending.join(', ')} takes something away that it needs.`
  return 'It goes on beside this one, controls and edges alike: every migration only adds.'
}

async function releaseOf(): Promise<string> {
  const text = await readFile(new URL('../../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
