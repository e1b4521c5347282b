/** Who looked at a drop that only its viewers see: noted in memory, and handed to the primary like views. */
import { SECOND_MS } from '../../shared/running/clock.ts'

/** Viewers that one worker notes between two hand-overs, which are a second apart. */
const MAX_NOTED = 20_000
/** Viewers and guest links; members and programs are not listed anywhere. */
const LISTED = /^(?:vw|gl)_/

export interface Visits {
  /** A page was opened by a viewer or by a guest link. */
  note(subject: string): void
  /** What was noted since the last call, as of now: `<subject>|<second>` and how many. */
  take(nowMs: number): [string, number][]
}

export function createVisits(): Visits {
  let noted = new Map<string, number>()
  return {
    note(subject) {
      const count = noted.get(subject)
      if (count !== undefined) noted.set(subject, count + 1)
      else if (noted.size < MAX_NOTED && LISTED.test(subject)) noted.set(subject, 1)
    },
    take(nowMs) {
      const second = Math.floor(nowMs / SECOND_MS)
      const taken = [...noted].map(([subject, count]): [string, number] => [`${subject}|${second}`, count])
      if (taken.length > 0) noted = new Map()
      return taken
    },
  }
}
