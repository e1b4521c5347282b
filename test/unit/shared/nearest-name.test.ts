import { expect, test } from 'vitest'
import { nearestName } from '../../../shared/values/nearest-name.ts'

const NAMES = ['deploy', 'delete', 'domains', 'drop', 'list', 'login', 'logout', 'versions', '__proto__']

test.each([
  ['deply', 'deploy'],
  ['dpeloy', 'deploy'],
  ['DEPLOY', 'deploy'],
  ['domain', 'domains'],
  ['lst', 'list'],
  ['logn', 'login'],
  ['version', 'versions'],
  ['publish', undefined],
  ['', undefined],
  ['ls', undefined],
  ['x'.repeat(100_000), undefined],
])('%.20s → %s', (typed, meant) => expect(nearestName(typed, NAMES)).toBe(meant))
