import { describe, expect, test } from 'vitest'
import { isText, hasEscapes, requireFields, requireTexts } from '../../../shared/values/text.ts'

test.each([
  ['', true],
  ['Grüße, 世界 😀', true],
  ['a\u0001\t\n', true],
  ['\ufffd\uffff', true],
  ['\0', false],
  ['a\0b', false],
  ['\ud800', false],
  ['a\udc00b', false],
  ['\udc00\ud800', false],
])('%j', (text, expected) => expect(isText(text)).toBe(expected))

describe('what comes in', () => {
  test.each([
    [{ name: 'a\0' }, 'name: holds'],
    [{ deep: { list: ['a', { title: '\ud800' }] } }, 'deep.list.title: holds'],
    [{ 'a\0': 1 }, 'holds U+0000'],
    ['\0', 'holds U+0000'],
    [{ content: { name: '\0' } }, 'content.name: holds'],
  ])('%j is refused', (value, words) => expect(() => requireTexts(value)).toThrow(words))

  test.each([[null], [1], [{ a: [true, null, 'b'] }], [{ content: '\0', markdown: '\ud800' }]])('%j passes', (value) =>
    requireTexts(value),
  )

  test('in JSON every text that is none is named by an escape', () => {
    for (const none of ['\0', '\ud800', 'a\udc00b']) {
      expect(hasEscapes(JSON.stringify({ [none]: 1 }))).toBe(true)
      // As it is, without an escape: no JSON, or not the same in UTF-8.
      const bytes = Buffer.from(`{"name":"${none}"}`)
      expect(() => requireTexts(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))).not.toThrow(
        'holds',
      )
    }
    expect(hasEscapes('{"name":"Gr\\u00fc\u00dfe"}')).toBe(true)
    expect(hasEscapes('{"name":"Gr\u00fc\u00dfe, \u4e16\u754c"}')).toBe(false)
  })

  test('fields of a form: all but the page', () => {
    requireFields([
      ['text', 'a\0'],
      ['slug', 'b'],
    ])
    expect(() => requireFields([['password', 'a\0']])).toThrow('password: holds')
    expect(() => requireFields([['a\0', '']])).toThrow('U+0000')
  })
})
