/** How much memory this machine, or the container or unit that we run in, has. */
import { readFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { StartRefused } from './preflight.ts'

const MB = 1_000_000

/** Refuses a start that the kernel would end later, again and again, when people use it. */
export function requireMemory(minimumMb: number, availableBytes = memoryLimit()): void {
  if (availableBytes >= minimumMb * MB) return
  throw new StartRefused(
    `Dropway needs ${minimumMb} MB of memory and has ${Math.floor(availableBytes / MB)} MB here. Give it more, run the planes on several machines, or set MIN_MEMORY_MB to try with less.`,
  )
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
