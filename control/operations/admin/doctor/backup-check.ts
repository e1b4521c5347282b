/** Is there a backup, and is it young? */
import path from 'node:path'
import type { ControlConfig } from '../../../ground/config.ts'
import { openBackupPlace } from '../../../plans/backups/place.ts'
import { snapshotTime } from '../../../plans/backups/rules.ts'
import { messageOf, ok, problem, warning, type Check } from './finding.ts'

export const backups: Check<ControlConfig> = async ({ backupTo, backupEveryMs, dataDir }) => {
  if (backupTo === undefined) return []
  try {
    const place = openBackupPlace(backupTo, path.join(dataDir, 'backup-drafts'))
    const newest = (await place.snapshots()).at(-1)
    const at = newest === undefined ? undefined : snapshotTime(newest)
    if (at === undefined)
      return [warning('backups', `${place.description} holds none yet`, 'The first one is taken when control starts.')]
    const detail = `the newest in ${place.description} is of ${new Date(at).toUTCString()}`
    return Date.now() - at > 2 * backupEveryMs
      ? [
          problem(
            'backups',
            detail,
            'Look for "job failed" of the job "backup" in control.log; "admin backup" takes one now.',
          ),
        ]
      : [ok('backups', detail)]
  } catch (error) {
    return [problem('backups', messageOf(error), 'Check BACKUP_TO, and that it can be read and written.')]
  }
}
