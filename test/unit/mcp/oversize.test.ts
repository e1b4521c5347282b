import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createIdScanner, readBody } from '../../../control/doors/mcp/oversize.ts'

function scan(text: string, chunkBytes = 7): string | number | null {
  const scanner = createIdScanner()
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += chunkBytes) scanner.push(bytes.subarray(at, at + chunkBytes))
  return scanner.id()
}

test.each<[string, string, string | number | null]>([
  ['first', '{"id":5,"method":"x","params":{"id":6}}', 5],
  [
    'last, as most clients write it',
    '{"method":"x","params":{"id":6,"a":[{"id":7}]},"jsonrpc":"2.0","id":"call-5"}',
    'call-5',
  ],
  ['between', '{"jsonrpc":"2.0", "id" : 12 , "method":"x"}', 12],
  ['with quotes inside', '{"params":{"content":"\\"id\\": 3, }"},"id":"a\\"b"}', 'a"b'],
  ['none', '{"method":"notifications/x"}', null],
  ['null', '{"id":null}', null],
  ['an object', '{"id":{"a":1}}', null],
  ['a text that is cut', '{"id":"abc', null],
  ['no JSON', 'hello', null],
  ['a batch', '[{"id":1},{"id":2}]', null],
])('the id of a call: %s', (_, text, id) => expect(scan(text)).toBe(id))

test('whatever the message holds, however it is cut, the id is its id', () => {
  const id = fc.oneof(fc.integer(), fc.string({ unit: 'binary-ascii', maxLength: 20 }))
  const message = fc.record({ id, params: fc.jsonValue(), method: fc.string() })
  fc.assert(
    fc.property(message, fc.integer({ min: 1, max: 9 }), (value, cut) => {
      expect(scan(JSON.stringify(value), cut)).toBe(value.id)
      const { id: last, ...rest } = value
      expect(scan(JSON.stringify({ ...rest, id: last }, undefined, 1), cut)).toBe(last)
    }),
  )
})

test('what fits is kept and counted; what does not is passed by; a flood ends', async () => {
  const parts = async function* (text: string) {
    for (const chunk of text.match(/.{1,10}/gs) ?? []) yield Buffer.from(chunk)
  }
  let held = 0
  const read = (text: string) =>
    readBody(parts(text), { maxBytes: 40, maxDrainedBytes: 100 }, (size) => void (held += size))
  expect(await read('{"id":1}')).toEqual({ kind: 'whole', bytes: Buffer.from('{"id":1}') })
  expect(await read(`{"a":"${'x'.repeat(50)}","id":2}`)).toEqual({ kind: 'oversize', id: 2 })
  expect(held).toBe(8)
  // Who is known by then is answered; who is not hears that the request failed.
  expect(await read(`{"id":"three","a":"${'x'.repeat(200)}"}`)).toEqual({ kind: 'oversize', id: 'three' })
  await expect(read(`{"a":"${'x'.repeat(200)}"}`)).rejects.toMatchObject({ code: 'upload_too_large' })
})
