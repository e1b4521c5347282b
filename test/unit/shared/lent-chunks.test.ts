import { expect, test } from 'vitest'
import { giveBack, lendChunk } from '../../../shared/blobs/lent-chunks.ts'

// Sizes that no one else uses.
test('what was given back, whole or in part, is lent again', () => {
  const chunk = lendChunk(111)
  expect(chunk.length).toBe(111)
  giveBack(chunk.subarray(3, 5))
  const again = lendChunk(111)
  expect([again.buffer, again.byteOffset, again.length]).toEqual([chunk.buffer, 0, 111])
})

test('one who asks for another size gets other memory', () => {
  const chunk = lendChunk(112)
  giveBack(chunk)
  expect(lendChunk(113).buffer).not.toBe(chunk.buffer)
})

test('nothing is lent to two, though it is given back twice', () => {
  const chunk = lendChunk(114)
  giveBack(chunk)
  giveBack(chunk)
  expect(lendChunk(114).buffer).not.toBe(lendChunk(114).buffer)
})

test('what was never lent is left alone', () => {
  const own = Buffer.allocUnsafeSlow(115)
  giveBack(own)
  giveBack(Buffer.from('of a pool that many share'))
  expect(lendChunk(115).buffer).not.toBe(own.buffer)
})

test('only so much is kept', () => {
  const all = Array.from({ length: 100 }, () => lendChunk(116))
  for (const chunk of all) giveBack(chunk)
  const memory = new Set(all.map(({ buffer }) => buffer))
  const again = Array.from({ length: 100 }, () => lendChunk(116)).filter(({ buffer }) => memory.has(buffer))
  expect(again).toHaveLength(64)
})
