import { expect, test } from 'vitest'
import { toApiError } from '../../../control/ground/http/server/failure.ts'
import { silentLog } from '../../../shared/running/log.ts'

const about = { method: 'POST', path: '/api/v1/drops', now: 0 }

test.each([
  ['25006', 'a Postgres that only reads', /only reads right now/],
  ['53100', 'a Postgres whose disk is full', /no space left right now/],
  ['ENOSPC', 'a disk that is full', /disk of the service has no space left/],
  ['EDQUOT', 'a share of a disk that is full', /disk of the service has no space left/],
  ['EROFS', 'a disk that only reads', /disk of the service only reads/],
  ['57P01', 'a Postgres that shuts down', /not reachable right now/],
])('%s, %s: 503 and when to ask again', (code, _name, detail) => {
  const answer = toApiError(Object.assign(new Error('said by Postgres or the disk'), { code }), silentLog, about)
  expect({ status: answer.status, code: answer.code }).toEqual({ status: 503, code: 'unavailable' })
  expect(answer.message).toMatch(detail)
  expect(answer.headers).toEqual({ 'retry-after': '2' })
})

test('a mistake of ours is a 500 with an id', () => {
  const answer = toApiError(Object.assign(new Error('no such column'), { code: '42703' }), silentLog, about)
  expect({ status: answer.status, code: answer.code }).toEqual({ status: 500, code: 'internal' })
})
