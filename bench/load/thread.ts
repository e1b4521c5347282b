/** A thread that makes requests: it notes what comes back and tells it once a second. */
import { performance, type EventLoopUtilization } from 'node:perf_hooks'
import { parentPort, workerData } from 'node:worker_threads'
import type { Notes, ThreadOptions } from './generator.ts'
import { loadHttp1 } from './http1.ts'
import { loadHttp2 } from './http2.ts'
import { Latencies } from './latencies.ts'
import type { Slice } from './tally.ts'

const SLICE_MS = 1000

async function main(options: ThreadOptions): Promise<void> {
  const latencies = new Latencies()
  let bytes = 0
  let statuses: Record<string, number> = {}
  let errors: Record<string, number> = {}
  const notes: Notes = {
    answered(status, ms, length) {
      latencies.note(ms)
      bytes += length
      statuses[status] = (statuses[status] ?? 0) + 1
    },
    failed: (kind) => void (errors[kind] = (errors[kind] ?? 0) + 1),
    unfailed: (kind) => void (errors[kind] = (errors[kind] ?? 0) - 1),
  }
  const generator = (options.target.isHttp2 ? loadHttp2 : loadHttp1)(options, notes)
  let index = 0
  let toldAt = performance.now()
  let utilised: EventLoopUtilization = performance.eventLoopUtilization()
  const tell = (): void => {
    const now = performance.now()
    const current = performance.eventLoopUtilization()
    const busy = performance.eventLoopUtilization(current, utilised).utilization
    const slice: Slice = {
      ...{
        thread: options.thread,
        index,
        ms: now - toldAt,
        latencies: latencies.take(),
        bytes,
        statuses,
        errors,
        busy,
      },
    }
    parentPort?.postMessage(slice)
    index += 1
    toldAt = now
    utilised = current
    bytes = 0
    statuses = {}
    errors = {}
  }
  const telling = setInterval(tell, SLICE_MS)
  parentPort?.once('message', () => generator.stop())
  await generator.done
  clearInterval(telling)
  if (latencies.total > 0 || Object.keys(errors).length > 0) tell()
  parentPort?.close()
}

await main(workerData as ThreadOptions)
