/**
 * What the whole service takes of a small machine: how long until it is ready, on an empty folder (bar: 4 s) and on its own data
 * (bar: 2.5 s), and its memory when nothing is asked of it (bar: 350 MB). `npm run test:image-figures` asks the same of the
 * image.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../../test/support/figures.ts'
import type { BenchValues } from '../benches.ts'
import { createProgress } from '../progress.ts'
import type { Results } from '../results.ts'
import { createPlace, memoryByProcess, startWhole } from './whole.ts'

const BARS = { coldSeconds: 4, warmSeconds: 2.5, idleMb: 350 }

interface Ready {
  readonly seconds: number
  readonly cpuSeconds: number
}

export async function run({ rounds, settle }: BenchValues<'start'>, results: Results): Promise<void> {
  const progress = createProgress()
  const cold: Ready[] = []
  const warm: Ready[] = []
  let memory = new Map<string, number>()
  for (let round = 1; round <= rounds; round++) {
    progress.show(`round ${round} of ${rounds}`)
    const place = await createPlace()
    try {
      const first = await startWhole(place)
      cold.push(first.ready)
      await first.stop()
      const again = await startWhole(place)
      warm.push(again.ready)
      if (round === rounds) {
        progress.show('idle')
        await sleep(settle * 1000)
        memory = memoryByProcess(again.pid)
      }
      await again.stop()
    } finally {
      place.remove()
    }
  }
  progress.clear()
  const idleMb = [...memory.values()].reduce((sum, megabytes) => sum + megabytes, 0)
  for (const [name, megabytes] of memory) process.stdout.write(`  ${megabytes.toFixed(1).padStart(6)} MB  ${name}\n`)
  for (const [row, starts, bar] of [
    ['ready on an empty folder', cold, BARS.coldSeconds],
    ['ready on its own data', warm, BARS.warmSeconds],
  ] as const) {
    const { seconds, cpuSeconds } = middle(starts)
    process.stdout.write(`${row}: ${cpuSeconds.toFixed(1)} s of processors\n`)
    results.judge({ row, figure: seconds, unit: 's', bar })
  }
  results.judge({ row: 'everything idle', figure: idleMb, unit: 'MB', bar: BARS.idleMb })
  results.keep({ cold, warm, idleMb, memory: Object.fromEntries(memory), bars: BARS })
}

function middle(starts: readonly Ready[]): Ready {
  return {
    seconds: median(starts.map(({ seconds }) => seconds)),
    cpuSeconds: median(starts.map(({ cpuSeconds }) => cpuSeconds)),
  }
}
