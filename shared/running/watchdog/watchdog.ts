/**
 * Notices that this process hangs, says where, and ends it, so that whatever started it starts it again: the
 * supervisor, systemd or a container engine.
 *
 *   main thread   a beat every BEAT_MS, from a timer: it stops when the event loop does
 *   its watcher   (thread.ts) no beat for HANG_MS ─▶ reads the main thread's stack through the inspector
 *                                                 ─▶ writes it to stderr as a line of the log ─▶ SIGKILL
 *
 * A process that is stopped as a whole (SIGSTOP) cannot watch itself: its parent asks it, see heartbeat.ts.
 */
import { url as inspectorUrl } from 'node:inspector'
import { Worker } from 'node:worker_threads'

const BEAT_MS = 500
/** No request of ours works for so long without giving others a turn; the slowest machine pauses less. */
const HANG_MS = 10_000
/** A note says what the main thread is doing; the rest of a longer one is cut off. */
export const MAX_NOTE_BYTES = 256

/** What both threads see: the count of beats, and a note. */
export interface WatchedMemory {
  /** `[beats, bytes of the note]`. */
  readonly counts: SharedArrayBuffer
  readonly note: SharedArrayBuffer
}

export interface WatcherData extends WatchedMemory {
  readonly name: string
  readonly beatMs: number
  readonly hangMs: number
}

export interface Watchdog {
  /** Notes what the main thread turns to now. The log names it where a hang has no stack, as in one long native call. */
  note(what: string): void
  stop(): Promise<void>
}

export function startWatchdog({ name, hangMs = HANG_MS }: { name: string; hangMs?: number }): Watchdog {
  // A person who debugs stops the main thread on purpose.
  if (inspectorUrl() !== undefined) return { note() {}, stop: async () => {} }
  const memory: WatchedMemory = {
    counts: new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT),
    note: new SharedArrayBuffer(MAX_NOTE_BYTES),
  }
  const counts = new Int32Array(memory.counts)
  const note = new Uint8Array(memory.note)
  const encoder = new TextEncoder()
  const watcher = new Worker(new URL('./thread.ts', import.meta.url), {
    name: 'watchdog',
    workerData: { ...memory, name, beatMs: BEAT_MS, hangMs } satisfies WatcherData,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    // It holds a counter and, once, a stack.
    resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 },
  })
  watcher.unref()
  // A process whose watcher failed goes on, watched by its parent alone.
  watcher.on('error', () => {})
  const beat = setInterval(() => Atomics.add(counts, 0, 1), BEAT_MS)
  beat.unref()
  return {
    note: (what) => void Atomics.store(counts, 1, encoder.encodeInto(what, note).written),
    async stop() {
      clearInterval(beat)
      await watcher.terminate()
    },
  }
}
