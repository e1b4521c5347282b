import { expect, test } from 'vitest'
import { isOurHost } from '../../../control/ground/http/server/host-check.ts'

const asked = (host: string | undefined, path = '/signin'): boolean =>
  isOurHost({ path, headers: { host } }, 'dropway.example')

test.each([
  'dropway.example',
  'DROPWAY.example',
  'dropway.example.',
  'dropway.example:443',
  'dropway.example:8443',
  '127.0.0.1:8787',
  '127.8.9.10',
  '[::1]:8787',
  '[::1]',
])('%s is a name of the service', (host) => {
  expect(asked(host)).toBe(true)
})

test.each([
  undefined,
  '',
  'evil.example',
  'dropway.example.evil.example',
  'evil.example:443',
  'dropway.example@evil.example',
  'localhost',
  'localhost:8787',
  '127.0.0.1.evil.example',
  '192.168.1.5:8787',
  '[::2]',
  '[fe80::1]',
  'a@[',
])('%s is not', (host) => {
  expect(asked(host)).toBe(false)
})

test('health and figures are told under every name', () => {
  expect(asked('control-1:8787', '/healthz')).toBe(true)
  expect(asked('control-1:8787', '/metrics')).toBe(true)
  expect(asked('control-1:8787', '/metrics/')).toBe(false)
})
