import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const PROGRAM = fileURLToPath(new URL('../../support/weigh-headers.ts', import.meta.url))

interface Weighed {
  readonly mostBuffersMb: number
  readonly residentMb: number
}

/** Without threads of its own V8 collects at the same bytes each time, whoever else wants the processors. */
const V8_OPTIONS = ['--single-threaded-gc']

async function weigh(chars: number, requests: number, turn = requests): Promise<Weighed> {
  const told = [chars, requests, turn].map(String)
  const { stdout } = await promisify(execFile)(process.execPath, [...V8_OPTIONS, PROGRAM, ...told])
  return JSON.parse(stdout) as Weighed
}

test('long headers weigh what they are long, and take no memory for it', async () => {
  const { mostBuffersMb, residentMb } = await weigh(8000, 10_000)
  expect(mostBuffersMb).toBeGreaterThan(60)
  expect(mostBuffersMb).toBeLessThan(90)
  expect(residentMb).toBeLessThan(30)
})

test('three gigabytes of them make V8 collect, again and again', async () => {
  const { mostBuffersMb } = await weigh(8000, 375_000, 500)
  expect(mostBuffersMb).toBeGreaterThan(1)
  expect(mostBuffersMb).toBeLessThan(1000)
})

test('ordinary headers weigh nothing', async () => {
  const { mostBuffersMb } = await weigh(500, 100_000)
  expect(mostBuffersMb).toBeLessThan(1)
})
