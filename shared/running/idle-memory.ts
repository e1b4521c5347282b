/**
 * Gives memory back when there is nothing to do. A start leaves tens of megabytes of garbage behind (sources, schemas), a
 * busy hour as well, and V8 keeps that room until new work fills it: on a small machine the neighbours need it.
 */
import { createHook } from 'node:async_hooks'
import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { MINUTE_MS } from './clock.ts'

const LOOK_MS = 5000
/** Below this share of its time a process is idle: jobs and heartbeats of a quiet service take two hundredths. */
const IDLE_SHARE = 0.05
/** A collection stops the process for some hundredths of a second, which is nothing if it is this seldom. */
const BETWEEN_MS = 10 * MINUTE_MS

export interface IdleMemory {
  /** What share of the time since the last look the process has worked. */
  look(share: number, nowMs: number): void
}

/** Collects once after the start and after each busy time, when the process has become idle. */
export function createIdleMemory(collect: () => void): IdleMemory {
  let isClean = false
  let collectedAt = -Infinity
  return {
    look(share, nowMs) {
      if (share >= IDLE_SHARE) isClean = false
      else if (!isClean && nowMs - collectedAt >= BETWEEN_MS) {
        collect()
        isClean = true
        collectedAt = nowMs
      }
    },
  }
}

export function giveBackWhenIdle(): void {
  keepTickShape()
  const memory = createIdleMemory(createCollect())
  let last = performance.eventLoopUtilization()
  setInterval(() => {
    memory.look(performance.eventLoopUtilization(last).utilization, performance.now())
    last = performance.eventLoopUtilization()
  }, LOOK_MS).unref()
}

let keptTick: object | undefined

/**
 * Holds one of the objects that `process.nextTick` makes. A collection in a quiet moment finds none of them and forgets their
 * shape; the next one has a new shape, and from then on V8 makes each of them property by property: 8 of 64 µs of a visit over
 * HTTP/2, which has seven.
 */
export function keepTickShape(): object {
  if (keptTick) return keptTick
  const hook = createHook({
    init(_id, type, _trigger, tick: object) {
      if (type === 'TickObject') keptTick = tick
    },
  }).enable()
  process.nextTick(() => {})
  hook.disable()
  if (!keptTick) throw new Error('this Node makes no TickObject')
  return keptTick
}

type Collect = (options: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void

/** Node shows V8's collector only to those who ask for it by a flag, which holds for contexts that are made while it is set. */
export function createCollect(): () => void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  // The other flavour finds the same garbage, and keeps its room.
  return () => collect({ type: 'major', flavor: 'last-resort' })
}
