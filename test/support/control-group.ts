/** A control group of a test's or bench's own: less memory and less of a processor than the machine has. Needs root. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { until } from './processes.ts'

const MOUNT = '/sys/fs/cgroup'
const PERIOD_US = 100_000

export interface ControlGroup {
  /** Puts a process, and all that it starts from now on, into the group. */
  add(pid: number): void
  /** Processes that the kernel ended because the group had no memory left. */
  kills(): number
  /** What processes of the group have made themselves, without the pages of files, which the kernel takes back. */
  anonymousBytes(): number
  /** The most that the group had at once, pages of files included. */
  peakBytes(): number
  /** Once every process in it has gone. */
  remove(): Promise<void>
}

/** `processors` may be a part of one. */
export function createControlGroup(limits: { memoryBytes: number; processors: number }): ControlGroup {
  const name = `dropway-${process.pid}`
  return existsSync(path.join(MOUNT, 'cgroup.controllers')) ? versionTwo(name, limits) : versionOne(name, limits)
}

function versionTwo(
  name: string,
  { memoryBytes, processors }: { memoryBytes: number; processors: number },
): ControlGroup {
  writeFileSync(path.join(MOUNT, 'cgroup.subtree_control'), '+memory +cpu')
  const group = openFolder(path.join(MOUNT, name))
  group.write('memory.max', memoryBytes)
  group.write('cpu.max', `${processors * PERIOD_US} ${PERIOD_US}`)
  return {
    add: (pid) => group.write('cgroup.procs', pid),
    kills: () => group.field('memory.events', 'oom_kill'),
    anonymousBytes: () => group.field('memory.stat', 'anon'),
    peakBytes: () => Number(group.read('memory.peak')),
    remove: () => group.remove(),
  }
}

function versionOne(
  name: string,
  { memoryBytes, processors }: { memoryBytes: number; processors: number },
): ControlGroup {
  const memory = openFolder(path.join(MOUNT, 'memory', name))
  const cpu = openFolder(path.join(MOUNT, 'cpu', name))
  memory.write('memory.limit_in_bytes', memoryBytes)
  cpu.write('cpu.cfs_period_us', PERIOD_US)
  cpu.write('cpu.cfs_quota_us', processors * PERIOD_US)
  return {
    add(pid) {
      memory.write('cgroup.procs', pid)
      cpu.write('cgroup.procs', pid)
    },
    kills: () => memory.field('memory.oom_control', 'oom_kill'),
    anonymousBytes: () => memory.field('memory.stat', 'total_rss'),
    peakBytes: () => Number(memory.read('memory.max_usage_in_bytes')),
    async remove() {
      await memory.remove()
      await cpu.remove()
    },
  }
}

function openFolder(folder: string) {
  mkdirSync(folder)
  const read = (file: string): string => readFileSync(path.join(folder, file), 'utf8')
  return {
    read,
    write: (file: string, value: number | string) => writeFileSync(path.join(folder, file), String(value)),
    field: (file: string, name: string) =>
      Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(read(file))?.[1] ?? Number.NaN),
    async remove(): Promise<void> {
      await until(() => read('cgroup.procs').trim() === '', 'the control group to be empty')
      rmdirSync(folder)
    },
  }
}
