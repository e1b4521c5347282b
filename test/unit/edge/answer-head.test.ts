import { expect, test } from 'vitest'
import { createAnswerHeads } from '../../../edge/accept/http1/answer-head.ts'
import { createHttpDate } from '../../../edge/accept/messages/http-date.ts'

const EPOCH = 'Thu, 01 Jan 1970 00:00:00 GMT'

test('the same list is the same bytes, for one status', () => {
  const heads = createAnswerHeads(createHttpDate(() => 0))
  const list = ['content-type', 'text/plain', 'content-length', '3']
  const bytes = heads.fields(200, list)
  expect(bytes.toString()).toBe('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n')
  expect(heads.fields(200, list)).toBe(bytes)
  expect(heads.fields(404, list).toString()).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/)
})

test.each([
  ['x', 'a\r\nset-cookie: b'],
  ['x', 'a\0'],
  ['x', '\u0100'],
  ['x y', 'a'],
  ['', 'a'],
])('what cannot stand in a field is refused: %j %j', (name, value) => {
  expect(() => createAnswerHeads(createHttpDate()).fields(200, [name, value])).toThrow()
})

test('the rest says when it is and how it goes on', () => {
  let now = 0
  const heads = createAnswerHeads(createHttpDate(() => now))
  expect(heads.rest(false).toString()).toBe(
    `Date: ${EPOCH}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=60\r\n\r\n`,
  )
  expect(heads.rest(true).toString()).toBe(`Date: ${EPOCH}\r\nConnection: close\r\n\r\n`)
  now = 999
  expect(heads.rest(false).toString()).toContain(EPOCH)
  now = 61_000
  expect(heads.rest(false).toString()).toContain('Thu, 01 Jan 1970 00:01:01 GMT')
})

test('what is asked for again within a second is one piece, for all who ask', () => {
  let now = 0
  const heads = createAnswerHeads(createHttpDate(() => now))
  const list = ['content-length', '5']
  const body = Buffer.from('hello')
  expect(heads.whole(200, list, body)).toBeUndefined()
  const whole = heads.whole(200, list, body)
  expect(whole).toEqual(Buffer.concat([heads.fields(200, list), heads.rest(false), body]))
  expect(heads.whole(200, list, body)).toBe(whole)
  now = 1000
  expect(heads.whole(200, list, body)).toBeUndefined()
  expect(String(heads.whole(200, list, body))).toContain('Date: Thu, 01 Jan 1970 00:00:01 GMT\r\n')
})

test('one piece is never another body or status', () => {
  const heads = createAnswerHeads(createHttpDate(() => 0))
  const list = ['content-length', '1']
  const [first, second] = [Buffer.from('1'), Buffer.from('2')]
  heads.whole(200, list, first)
  expect(String(heads.whole(200, list, first))).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n1$/)
  expect(heads.whole(404, list, first)).toBeUndefined()
  expect(heads.whole(404, list, second)).toBeUndefined()
  expect(String(heads.whole(404, list, second))).toMatch(/^HTTP\/1\.1 404 Not Found\r\n[^]*\r\n\r\n2$/)
})

test('pieces of one second have a bound', () => {
  const heads = createAnswerHeads(createHttpDate(() => 0))
  const answers = Array.from({ length: 20 }, (_, n) => ({ list: ['x', String(n)], body: Buffer.alloc(500_000) }))
  for (const { list, body } of answers) heads.whole(200, list, body)
  const kept = answers.map(({ list, body }) => heads.whole(200, list, body)).filter((whole) => whole !== undefined)
  const bytes = kept.reduce((sum, { length }) => sum + length, 0)
  expect(kept.length).toBeGreaterThan(10)
  expect(bytes).toBeLessThanOrEqual(8_001_000)
})
