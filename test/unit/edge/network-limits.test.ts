import { afterEach, expect, test } from 'vitest'
import { createNetworkLimits, type NetworkLimits } from '../../../edge/accept/visitors/limits.ts'

let now = 0
let limits: NetworkLimits
afterEach(() => limits.stop())
const create = (): NetworkLimits =>
  (limits = createNetworkLimits({ connections: 2, handshakesPerSecond: 5, requestsPerSecond: 10 }, () => now))

test('a burst of one second is fine, more is not, and time brings it back', () => {
  const network = create().of('192.0.2.1')
  const taken = Array.from({ length: 15 }, () => limits.mayRequest(network))
  expect(taken.filter(Boolean)).toHaveLength(10)
  now += 500
  expect(Array.from({ length: 10 }, () => limits.mayRequest(network)).filter(Boolean)).toHaveLength(5)
})

test('one IPv6 customer is one network, whatever address of theirs is used', () => {
  create()
  expect(limits.of('2001:db8:1:2::1')).toBe(limits.of('2001:db8:1:2:ffff::9'))
  expect(limits.of('2001:db8:1:2::1')).not.toBe(limits.of('2001:db8:1:3::1'))
  expect(limits.of('192.0.2.1')).not.toBe(limits.of('192.0.2.2'))
})

test('open connections are counted beside the rate of new ones', () => {
  const network = create().of('192.0.2.1')
  expect(limits.mayConnect(network)).toBe(true)
  network.connections = 2
  expect(limits.mayConnect(network)).toBe(false)
})
