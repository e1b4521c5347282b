/** What else a machine had to do while something was measured. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Worker } from 'node:worker_threads'

export interface Circumstances {
  /** Part of the time during which processes waited for a processor; undefined where the system does not say. */
  readonly pressure: number | undefined
  /** Part of the processor time wanted here that the host of a virtual machine gave to others. */
  readonly stolen: number
  /** An event loop that had nothing to do meanwhile: when it was late, everything was. */
  readonly idle: { readonly p999Ms: number; readonly maxMs: number }
}

/** Where the host gives more to others, everything stands still at once, and times say little about the work. */
const MAX_STOLEN_SHARE = 0.05

export function isOurs({ stolen }: Pick<Circumstances, 'stolen'>): boolean {
  return stolen <= MAX_STOLEN_SHARE
}

/** What the host gives to others from now on, as a part of what was wanted here. */
export function watchHost(): () => number {
  const begun = processorTicks()
  return () => {
    const { used, stolen } = processorTicks()
    const wanted = used - begun.used + stolen - begun.stolen
    return wanted > 0 ? (stolen - begun.stolen) / wanted : 0
  }
}

/** From now on; until the answer is called, once. */
export function watchMachine(): () => Promise<Circumstances> {
  const begun = { atMs: performance.now(), waitedMs: waitedMs() }
  const stolen = watchHost()
  const idleLoop = new Worker(IDLE_LOOP, { eval: true })
  idleLoop.unref()
  return async () => {
    idleLoop.postMessage('how was it?')
    const [idle] = (await once(idleLoop, 'message')) as [Circumstances['idle']]
    await idleLoop.terminate()
    const waited = waitedMs()
    return {
      pressure:
        waited === undefined || begun.waitedMs === undefined
          ? undefined
          : (waited - begun.waitedMs) / (performance.now() - begun.atMs),
      stolen: stolen(),
      idle,
    }
  }
}

export function describeCircumstances({ pressure = 0, stolen, idle }: Circumstances): string {
  const late = `an idle loop late by ${idle.p999Ms.toFixed(0)} and ${idle.maxMs.toFixed(0)} ms`
  return `waited ${percent(pressure)}, taken by the host ${percent(stolen)}, ${late}`
}

/** As the planes measure their own (`edge/processes/status/delay-meter.ts`), in a thread of its own. */
const IDLE_LOOP = `
  const { monitorEventLoopDelay } = require('node:perf_hooks')
  const { parentPort } = require('node:worker_threads')
  const histogram = monitorEventLoopDelay({ resolution: 10 })
  histogram.enable()
  const toMs = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - 10)
  parentPort.on('message', () =>
    parentPort.postMessage({ p999Ms: toMs(histogram.percentile(99.9)), maxMs: toMs(histogram.max) }))
`

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}

/** How long some process has waited for a processor since the machine started. */
function waitedMs(): number | undefined {
  try {
    const [, total] = /^some .*total=(\d+)/m.exec(readFileSync('/proc/pressure/cpu', 'utf8'))!
    return Number(total) / 1000
  } catch {
    return undefined
  }
}

/** What the machine's processors did for us since it started, and what its host gave to others meanwhile (proc_stat(5)). */
function processorTicks(): { used: number; stolen: number } {
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, stolen = 0] = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]!
    .split(/\s+/)
    .map(Number)
  return { used: user + nice + system + irq + softirq, stolen }
}
