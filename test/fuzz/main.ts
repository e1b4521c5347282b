/**
 * `npm run fuzz -- [--seconds 60] [--seed 1] [target…]`: one target after the other; fails when one has a finding.
 * Seconds are processor time.
 */
import { Worker } from 'node:worker_threads'
import { argumentsOf } from '../support/arguments.ts'
import { IS_DEEP } from '../support/depth.ts'
import { keep } from './corpus.ts'
import type { Finding, FuzzReport } from './fuzz.ts'
import { fuzzService, serviceTargets } from './service.ts'
import { targets } from './targets.ts'
import type { WorkerTask } from './worker.ts'

/** Far above the bound for one input, in time of the thread: this one will not come back. */
const ENDLESS_MS = 20_000
const LOOK_EVERY_MS = 5000
const MAX_INPUT_BYTES = 100_000

const known = [...targets, ...serviceTargets].map(({ name }) => name)
const { values, words } = argumentsOf(
  {
    command: 'fuzz',
    does: 'Gives parsers, and a running service, bytes that are made of those which reached something new.',
    words: { sample: 'target', of: known, about: `all of them by default: ${known.join(', ')}` },
  },
  {
    seconds: { kind: 'whole', least: 1, most: 86_400, default: 60, about: 'seconds of processor time per target' },
    seed: { kind: 'whole', least: 0, most: 999_999, about: 'the seed of a run before, to repeat it' },
  },
)
const { seconds, seed = Date.now() % 1_000_000 } = values
const chosen = words.length > 0 ? words : known

let failures = 0
for (const name of chosen) {
  const service = serviceTargets.find((target) => target.name === name)
  const { runs, cpuSeconds, discovered, findings } = await (service
    ? fuzzService(service, { seconds, seed })
    : fuzzInThread(name))
  keep(
    name,
    // A deep run leaves the repository as it was, but for what shows a fault: `npm test` tries all that is kept.
    IS_DEEP ? [] : discovered,
    findings.map(({ input }) => input),
  )
  console.log(
    `${name}: ${runs} inputs in ${Math.round(cpuSeconds)} s of processor time, ${discovered.length} reached something new, ${findings.length} findings (seed ${seed})`,
  )
  for (const finding of findings) show(finding)
  failures += findings.length
}
process.exit(failures > 0 ? 1 : 0)

function show({ kind, message, input }: Finding): void {
  console.log(`  ${kind}: ${message}\n  input (base64): ${input.subarray(0, 600).toString('base64')}`)
}

function fuzzInThread(target: string): Promise<FuzzReport> {
  const current = new SharedArrayBuffer(8 + MAX_INPUT_BYTES)
  const [count, length] = [new Int32Array(current, 0, 1), new Int32Array(current, 4, 1)]
  const task: WorkerTask = { target, seconds, seed, current }
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: task })
  return new Promise((resolve, reject) => {
    let last = { runs: 0, spentMs: 0 }
    // A thread that is still loading is at no input; one that a busy machine gives no time to hangs at none.
    const watch = setInterval(async () => {
      const spentMs = await processorMsOf(worker)
      const runs = Atomics.load(count, 0)
      if (runs !== last.runs || runs === 0) return void (last = { runs, spentMs })
      if (spentMs - last.spentMs < ENDLESS_MS) return
      const input = Buffer.from(new Uint8Array(current, 8, length[0]).slice())
      const message = `no result after ${ENDLESS_MS / 1000} s`
      finish({ runs, cpuSeconds: spentMs / 1000, discovered: [], findings: [{ target, kind: 'hang', message, input }] })
    }, LOOK_EVERY_MS)
    function finish(report: FuzzReport): void {
      clearInterval(watch)
      resolve({
        ...report,
        // Buffers come out of a thread as plain arrays.
        discovered: report.discovered.map((input) => Buffer.from(input)),
        findings: report.findings.map((finding) => ({ ...finding, input: Buffer.from(finding.input) })),
      })
      void worker.terminate()
    }
    worker.on('message', finish)
    worker.on('error', reject)
  })
}

/** A thread that has just ended spends no more. */
async function processorMsOf(worker: Worker): Promise<number> {
  try {
    const { user, system } = await worker.cpuUsage()
    return (user + system) / 1000
  } catch {
    return 0
  }
}
