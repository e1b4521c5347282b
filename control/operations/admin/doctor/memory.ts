/** How much memory the processes of a stack really take: shared pages are counted once (PSS). */
import { readdirSync, readFileSync } from 'node:fs'

export interface ProcessMemory {
  readonly name: string
  readonly bytes: number
  readonly processes: number
}

/** For each named process: its own memory and that of everything it has started. */
export function memoryOf(processes: Readonly<Record<string, number>>): ProcessMemory[] {
  const children = childrenByParent()
  const named = new Set(Object.values(processes))
  return Object.entries(processes).map(([name, pid]) => {
    const pids = descendants(pid, children, named)
    return { name, processes: pids.length, bytes: pids.reduce((sum, each) => sum + proportionalBytes(each), 0) }
  })
}

/** A named child is counted under its own name, not under its parent's. */
function descendants(
  pid: number,
  children: ReadonlyMap<number, readonly number[]>,
  named: ReadonlySet<number>,
): number[] {
  const own = (children.get(pid) ?? []).filter((child) => !named.has(child))
  return [pid, ...own.flatMap((child) => descendants(child, children, named))]
}

function childrenByParent(): Map<number, number[]> {
  const children = new Map<number, number[]>()
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const parent = parentOf(Number(entry))
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), Number(entry)])
  }
  return children
}

function parentOf(pid: number): number | undefined {
  const status = readProc(pid, 'status')
  const match = status && /^PPid:\s+(\d+)/m.exec(status)
  return match ? Number(match[1]) : undefined
}

function proportionalBytes(pid: number): number {
  const pss = /^Pss:\s+(\d+) kB/m.exec(readProc(pid, 'smaps_rollup') ?? '')
  if (pss) return Number(pss[1]) * 1024
  // Another user's process, when we are not root: at least what it has resident.
  const rss = /^VmRSS:\s+(\d+) kB/m.exec(readProc(pid, 'status') ?? '')
  return rss ? Number(rss[1]) * 1024 : 0
}

/** A process may end while we look. */
function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return undefined
  }
}
