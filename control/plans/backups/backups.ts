/**
 * Backups by themselves: every BACKUP_EVERY one of the controls copies everything of one moment to BACKUP_TO, and takes
 * away what is older than BACKUP_KEEP. A control that dies on the way leaves a snapshot without an end, which is none;
 * another one begins anew when it has given no sign of life for a while.
 */
import path from 'node:path'
import type { BlobStore } from '../../../shared/blobs/blob-store.ts'
import { locationOf } from '../../../shared/blobs/location.ts'
import { openOriginals } from '../../../shared/blobs/open.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { DAY_MS, type Clock } from '../../../shared/running/clock.ts'
import type { Log } from '../../../shared/running/log.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import type { ControlConfig } from '../../ground/config.ts'
import { transaction, type Pool } from '../../ground/database/sql.ts'
import { takeBackup, type BackupContext } from './backup.ts'
import { copyStore, scrubContent, type MoveResult, type ScrubResult } from './content.ts'
import { runDrill, type DrillResult } from './drill.ts'
import { openBackupPlace, type BackupPlace } from './place.ts'
import * as queries from './queries.ts'
import { restoreBackup } from './restore.ts'
import { pruneContent, prunePlace, removeAbandoned, type Pruned } from './retention.ts'
import { isBackupDue, SIGN_OF_LIFE_MS } from './rules.ts'

const MAX_ERROR_CHARS = 500
/** Notes about runs are for operators; the snapshots say what there is. */
const KEEP_RUNS_MS = 90 * DAY_MS
/** A draft that was not written to for so long is of a process that died. */
const DRAFT_LIFETIME_MS = DAY_MS

export interface TakenBackup {
  readonly snapshot: string
  readonly place: string
  readonly taken_at: string
  readonly rows: number
  readonly blobs: number
}

export interface Backups {
  /** Takes a backup if it is time for one, and no other control is at it. A job; one that is stopped has failed. */
  runDue(stopping?: AbortSignal): Promise<TakenBackup | undefined>
  /** Takes one now, there or at BACKUP_TO. */
  take(place: string | undefined): Promise<TakenBackup>
  /** Brings one back into an installation that is empty. */
  restore(place: string, snapshot: string | undefined): Promise<{ restored: string; taken_at: string }>
  /** Restores one into a scratch place, counts, and takes it away again. */
  drill(options: { place?: string; snapshot?: string; database?: string }): Promise<DrillResult>
  /** Takes away what is older than it is kept for. */
  prune(): Promise<Pruned>
  /** Reads all content and compares it with its names; `mendFrom` is a place of backups that has good copies. */
  scrub(mendFrom: string | undefined): Promise<ScrubResult>
  /** Copies all content to another store; without one, from BLOB_STORE_FORMER to BLOB_STORE. */
  moveContent(to: string | undefined): Promise<MoveResult>
  /** The end of the last good one; undefined when there was none, or none is wanted. */
  lastGoodAt(): Promise<Date | undefined>
}

interface BackupsDependencies {
  readonly sql: Pool
  readonly blobs: BlobStore
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
  readonly config: Pick<
    ControlConfig,
    'dataDir' | 'blobStore' | 'sitesDomain' | 'databaseUrl' | 'backupTo' | 'backupEveryMs' | 'backupKeepMs'
  >
}

/** Neither an argument nor a setting says where backups are. */
export class NoBackupPlace extends Error {
  constructor() {
    super('Say where: a directory, or s3://key:secret@bucket?endpoint=…; or set BACKUP_TO.')
  }
}

export class NothingToMove extends Error {
  constructor() {
    super('Say where to with --to <BLOB_STORE>; or set BLOB_STORE_FORMER, from which the rest is fetched.')
  }
}

export function createBackups(deps: BackupsDependencies): Backups {
  const { sql, blobs, secrets, clock, log, config } = deps
  const context = (stopping?: AbortSignal): BackupContext => ({
    sql,
    blobs,
    secrets,
    ...config,
    now: clock.now(),
    stopping,
  })
  const now = (): Date => new Date(clock.now())

  function placeOf(text: string | undefined): BackupPlace {
    const wanted = text ?? config.backupTo
    if (wanted === undefined) throw new NoBackupPlace()
    return openBackupPlace(wanted, path.join(config.dataDir, 'backup-drafts'))
  }

  async function take(text: string | undefined, stopping?: AbortSignal): Promise<TakenBackup> {
    const place = placeOf(text)
    // Before, not after a good one: where each backup is killed, or finds the disk full, their tables would pile up.
    await removeAbandoned(place, clock.now()).catch((error: unknown) =>
      log.warn({ err: error, place: place.description }, 'what killed backups left could not be removed'),
    )
    await place.sweep(clock.now() - DRAFT_LIFETIME_MS)
    const { name, facts } = await takeBackup(context(stopping), place)
    const rows = facts.tables.reduce((sum, table) => sum + table.rows, 0)
    return { snapshot: name, place: place.description, taken_at: facts.takenAt, rows, blobs: facts.blobs }
  }

  /** Also takes away content that no backup needs: nothing else does at a place of backups by hand. */
  async function takeByHand(text: string | undefined): Promise<TakenBackup> {
    const taken = await take(text)
    await pruneContent(placeOf(text), clock.now()).catch((error: unknown) =>
      log.warn({ err: error, place: taken.place }, 'content that no backup needs could not be removed'),
    )
    return taken
  }

  /** One control at a time; undefined when it is not time, or another one is at it. */
  function claim(): Promise<string | undefined> {
    return transaction(sql, async (tx) => {
      await queries.lockBackups(tx)
      const last = await queries.lastBackup(tx, { good: false })
      const lastGood = await queries.lastBackup(tx, { good: true })
      if (!isBackupDue(last, lastGood, config.backupEveryMs, clock.now())) return undefined
      const id = newId('bak')
      await queries.insertBackup(tx, id, now())
      return id
    })
  }

  async function runClaimed(id: string, stopping: AbortSignal | undefined): Promise<TakenBackup> {
    const alive = setInterval(() => void queries.noteAlive(sql, id, now()).catch(() => {}), SIGN_OF_LIFE_MS)
    alive.unref()
    try {
      const taken = await take(undefined, stopping)
      await queries.endBackup(sql, id, now(), { snapshot: taken.snapshot, rows: taken.rows, blobs: taken.blobs })
      log.info(taken, 'backup taken')
      return taken
    } catch (error) {
      await queries.endBackup(sql, id, now(), { error: String((error as Error).message).slice(0, MAX_ERROR_CHARS) })
      throw error
    } finally {
      clearInterval(alive)
    }
  }

  const prune = (): Promise<Pruned> => prunePlace(placeOf(undefined), config.backupKeepMs, clock.now())

  return {
    take: takeByHand,
    prune,
    async runDue(stopping) {
      if (config.backupTo === undefined) return undefined
      const id = await claim()
      if (id === undefined) return undefined
      const taken = await runClaimed(id, stopping)
      await prune()
      await queries.deleteOldRuns(sql, new Date(clock.now() - KEEP_RUNS_MS))
      return taken
    },
    async restore(text, snapshot) {
      const { name, facts } = await restoreBackup(context(), placeOf(text), snapshot)
      return { restored: name, taken_at: facts.takenAt }
    },
    drill: ({ place, snapshot, database }) =>
      runDrill({
        context: context(),
        place: placeOf(place),
        snapshot,
        databaseUrl: config.databaseUrl,
        scratchUrl: database,
      }),
    scrub: (mendFrom) => {
      const spare = mendFrom === undefined ? undefined : placeOf(mendFrom).blobs
      return scrubContent(sql, openOriginals(config.blobStore).current, spare)
    },
    async moveContent(to) {
      const { current, former } = openOriginals(config.blobStore)
      if (to !== undefined) return copyStore(current, openOriginals(locationOf(to, config.dataDir)).current)
      if (former === undefined) throw new NothingToMove()
      return copyStore(former, current)
    },
    async lastGoodAt() {
      if (config.backupTo === undefined) return undefined
      return (await queries.lastBackup(sql, { good: true }))?.started_at
    },
  }
}
