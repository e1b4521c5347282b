import { expect, test } from 'vitest'
import { isProgramPath } from '../../../shared/http/program-paths.ts'

test.each([
  ['/api/v1/sites', true],
  ['/api', true],
  ['/apiary', false],
  ['/mcp', true],
  ['/mcp/', true],
  ['/mcpx', false],
  ['/.well-known/oauth-authorization-server', true],
  ['/.well-knownx', false],
  ['/oauth/token', true],
  ['/oauth/register', true],
  ['/oauth/device_authorization', true],
  ['/oauth/authorize', false],
  ['/oauth/token/x', false],
  ['/', false],
  ['/sites', false],
])('%s is for programs: %s', (path, expected) => {
  expect(isProgramPath(path)).toBe(expected)
})
