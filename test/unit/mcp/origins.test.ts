import { expect, test } from 'vitest'
import { createOriginCheck } from '../../../control/doors/mcp/http/origins.ts'

const BASES = {
  public: 'https://dropway.example',
  'public with a port': 'https://drops.example.org:8443',
  'public address': 'https://93.184.215.14',
  local: 'https://localhost:8443',
  'a name of the house': 'https://dropway.lan',
  'a bare name': 'https://dropway',
  'a test name': 'https://dropway.test',
  'private address': 'https://10.1.2.3:8443',
  'loopback address': 'https://[::1]:8443',
}

test.each(Object.entries(BASES))('%s: who may call', (kind, baseUrl) => {
  const mayCall = createOriginCheck(baseUrl)
  for (const own of [baseUrl, 'http://localhost:6274', 'http://127.0.0.1', 'https://[::1]:5'])
    expect(mayCall(own), own).toBe(true)
  for (const stranger of ['https://claude.ai', 'http://evil.localhost:6274', 'http://localhost.evil.example'])
    expect(mayCall(stranger), stranger).toBe(kind.startsWith('public'))
  // A sandboxed frame or a file: anyone.
  expect(mayCall('null')).toBe(false)
})
