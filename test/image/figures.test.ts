/**
 * What the image takes of a small machine: how long until it is ready, the first time and again, and its memory when nothing is
 * asked of it. Prints what it measured, and judges it where nothing else kept the processors busy: a process that waits for one
 * is late, and never finds itself idle, which is when it gives memory back.
 */
import { readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { median } from '../support/figures.ts'
import { describeCircumstances, isOurs, watchMachine, type Circumstances } from '../support/machine.ts'
import { processTree, proportionalMb, until } from '../support/processes.ts'
import { freePorts } from '../support/stack.ts'
import { buildImage, createNetwork, createVolume, openImage, type Container } from './containers.ts'

const MAX_COLD_S = 4
const MAX_WARM_S = 2.5
const MAX_IDLE_MB = 350
/** Starts of each kind, of which the median counts. */
const ROUNDS = 3
/** After a start, until nothing is left to be done. */
const SETTLING_MS = 60_000
/** Where processes wait longer for a processor, times are those of the neighbours. */
const MAX_PRESSURE = 0.5

buildImage('dropway', path.join(import.meta.dirname, '../../'))
const image = openImage('dropway:latest')
const volumes = Array.from({ length: ROUNDS }, () => createVolume(image, '/data'))
const network = await createNetwork(['dropway'])

afterAll(async () => {
  await network.close()
  image.remove()
  for (const volume of volumes) rmSync(volume, { recursive: true, force: true })
})

interface Measured {
  readonly what: string
  readonly value: number
  readonly bar: number
  readonly circumstances: Circumstances
}

/** Starts it; resolves when it is ready, with the seconds that this took. */
async function start(port: number, data: string): Promise<{ container: Container; seconds: number }> {
  const begunMs = performance.now()
  const container = network.start({
    image,
    name: 'dropway',
    environment: { BASE_URL: `https://localhost:${port}` },
    mounts: [{ source: data, target: '/data' }],
  })
  await until(() => {
    if (container.exitCode() !== null) throw new Error(`it ended:\n${container.output()}`)
    return /^ready /m.test(container.output())
  }, 'the image to get ready')
  return { container, seconds: (performance.now() - begunMs) / 1000 }
}

/** Megabytes by process, in the order in which they were started. */
function memoryBelow(pid: number): [string, number][] {
  return processTree(pid).map((each) => {
    const words = readFileSync(`/proc/${each}/cmdline`, 'utf8').split('\0')
    const name = words.slice(0, 8).findLast((word) => word.endsWith('.ts')) ?? words[0] ?? ''
    return [name.slice(-40), proportionalMb(each)]
  })
}

test('ready soon, the first time and again, and content with little memory', async () => {
  const [port] = await freePorts(1)
  const measured: Measured[] = []
  for (const [what, bar] of [
    ['ready on an empty volume, seconds', MAX_COLD_S],
    ['ready on its own, seconds', MAX_WARM_S],
  ] as const) {
    const watched = watchMachine()
    const seconds: number[] = []
    for (const volume of volumes) {
      const started = await start(port!, volume)
      seconds.push(started.seconds)
      await started.container.stop()
    }
    measured.push({ what, value: median(seconds), bar, circumstances: await watched() })
  }
  const { container } = await start(port!, volumes[0]!)
  const watched = watchMachine()
  await sleep(SETTLING_MS)
  const memory = memoryBelow(container.pid)
  const idleMb = memory.reduce((sum, [, megabytes]) => sum + megabytes, 0)
  measured.push({ what: 'idle, MB', value: idleMb, bar: MAX_IDLE_MB, circumstances: await watched() })
  await container.stop()
  for (const [name, megabytes] of memory) if (megabytes >= 1) console.log(`${megabytes.toFixed(0)} MB  ${name}`)
  for (const { what, value, bar, circumstances } of measured)
    console.log(`${what}: ${value.toFixed(1)} (bar ${bar}; ${describeCircumstances(circumstances)})`)
  const judged = measured.filter(
    ({ circumstances }) => isOurs(circumstances) && (circumstances.pressure ?? 0) <= MAX_PRESSURE,
  )
  expect(judged.filter(({ value, bar }) => value > bar).map(({ what }) => what)).toEqual([])
})
