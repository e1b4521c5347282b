/** How much of control one network may have, at each worker (shared/running/shares.ts). */
import { patiently } from '../../shared/settings/patience.ts'
import type { ShareLimits } from '../../shared/running/shares.ts'

export const CONTROL_SHARES: ShareLimits = {
  // Control's answers take milliseconds; what takes longer is an upload, an export or an event stream.
  places: 512,
  placesPerCaller: 64,
  waiting: 2048,
  waitingPerCaller: 64,
  // Longer than a person believes that something is going on.
  waitMs: patiently(4000),
}
