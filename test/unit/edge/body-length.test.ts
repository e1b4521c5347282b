import { expect, test } from 'vitest'
import { bodyBytesOf } from '../../../edge/accept/messages/body-length.ts'

const LENGTH = ['content-type', 'text/plain', 'content-length', '12']

test.each([
  ['GET', 200, LENGTH, 12],
  ['GET', 200, ['content-type', 'text/plain'], undefined],
  ['GET', 200, ['x-note', 'content-length', 'content-length', '0'], 0],
  ['POST', 500, LENGTH, 12],
  ['HEAD', 200, LENGTH, 0],
  ['GET', 204, [], 0],
  ['GET', 304, LENGTH, 0],
] as const)('%s %i %j has %s bytes behind its head', (method, status, headers, bytes) => {
  expect(bodyBytesOf(method, status, headers)).toBe(bytes)
})
