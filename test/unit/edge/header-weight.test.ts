import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createHeaderWeight } from '../../../edge/accept/header-weight.ts'

const requestOf = (chars: number): string[] => [':path', `/${'a'.repeat(chars)}`, 'user-agent', 'test']

function weighed(chars: number, requests: number): { buffersMb: number; residentMb: number } {
  const weight = createHeaderWeight()
  const headers = requestOf(chars)
  const before = process.memoryUsage()
  for (let count = 0; count < requests; count++) weight.add(headers)
  const after = process.memoryUsage()
  return {
    buffersMb: (after.arrayBuffers - before.arrayBuffers) / 1e6,
    residentMb: (after.rss - before.rss) / 1e6,
  }
}

test('long headers weigh what they are long, and take no memory for it', () => {
  const { buffersMb, residentMb } = weighed(8000, 10_000)
  expect(buffersMb).toBeGreaterThan(60)
  expect(buffersMb).toBeLessThan(90)
  expect(residentMb).toBeLessThan(30)
})

test('a gigabyte of them makes V8 collect, again and again', async () => {
  const weight = createHeaderWeight()
  const headers = requestOf(8000)
  const before = process.memoryUsage().arrayBuffers
  let most = 0
  for (let turn = 0; turn < 250; turn++) {
    for (let count = 0; count < 500; count++) weight.add(headers)
    await setImmediate()
    most = Math.max(most, process.memoryUsage().arrayBuffers - before)
  }
  expect(most / 1e6).toBeLessThan(400)
})

test('ordinary headers weigh nothing', () => {
  expect(weighed(500, 100_000).buffersMb).toBeLessThan(1)
})
