import { describe, expect, test } from 'vitest'
import { ApiFailure } from '../../../cli/service/api-failure.ts'
import { CliError, exitCodes } from '../../../cli/terminal/failure.ts'
import { Unreachable } from '../../../cli/service/http-client.ts'
import { createPatientRetry, mayRepeat, PATIENCE_MS } from '../../../cli/service/retry.ts'

const neverSent = new Unreachable('no way', false, false)
const mayHaveArrived = new Unreachable('cut', true, false)
const refused = new Unreachable('no one there', false, true)
const answered = (status: number, retryAfterMs?: number) => new ApiFailure(status, 'x', `${status}`, retryAfterMs)

describe('what may be done again', () => {
  test.each([
    [neverSent, false, true],
    [mayHaveArrived, false, false],
    [mayHaveArrived, true, true],
    [answered(503), false, true],
    [answered(429), false, true],
    [answered(502), false, false],
    [answered(504), true, true],
    [answered(500), true, false],
    [answered(400), true, false],
    [answered(401), true, false],
    [new CliError('certificate', exitCodes.unreachable, 'untrusted_certificate'), true, false],
    [new Error('a mistake of ours'), true, false],
  ])('%s (repeatable: %s): %s', (error, repeatable, expected) => expect(mayRepeat(error, repeatable)).toBe(expected))
})

/** A retry whose time passes only while it waits. */
function patience() {
  let now = 1000
  const told: string[] = []
  const retry = createPatientRetry({
    onTrouble: (message) => told.push(message),
    onRecovery: () => told.push('back'),
    now: () => now,
    pause: async (ms) => void (now += ms),
  })
  return { retry, told, elapsed: () => now - 1000, pass: (ms: number) => void (now += ms) }
}

const failing = (times: number, error: Error) => {
  let count = 0
  return async () => {
    if (count++ < times) throw error
    return count
  }
}

test('a passing trouble is told once, with how long it is waited for, and so is its end', async () => {
  const { retry, told } = patience()
  expect(await retry.run(failing(4, mayHaveArrived), { repeatable: true })).toBe(5)
  expect(told).toEqual(['cut Trying again for two minutes.', 'back'])
})

test('it goes on for two minutes, and then the trouble is the answer', async () => {
  const { retry, elapsed } = patience()
  await expect(retry.run(failing(Infinity, neverSent), { repeatable: false })).rejects.toBe(neverSent)
  expect(elapsed()).toBeGreaterThan(PATIENCE_MS - 10_000)
  expect(elapsed()).toBeLessThanOrEqual(PATIENCE_MS)
})

test('a call that took two minutes to fail is tried again all the same', async () => {
  const { retry, pass } = patience()
  const slow = failing(1, answered(504))
  const work = () => (pass(PATIENCE_MS), slow())
  expect(await retry.run(work, { repeatable: true })).toBe(2)
})

test('an answer that may take minutes is waited for longer, a service that is away is not', async () => {
  const slow = patience()
  await slow.retry.run(async () => 'hello', { repeatable: true })
  const minutes = { repeatable: true, patienceMs: 600_000 }
  await expect(slow.retry.run(failing(Infinity, answered(504)), minutes)).rejects.toThrow('504')
  expect(slow.elapsed()).toBeGreaterThan(500_000)
  expect(slow.told).toEqual(['504 Trying again for 10 minutes.'])
  const away = patience()
  await expect(away.retry.run(failing(Infinity, neverSent), minutes)).rejects.toBe(neverSent)
  expect(away.elapsed()).toBeLessThanOrEqual(PATIENCE_MS)
})

test('an address where no one ever was is given up soon; one that answered before is not', async () => {
  const stranger = patience()
  await expect(stranger.retry.run(failing(Infinity, refused), { repeatable: true })).rejects.toBe(refused)
  expect(stranger.elapsed()).toBeLessThan(15_000)
  const friend = patience()
  await friend.retry.run(async () => 'hello', { repeatable: true })
  await expect(friend.retry.run(failing(Infinity, refused), { repeatable: true })).rejects.toBe(refused)
  expect(friend.elapsed()).toBeGreaterThan(100_000)
})

test('the service says how long to wait; a refusal is not waited for', async () => {
  const { retry, elapsed, told } = patience()
  await retry.run(failing(1, answered(429, 7000)), { repeatable: false })
  expect(elapsed()).toBe(7000)
  await expect(retry.run(failing(1, answered(400)), { repeatable: true })).rejects.toThrow('400')
  expect(told).toHaveLength(2)
})
