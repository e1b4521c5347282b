/** Values inside an inline script: what is read is what was meant, and nothing ends the script. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { scriptValue } from '../../../edge/rewrite/script-text.ts'

test('any value is read as it was', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = scriptValue(value)
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
      expect(text).toMatch(/^[ -~]*$/)
      expect(text).not.toMatch(/[<>&'`]/)
    }),
  )
})

test.each([
  ['</script>', '"\\u003c/script\\u003e"'],
  ["a'b`c&d", '"a\\u0027b\\u0060c\\u0026d"'],
  ['ü\u2028\u{1F600}\u007f', '"\\u00fc\\u2028\\ud83d\\ude00\\u007f"'],
  ['a b~', '"a b~"'],
])('%j is written %s', (value, text) => expect(scriptValue(value)).toBe(text))
