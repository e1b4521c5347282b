import { expect, test } from 'vitest'
import { ByContent } from '../../../control/drops/publishing/manifest/by-content.ts'

const HASH = 'a'.repeat(64)

test('the same bytes are one content under names of one type, and another under a name of another', () => {
  const known = new ByContent([[{ path: 'a/index.html', hash: HASH }, 'page']])
  expect(known.get({ path: 'b.html', hash: HASH })).toBe('page')
  expect(known.get({ path: 'b.html', hash: 'b'.repeat(64) })).toBeUndefined()
  expect(known.has({ path: 'b.txt', hash: HASH })).toBe(false)
  known.set({ path: 'b.txt', hash: HASH }, 'text')
  known.set({ path: 'c.html', hash: HASH }, 'the same page')
  expect(known.values()).toEqual(['the same page', 'text'])
  expect(known.size).toBe(2)
  known.delete({ path: 'd.html', hash: HASH })
  expect(known.values()).toEqual(['text'])
  known.delete({ path: 'd.css', hash: HASH })
  expect(known.size).toBe(1)
})
