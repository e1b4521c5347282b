/** What Postgres says when it cannot start, as one sentence for the operator. */

/** A write that ends early is the last page of a full disk. */
const FULL_DISK = /no space left on device|disk quota exceeded|wrote only \d+ of \d+ bytes/i
/** Its log lines: `2026-11-17 03:00:00.000 UTC [12] FATAL:  …`; those of initdb: `initdb: error: …`. */
const COMPLAINTS = ['FATAL:', 'PANIC:', 'ERROR:', 'error:']

export function reasonOf(said: string, dataDir: string): string {
  if (FULL_DISK.test(said))
    return `the disk of DATA_DIR (${dataDir}) is full. Free some space, or set DATA_DIR to a directory on a larger disk.`
  const lines = said.split('\n').filter((line) => line.trim() !== '')
  const complaint = lines.map(complaintIn).find((text) => text !== undefined)
  const text = (complaint ?? lines.at(-1) ?? 'it ended without a word').trim()
  return /[.!]$/.test(text) ? text : `${text}.`
}

function complaintIn(line: string): string | undefined {
  const mark = COMPLAINTS.find((each) => line.includes(each))
  return mark === undefined ? undefined : line.slice(line.indexOf(mark) + mark.length)
}
