import fc from 'fast-check'
import { expect, test } from 'vitest'
import { idAtBeginning, idAtEnd, readBody } from '../../../control/doors/mcp/http/oversize.ts'

const idOf = (text: string) => idAtBeginning(text) ?? idAtEnd(text)

test.each<[string, string, string | number | undefined]>([
  ['first', '{"id":5,"method":"x","params":{"id":6}}', 5],
  ['first, and the rest is not there yet', '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"a":"', 5],
  [
    'last, as most clients write it',
    '{"method":"x","params":{"id":6,"a":[{"id":7}]},"jsonrpc":"2.0","id":"call-5"}',
    'call-5',
  ],
  ['last, and the beginning is gone', 'xx"}]},"jsonrpc": "2.0", "id": 12 }\n', 12],
  ['before the other short members', 'xx"},"id":-3,"jsonrpc":"2.0","method":"x"}', -3],
  ['between', '{"jsonrpc":"2.0", "id" : 12 , "method":"x"}', 12],
  ['with quotes inside', '{"params":{"content":"\\"id\\": 3, }"},"id":"a\\"b"}', 'a"b'],
  ['beyond ASCII', '{"id":"Grüße","params":{}}', 'Grüße'],
  ['only in the parameters', '{"method":"x","params":{"id":6}}', undefined],
  ['only in a text of the parameters', '{"method":"x","params":{"content":"\\"id\\":6}"}}', undefined],
  ['none', '{"method":"notifications/x"}', undefined],
  ['null', '{"id":null}', undefined],
  ['an object', '{"id":{"a":1}}', undefined],
  ['a text that is cut', '{"id":"abc', undefined],
  ['a text that is none', '{"id":"\\q"}', undefined],
  ['no JSON', 'hello', undefined],
  ['a batch', '[{"id":1},{"id":2}]', undefined],
])('the id of a call: %s', (_, text, id) => expect(idOf(text)).toBe(id))

const LIMITS = { maxBytes: 20_000, maxDrainedBytes: 100_000 }

async function* inPieces(text: string, bytes: number): AsyncGenerator<Buffer> {
  const whole = Buffer.from(text)
  for (let at = 0; at < whole.length; at += bytes) yield whole.subarray(at, at + bytes)
}

test('whatever a large message holds, however it is cut, the id is its id', async () => {
  const id = fc.oneof(fc.integer(), fc.string({ unit: 'binary-ascii', maxLength: 20 }))
  const call = fc.record({ id, content: fc.jsonValue(), piece: fc.integer({ min: 500, max: 9000 }) })
  await fc.assert(
    fc.asyncProperty(call, async ({ id: wanted, content, piece }) => {
      const params = { content, id: 'not this one', large: 'x'.repeat(30_000) }
      for (const message of [
        { jsonrpc: '2.0', id: wanted, method: 'tools/call', params },
        { method: 'tools/call', params, jsonrpc: '2.0', id: wanted },
      ])
        for (const text of [JSON.stringify(message), JSON.stringify(message, undefined, 1)])
          expect(await readBody(inPieces(text, piece), undefined, LIMITS, () => {})).toEqual({
            kind: 'oversize',
            id: wanted,
          })
    }),
    { seed: 1, numRuns: 200 },
  )
})

test('what fits is kept and counted; what does not is read past and counts for nothing', async () => {
  let held = 0
  const read = (text: string, declared?: string) =>
    readBody(inPieces(text, 1000), declared, LIMITS, (size) => void (held += size))
  expect(await read('{"id":1}')).toEqual({ kind: 'whole', bytes: Buffer.from('{"id":1}') })
  expect(held).toBe(8)
  expect(await read(`{"a":"${'x'.repeat(50_000)}","id":2}`)).toEqual({ kind: 'oversize', id: 2 })
  expect(held).toBe(8)
  await expect(read(`{"a":"${'x'.repeat(50_000)}"}`)).rejects.toMatchObject({ code: 'upload_too_large' })
  expect(held).toBe(8)
})

test.each([
  ['more than is read past', undefined, 200_000, 101_000],
  ['that declares more than is read past', '200000', 200_000, 5000],
])('of a message %s no more is read than that', async (_, declared, size, mostRead) => {
  let taken = 0
  async function* counted(text: string): AsyncGenerator<Buffer> {
    for await (const piece of inPieces(text, 1000)) {
      taken += piece.length
      yield piece
    }
  }
  const read = (text: string) => readBody(counted(text), declared, LIMITS, () => {})
  expect(await read(`{"id":"known","params":"${'x'.repeat(size)}"}`)).toEqual({ kind: 'oversize', id: 'known' })
  expect(taken).toBeLessThanOrEqual(mostRead)
  await expect(read(`{"a":"${'x'.repeat(size)}","id":3}`)).rejects.toMatchObject({ code: 'upload_too_large' })
})
