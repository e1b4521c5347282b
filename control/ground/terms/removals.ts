/** What removes by itself, and how much of it at once an operator should look at first. No I/O, no clock. */

/**
 * The share of all that one run may remove. Drops: a clock that is wrong, or a restore, makes many due at once, and a day's
 * work is far less. Blobs count when they are older than the database, which has never known them: most of a store is unknown
 * to a database that is new.
 */
const MAX_REMOVED_SHARE = { drops: 0.1, blobs: 0.5 } as const
/** Where there is little, a large share of it is nothing unusual. */
const ALWAYS_REMOVABLE = 20

/** Whether so many are due to be removed that an operator should look first. */
export function mayNotRemove(what: keyof typeof MAX_REMOVED_SHARE, due: number, all: number): boolean {
  return due > Math.max(ALWAYS_REMOVABLE, all * MAX_REMOVED_SHARE[what])
}
