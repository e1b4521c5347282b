/**
 * Counts the work of cases in a process of its own: `node --no-opt --no-maglev child.ts <module with cases>`. Optimised
 * code does not count every call, and code that was compiled before counting began counts no blocks; hence a new process
 * that counts from the start, and is told by its flags not to optimise.
 */
import { Session } from 'node:inspector/promises'
import { countNativeWork, takeUnits } from './native.ts'
import { sizesOf, type CaseCounts, type WorkCase } from './cases.ts'

const [, , moduleUrl = ''] = process.argv
const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
countNativeWork()
const { cases } = (await import(moduleUrl)) as { cases: Readonly<Record<string, WorkCase>> }

for (const [name, one] of Object.entries(cases)) {
  const counts: number[] = []
  // What is made once, and the first compilation of each function, is no work on the input.
  await one.run(one.make(sizesOf(one)[0]))
  const inputs = sizesOf(one).map((size) => one.make(size))
  // Each question sets the counters back, and takes longer than most of what it counts: this one is about the making.
  await takeWork()
  for (const input of inputs) {
    await one.run(input)
    counts.push(await takeWork())
  }
  process.send?.({ name, counts } satisfies CaseCounts)
}
process.disconnect?.()

/** What was counted since the last call. */
async function takeWork(): Promise<number> {
  const native = takeUnits()
  const blocks = await takeBlocks()
  // Asking searches texts too.
  takeUnits()
  return native + blocks
}

/** How often blocks of the sources and of their libraries ran; those of Node and of the counter itself are left out. */
async function takeBlocks(): Promise<number> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  let blocks = 0
  for (const { url, functions } of result) {
    if (!url.startsWith('file:') || url.includes('/test/support/counting/')) continue
    for (const { ranges } of functions) for (const { count } of ranges) blocks += count
  }
  return blocks
}
