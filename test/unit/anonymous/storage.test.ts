import { describe, expect, test } from 'vitest'
import { createAnonymousStorage } from '../../../control/drops/anonymous/storage.ts'
import type { Sql } from '../../../control/ground/database/sql.ts'

const CAP = 1000

/** A database that says what it holds, and counts how often it is asked about a network. */
function setUp(stored: { bytes: number }) {
  let now = 0
  let asked = 0
  const sql = ((_text: TemplateStringsArray, ...values: unknown[]) => {
    if (values.length < 2) return []
    asked += 1
    return Promise.resolve([{ bytes: stored.bytes }])
  }) as unknown as Sql
  const storage = createAnonymousStorage({
    clock: { now: () => now },
    secrets: { sign: (_purpose, text) => text },
    config: { anonymousStorageBytes: 1_000_000, anonymousNetworkStorageBytes: CAP },
  })
  const publish = (bytes: number, network = 'one'): Promise<boolean> =>
    storage.requireRoom(sql, network, bytes).then(
      () => true,
      () => false,
    )
  return { publish, pass: (ms: number) => (now += ms), asked: () => asked }
}

describe('what a network may store without an account', () => {
  test('a network that publishes again and again is not summed up each time, and its cap holds', async () => {
    const stored = { bytes: 0 }
    const { publish, asked } = setUp(stored)
    const taken: boolean[] = []
    for (let page = 0; page < 12; page++) {
      const isTaken = await publish(100)
      if (isTaken) stored.bytes += 100
      taken.push(isTaken)
    }
    expect(taken).toEqual([...Array(10).fill(true), false, false])
    // The network's and everyone's at first, and one for each refusal.
    expect(asked()).toBe(4)
  })

  test('room that was made is found at once', async () => {
    const stored = { bytes: CAP }
    const { publish } = setUp(stored)
    expect(await publish(100)).toBe(false)
    stored.bytes = 0
    expect(await publish(100)).toBe(true)
  })

  test('what another control has published counts after a while', async () => {
    const stored = { bytes: 0 }
    const { publish, pass } = setUp(stored)
    expect(await publish(100)).toBe(true)
    stored.bytes = CAP
    pass(10_001)
    expect(await publish(100)).toBe(false)
  })

  test('networks are counted apart', async () => {
    const { publish } = setUp({ bytes: 0 })
    expect(await publish(CAP)).toBe(true)
    expect(await publish(1, 'another')).toBe(true)
  })
})
