/**
 * Frees the buffers of bodies while they pass. V8 weighs only the small objects that own them, so that ten large uploads
 * leave two hundred megabytes behind before it looks; a young collection every few megabytes takes a millisecond.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const COLLECT_EVERY_BYTES = 6_000_000

type CollectGarbage = (options: { type: 'minor' }) => void

/** Tell it of every chunk that was received. */
export function createBufferCollector(): (bytes: number) => void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as CollectGarbage
  let received = 0
  return (bytes) => {
    received += bytes
    if (received < COLLECT_EVERY_BYTES) return
    received = 0
    collect({ type: 'minor' })
  }
}
