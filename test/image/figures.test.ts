/**
 * What the image takes of a small machine: how long until it is ready, the first time and again, and its memory when nothing is
 * asked of it. Prints what it measured. Memory is always judged; times are where nothing else kept the processors busy.
 */
import { rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { describeCircumstances, isOurs, watchMachine, type Circumstances } from '../support/machine.ts'
import { processTree, proportionalMb, until } from '../support/processes.ts'
import { freePorts } from '../support/stack.ts'
import { buildImage, createNetwork, createVolume, openImage, type Container } from './containers.ts'

const MAX_COLD_S = 4
const MAX_WARM_S = 2.5
const MAX_IDLE_MB = 350
/** After a start, until nothing is left to be done. */
const SETTLING_MS = 30_000
/** Where processes wait longer for a processor, times are those of the neighbours. */
const MAX_PRESSURE = 0.5

buildImage('dropway', path.join(import.meta.dirname, '../../'))
const image = openImage('dropway:latest')
const data = createVolume(image, '/data')
const network = await createNetwork(['dropway'])

afterAll(async () => {
  await network.close()
  image.remove()
  rmSync(data, { recursive: true, force: true })
})

interface Start {
  readonly container: Container
  readonly seconds: number
  readonly circumstances: Circumstances
}

async function start(port: number): Promise<Start> {
  const watched = watchMachine()
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
  const seconds = (performance.now() - begunMs) / 1000
  return { container, seconds, circumstances: await watched() }
}

function expectWithin({ seconds, circumstances }: Start, most: number): void {
  if (isOurs(circumstances) && (circumstances.pressure ?? 0) <= MAX_PRESSURE) expect(seconds).toBeLessThan(most)
}

test('ready soon, the first time and again, and content with little memory', async () => {
  const [port] = await freePorts(1)
  const cold = await start(port!)
  await cold.container.stop()
  const warm = await start(port!)
  await sleep(SETTLING_MS)
  const idleMb = processTree(warm.container.pid).reduce((sum, pid) => sum + proportionalMb(pid), 0)
  await warm.container.stop()
  for (const [name, { seconds, circumstances }, most] of [
    ['ready on an empty volume', cold, MAX_COLD_S],
    ['ready on its own', warm, MAX_WARM_S],
  ] as const)
    console.log(`${name}: ${seconds.toFixed(1)} s (bar ${most}; ${describeCircumstances(circumstances)})`)
  console.log(`idle: ${idleMb.toFixed(0)} MB, shared pages in parts (bar ${MAX_IDLE_MB})`)
  expectWithin(cold, MAX_COLD_S)
  expectWithin(warm, MAX_WARM_S)
  expect(idleMb).toBeLessThan(MAX_IDLE_MB)
})
