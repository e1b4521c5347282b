/** What an operator does with everything that is kept: copies of it, and whether it is whole. */
import { parseArgs } from 'node:util'
import { NoBackupPlace, NothingToMove } from '../../plans/backups/backups.ts'
import type { MoveResult, ScrubResult } from '../../plans/backups/content.ts'
import { RestoreRefused } from '../../plans/backups/restore.ts'
import { options, UsageError, type Command } from './command.ts'

const backup: Command = {
  usage: 'backup [<directory or s3://…>]',
  summary:
    'copies everything of one moment: tables, content, certificates; again into the same place: what is new; BACKUP_TO without one',
  async run({ backups }, args) {
    const [place] = parseArgs({ args: [...args], allowPositionals: true, strict: true }).positionals
    return said(backups.take(place))
  },
}

const drill: Command = {
  usage: 'drill [--backup <directory or s3://…>] [--snapshot <name>] [--database <postgres://…>]',
  summary: 'restores the newest backup into a scratch database and directory, counts what came back, and removes both',
  async run({ backups }, args) {
    const {
      backup: place,
      snapshot,
      database,
    } = options(args, { backup: { type: 'string' }, snapshot: { type: 'string' }, database: { type: 'string' } })
    return said(
      backups.drill({
        ...(place !== undefined && { place }),
        ...(snapshot !== undefined && { snapshot }),
        ...(database !== undefined && { database }),
      }),
    )
  },
}

const migrateBlobs: Command = {
  usage: 'migrate-blobs [--to <file:… or s3://…>]',
  summary:
    'copies all content to another store while this one serves; without --to, what is still missing from BLOB_STORE_FORMER',
  async run({ backups }, args) {
    const { to } = options(args, { to: { type: 'string' } })
    return said(backups.moveContent(to))
  },
  hasFailed: (result) => (result as MoveResult).damaged > 0,
}

const scrub: Command = {
  usage: 'scrub [--mend-from <directory or s3://…>]',
  summary:
    'reads all content and compares it with its names; damaged or missing blobs are named, and fetched from a backup with --mend-from',
  async run({ backups }, args) {
    const { 'mend-from': mendFrom } = options(args, { 'mend-from': { type: 'string' } })
    return said(backups.scrub(mendFrom))
  },
  // Whoever runs it every night hears of it by the exit code.
  hasFailed: (result) => {
    const { damaged, mended } = result as ScrubResult
    return damaged > mended
  },
}

export const contentCommands: readonly (readonly [string, Command])[] = [
  ['backup', backup],
  ['drill', drill],
  ['migrate-blobs', migrateBlobs],
  ['scrub', scrub],
]

/** What an operator can mend is a sentence, without a stack. */
export async function said<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    const isMendable = [RestoreRefused, NoBackupPlace, NothingToMove].some((kind) => error instanceof kind)
    throw isMendable ? new UsageError((error as Error).message) : error
  }
}
