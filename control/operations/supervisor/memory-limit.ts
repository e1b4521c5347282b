/** Whether there is enough memory to begin. */
import { memoryLimit } from '../../../shared/running/memory.ts'
import { StartRefused } from './preflight.ts'

const MB = 1_000_000

/** Refuses a start that the kernel would end later, again and again, when people use it. */
export function requireMemory(minimumMb: number, availableBytes = memoryLimit()): void {
  if (availableBytes >= minimumMb * MB) return
  throw new StartRefused(
    `Dropway needs ${minimumMb} MB of memory and has ${Math.floor(availableBytes / MB)} MB here. Give it more, run the planes on several machines, or set MIN_MEMORY_MB to try with less.`,
  )
}
