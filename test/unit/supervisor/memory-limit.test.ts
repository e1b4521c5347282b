import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { requireMemory } from '../../../control/operations/supervisor/preflight.ts'
import { allocatorSettings, hasLittleMemory, heapFlags, memoryLimit } from '../../../shared/running/memory.ts'

const roots: string[] = []
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true })
})

function machine(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(path.join(os.tmpdir(), 'dropway-test-memory-'))
  roots.push(root)
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true })
    writeFileSync(path.join(root, name), content)
  }
  return root
}

test.each([
  ['no control groups', {}, os.totalmem()],
  ['a container, version 2', { 'proc/self/cgroup': '0::/\n', 'sys/fs/cgroup/memory.max': '536870912\n' }, 536_870_912],
  ['a container without a limit', { 'proc/self/cgroup': '0::/\n', 'sys/fs/cgroup/memory.max': 'max\n' }, os.totalmem()],
  [
    'a unit of systemd, limited by the slice above it',
    {
      'proc/self/cgroup': '0::/small.slice/dropway.service\n',
      'sys/fs/cgroup/small.slice/dropway.service/memory.max': 'max\n',
      'sys/fs/cgroup/small.slice/memory.max': '700000000\n',
    },
    700_000_000,
  ],
  [
    'version 1, beside groups of other kinds',
    {
      'proc/self/cgroup': '5:pids:/x\n4:cpu,memory:/x\n0::/\n',
      'sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n',
      'sys/fs/cgroup/memory/x/memory.limit_in_bytes': '400000000\n',
    },
    400_000_000,
  ],
])('%s', (_name, files, expected) => {
  expect(memoryLimit(machine(files))).toBe(expected)
})

test('too little is refused with the figures and the way out; enough is not', () => {
  expect(() => requireMemory(1000, 536_870_912)).toThrow(
    'Dropway needs 1000 MB of memory and has 536 MB here. Give it more, run the planes on several machines, or set MIN_MEMORY_MB to try with less.',
  )
  expect(() => requireMemory(1000, 1_000_000_000)).not.toThrow()
  expect(() => requireMemory(0, 1)).not.toThrow()
})

test('where memory is little the planes are told to keep less of it for the young', () => {
  expect(hasLittleMemory(536_870_912)).toBe(true)
  expect(heapFlags(536_870_912)).toEqual(['--max-semi-space-size=2', '--heap-growing-percent=30'])
  expect(hasLittleMemory(1_000_000_000)).toBe(false)
  expect(heapFlags(1_000_000_000)).toEqual([])
})

test('threads of control share room in the C library, and those of an edge where memory is little', () => {
  const givesBack = { MALLOC_MMAP_THRESHOLD_: '4194304', MALLOC_TRIM_THRESHOLD_: '8388608' }
  expect(allocatorSettings('edge', 536_870_912)).toEqual({ ...givesBack, MALLOC_ARENA_MAX: '2' })
  expect(allocatorSettings('edge', 1_000_000_000)).toEqual(givesBack)
  expect(allocatorSettings('control', 1_000_000_000)).toEqual({ ...givesBack, MALLOC_ARENA_MAX: '2' })
})
