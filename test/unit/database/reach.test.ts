import { expect, test } from 'vitest'
import { databaseProblem } from '../../../control/ground/database/reach.ts'

const URL = 'postgres://dropway:secret@db1:5432,db2:5432/main?sslmode=require'

test.each([
  ['CONNECT_TIMEOUT', '', /^Postgres does not answer at db1:5432,db2:5432\/main\. Check DATABASE_URL/],
  ['ECONNREFUSED', '', /^Postgres cannot be reached at db1:5432,db2:5432\/main \(ECONNREFUSED\)/],
  ['28P01', 'password authentication failed for user "dropway"', /^Postgres refuses the user or the password/],
  ['25006', 'cannot execute CREATE TABLE in a read-only transaction', /^Postgres only reads: /],
  ['53100', 'could not extend file', /has no space left on its disk/],
  ['08P01', 'unsupported startup parameter: options', /cannot be used: unsupported startup parameter: options\.$/],
  ['57P03', 'the database system is starting up', /cannot be used: the database system is starting up\.$/],
])('%s is one sentence without the password', (code, message, sentence) => {
  const problem = databaseProblem(Object.assign(new Error(message), { code }), URL)
  expect(problem?.message).toMatch(sentence)
  expect(problem?.message).not.toMatch(/secret|\n/)
})

test('a target that no host meets is named', () => {
  const url = 'postgres://a,b/main?target_session_attrs=read-write'
  const problem = databaseProblem(Object.assign(new Error(''), { code: 'CONNECT_TIMEOUT' }), url)
  expect(problem?.message).toBe(
    'No Postgres at a,b/main is read-write, as target_session_attrs of DATABASE_URL demands, or none answers.',
  )
})

test('a mistake in our own SQL is not the operator’s', () => {
  expect(databaseProblem(Object.assign(new Error('syntax error'), { code: '42601' }), URL)).toBeUndefined()
})
