/** Removing what is old from a large table: in small steps, so that nothing else waits for long. */

const BATCH_ROWS = 5000
/** The rest is for the next run. */
const MAX_BATCHES = 50

/** `forget` removes so many rows at most, the oldest first, and resolves how many there were. */
export async function forgetInBatches(forget: (limit: number) => Promise<number>): Promise<number> {
  let total = 0
  for (let batch = 0; batch < MAX_BATCHES; batch++) {
    const removed = await forget(BATCH_ROWS)
    total += removed
    if (removed < BATCH_ROWS) break
  }
  return total
}
