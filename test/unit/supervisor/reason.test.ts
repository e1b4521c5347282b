import { expect, test } from 'vitest'
import { reasonOf } from '../../../control/operations/supervisor/postgres/reason.ts'

const FULL = 'the disk of DATA_DIR (/data) is full. Free some space, or set DATA_DIR to a directory on a larger disk.'

test.each([
  [
    'initdb on a full disk',
    'creating subdirectories ... ok\ninitdb: error: could not write to file "/data/postgres.new/pg_wal": No space left on device',
    FULL,
  ],
  [
    'initdb, when a part of a page still fits',
    'performing post-bootstrap initialization ... 2026-11-17 03:00:00.000 UTC [12] FATAL:  could not extend file "base/1/2691": wrote only 4096 of 8192 bytes at block 9',
    FULL,
  ],
  [
    'the server on a full disk',
    '2026-11-17 03:00:00.000 UTC [12] LOG:  starting\n2026-11-17 03:00:00.100 UTC [12] FATAL:  could not write lock file "postmaster.pid": No space left on device',
    FULL,
  ],
  [
    'another complaint, of which the first is the cause',
    '2026-11-17 03:00:00.000 UTC [12] FATAL:  data directory "/data" has invalid permissions\n2026-11-17 03:00:00.000 UTC [12] DETAIL:  Permissions should be u=rwx (0700)',
    'data directory "/data" has invalid permissions.',
  ],
  ['nothing that looks like one', 'Illegal instruction\n', 'Illegal instruction.'],
  ['nothing at all', '', 'it ended without a word.'],
])('%s', (_name, said, sentence) => {
  expect(reasonOf(said, '/data')).toBe(sentence)
})
