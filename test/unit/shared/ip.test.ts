import { expect, test } from 'vitest'
import { callerIp, isLoopback, isTrusted, limitKeyOfIp, normaliseIp, trustedNetworks } from '../../../shared/http/ip.ts'

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0db8:0001:0002::9', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2:ffff::', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
])('%s is counted as %s', (ip, key) => {
  expect(limitKeyOfIp(ip)).toBe(key)
})

test('networks and single addresses are trusted, everything else and nonsense is not', () => {
  const trusted = trustedNetworks(['10.0.0.0/8', '192.0.2.7', '2001:db8::/32', 'nonsense', '1.2.3.4/99'])
  for (const ip of ['10.255.0.1', '192.0.2.7', '2001:db8:ffff::1', '::ffff:10.0.0.1'])
    expect(isTrusted(ip, trusted), ip).toBe(true)
  for (const ip of ['11.0.0.1', '192.0.2.8', '2001:db9::1', '1.2.3.4', 'nonsense', ''])
    expect(isTrusted(ip, trusted), ip).toBe(false)
})

test('loopback in every spelling', () => {
  for (const ip of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1']) expect(isLoopback(ip), ip).toBe(true)
  for (const ip of ['128.0.0.1', '::2', '']) expect(isLoopback(ip), ip).toBe(false)
  expect(normaliseIp('::FFFF:1.2.3.4')).toBe('1.2.3.4')
})

test('a peer that is neither loopback nor trusted cannot speak for others', () => {
  const trusted = trustedNetworks(['198.51.100.0/24'])
  expect(callerIp('203.0.113.5', '1.1.1.1', trusted)).toBe('203.0.113.5')
  expect(callerIp('198.51.100.1', '1.1.1.1', trusted)).toBe('1.1.1.1')
  expect(callerIp('198.51.100.1', '1.1.1.1, 198.51.100.2', trusted)).toBe('1.1.1.1')
  expect(callerIp('198.51.100.1', undefined, trusted)).toBe('198.51.100.1')
})

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0DB8:0001:0002::9', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::FFFF:10.200.30.40', '10.200.30.40'],
  ['64::ffff:203.0.113.7', '64:0:0:0::/64'],
  ['2001:db8::', '2001:db8:0:0::/64'],
  ['::1:2:3:4:5:6:7', '0:1:2:3::/64'],
  ['1::20:3:4:5:6:7', '1:0:20:3::/64'],
  ['1:2:3:4:5:6:7::', '1:2:3:4::/64'],
  ['1:0:00:0004:5:6:203.0.113.7', '1:0:0:4::/64'],
])('the network of %s is %s', (ip, network) => {
  expect(limitKeyOfIp(ip)).toBe(network)
})
