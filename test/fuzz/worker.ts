/** One target in a thread of its own, so that an input that never comes back can be named and ended. */
import { parentPort, workerData } from 'node:worker_threads'
import { readCorpus } from './corpus.ts'
import { fuzz } from './fuzz.ts'
import { targets } from './targets.ts'

export interface WorkerTask {
  readonly target: string
  readonly seconds: number
  readonly seed: number
  /** Length and bytes of the input under way, and a count that grows with each. */
  readonly current: SharedArrayBuffer
}

const { target: name, seconds, seed, current } = workerData as WorkerTask
const [count, length] = [new Int32Array(current, 0, 1), new Int32Array(current, 4, 1)]
const bytes = new Uint8Array(current, 8)
const target = targets.find((one) => one.name === name)!

const report = await fuzz(target, {
  seconds,
  seed,
  corpus: readCorpus(name),
  onInput(input) {
    bytes.set(input.subarray(0, bytes.length))
    length[0] = Math.min(input.length, bytes.length)
    Atomics.add(count, 0, 1)
  },
})
parentPort!.postMessage(report)
