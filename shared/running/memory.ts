/** How much memory this machine, or the container or unit that we run in, has; and what is different where that is little. */
import { readFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** Below this, threads and processes that only make things faster do not begin. */
const LITTLE_MEMORY_BYTES = 1_000_000_000

export function hasLittleMemory(limitBytes = memoryLimit()): boolean {
  return limitBytes < LITTLE_MEMORY_BYTES
}

/**
 * What Node is told where memory is little: collect the young more often, instead of keeping 48 MB for them, and the old before
 * there is half as much garbage again as is held.
 */
export function heapFlags(limitBytes?: number): readonly string[] {
  return hasLittleMemory(limitBytes) ? ['--max-semi-space-size=2', '--heap-growing-percent=30'] : []
}

/**
 * Pieces beyond the first figure go back to the system as soon as they are free, and so does free room at the end of what a
 * thread has, beyond the second. By itself the C library grows both with what it once gave: after some passwords, which take
 * 19 MB each for a moment, a process kept 115 MB.
 */
const GIVES_BACK = { MALLOC_MMAP_THRESHOLD_: '4194304', MALLOC_TRIM_THRESHOLD_: '8388608' }

/**
 * What the C library is told. Also to let threads share room, of which each would keep some of what it once had: control has
 * some thirty, and kept eighty megabytes after a hundred thousand files. An edge has few, and visitors who count microseconds.
 */
export function allocatorSettings(plane: 'control' | 'edge', limitBytes?: number): Readonly<Record<string, string>> {
  const areFew = plane === 'control' || hasLittleMemory(limitBytes)
  return { ...GIVES_BACK, ...(areFew && { MALLOC_ARENA_MAX: '2' }) }
}

/** The smallest of the machine's memory and the limits of every control group that we are in. */
export function memoryLimit(root = '/'): number {
  return Math.min(os.totalmem(), ...groupLimits(root))
}

/** Files that hold a limit: of control groups version 2, and of version 1. A container sees its own group as the root. */
function groupLimits(root: string): number[] {
  const groups = readText(path.join(root, 'proc/self/cgroup'))?.trim().split('\n') ?? []
  return groups.flatMap((line) => {
    const [, controllers = '', group = '/'] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    if (controllers === '') return limitsAlong(path.join(root, 'sys/fs/cgroup'), group, 'memory.max')
    if (!controllers.split(',').includes('memory')) return []
    return limitsAlong(path.join(root, 'sys/fs/cgroup/memory'), group, 'memory.limit_in_bytes')
  })
}

/** A group has what it and all groups above it allow. */
function limitsAlong(mount: string, group: string, file: string): number[] {
  const limits: number[] = []
  for (let current = group; ; current = path.dirname(current)) {
    // `max` where there is none.
    const bytes = Number(readText(path.join(mount, current, file)))
    if (bytes > 0) limits.push(bytes)
    if (current === path.dirname(current)) return limits
  }
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
