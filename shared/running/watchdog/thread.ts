/**
 * The watcher's side of watchdog.ts. Time is counted in its own ticks, not read from a clock: a process or a machine that
 * was stopped and goes on has not hung, and its main thread gets as many turns as this one before it is judged.
 */
import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { workerData } from 'node:worker_threads'
import { readStack, type Frame } from './stack.ts'
import type { WatcherData } from './watchdog.ts'

const { name, counts, note, beatMs, hangMs } = workerData as WatcherData
/** pino's number for `fatal`. */
const FATAL_LEVEL = 60
const STDERR = 2

const shared = new Int32Array(counts)
let seen = Atomics.load(shared, 0)
let silentTicks = 0
while (silentTicks * beatMs < hangMs) {
  await sleep(beatMs)
  const beats = Atomics.load(shared, 0)
  silentTicks = beats === seen ? silentTicks + 1 : 0
  seen = beats
}
report(await readStack())
process.kill(process.pid, 'SIGKILL')

function report(frames: readonly Frame[] | undefined): void {
  const entry = {
    level: FATAL_LEVEL,
    time: new Date().toISOString(),
    name,
    pid: process.pid,
    doing: new TextDecoder().decode(new Uint8Array(note).slice(0, Atomics.load(shared, 1))),
    stack: frames?.map(inWords) ?? 'none: the main thread is inside one native call',
    msg: `the event loop hung for ${hangMs / 1000} s${frames?.[0] ? ` in ${inWords(frames[0])}` : ''}; this process ends`,
  }
  try {
    writeSync(STDERR, `${JSON.stringify(entry)}\n`)
  } catch {
    // No one reads the log; the process has to end all the same.
  }
}

function inWords({ functionName, url, line, column }: Frame): string {
  return `${functionName === '' ? '(anonymous)' : functionName} (${url}:${line}:${column})`
}
