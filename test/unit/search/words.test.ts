import { expect, test } from 'vitest'
import { planWords, textOfPage } from '../../../control/drops/publishing/analysis/page-words.ts'
import { MAX_WORDS, questionOf, wordsOf } from '../../../control/drops/publishing/analysis/words.ts'
import {
  markedWords,
  markOf,
  MAX_WORDS_BYTES,
  namesQuestionOf,
  partsOf,
  patternOf,
} from '../../../control/doors/search/rules.ts'
import { manifestOf } from '../../support/manifests.ts'

test.each<[string, string[]]>([
  ['Hello, World! Hello', ['hello', 'world']],
  ['Müller Straße Ångström', ['muller', 'straße', 'angstrom']],
  ['ＦＵＬＬ width', ['full', 'width']],
  ['report-2026_v2', ['report', '2026', 'v2']],
  ['東京都', ['東京', '東京都', '京都', '都']],
  ['第3四半期', ['第', '3', '四半', '四半期', '半期', '期']],
  ['ข้อมูล', expect.arrayContaining(['ขอ'])],
  ['iPhone用ケース', ['iphone', '用ケ', '用ケー', 'ケー', 'ケース', 'ース', 'ス']],
  ['보고서 요약', ['보고서', '요약']],
  ['', []],
  ["'; drop table sites; --", ['drop', 'table', 'sites']],
])('%s is found by %j', (text, words) => {
  expect([...wordsOf(text)]).toEqual(words)
})

test('a drop has so many words and no more, and none is endless', () => {
  const text = Array.from({ length: 2 * MAX_WORDS }, (_, number) => `w${number}`).join(' ')
  expect(wordsOf(text).size).toBe(MAX_WORDS)
  expect(wordsOf('東京'.repeat(100_000)).size).toBeLessThan(10)
  expect(wordsOf('x'.repeat(1000)).size).toBe(0)
})

test.each<[string, string | undefined]>([
  ['Quarterly Report', "'quarterly':* & 'report':*"],
  ['東京', "'東京':*"],
  ['東', "'東':*"],
  ['東京都庁', "'東京都':* & '京都庁':*"],
  ["a' | 'b:*", "'a':* & 'b':*"],
  ['!!! ???', undefined],
  ['', undefined],
])('a question %s asks for %s', (text, question) => {
  expect(questionOf(text)).toBe(question)
})

test('every word that a question asks for is one that its own text is found by', () => {
  for (const text of ['Quarterly report', '東京都庁', '四半期の報告書', 'Müller', '보고서']) {
    const words = [...wordsOf(text)]
    for (const [, term] of questionOf(text)!.matchAll(/'([^']+)':\*/g))
      expect(
        words.some((word) => word.startsWith(term!)),
        `${text}: ${term}`,
      ).toBe(true)
  }
})

test('parts of names are looked for as they are written', () => {
  expect(partsOf('  50%  My_Page \\ ')).toEqual([['50%'], ['my_page'], ['\\']])
  expect(partsOf('   ')).toEqual([])
})

test('letters beyond A to Z are looked for small, large at the beginning and large', () => {
  expect(partsOf('ÜBER uns')).toEqual([['über', 'Über'], ['uns']])
  expect(partsOf('отчёт')).toEqual([['отчёт', 'Отчёт', 'ОТЧЁТ']])
  expect(partsOf('naïve 報告')).toEqual([['naïve', 'naÏve'], ['報告']])
  expect(partsOf('señorías')).toEqual([['señorías', 'seÑorÍas']])
})

test('a question has so many parts and no more', () => {
  const words = Array.from({ length: 20 }, (_, number) => `w${number}`)
  expect(partsOf(words.join(' '))).toEqual(words.slice(0, 12).map((word) => [word]))
  expect(partsOf('A\tB\nC')).toEqual([['a'], ['b'], ['c']])
})

test('nothing in a pattern means anything but itself', () => {
  expect(patternOf(['über', 'Über'])).toBe('über|Über')
  // The second character is a vowel sign, which is no letter and means nothing in a pattern either.
  expect(patternOf(['कि-x_'])).toBe('कि\\-x\\_')
  expect(patternOf(['a.b*(c)|d\\w$'])).toBe('a\\.b\\*\\(c\\)\\|d\\\\w\\$')
})

test.each<[string, string]>([
  ['a', "(('ma':*))"],
  ['ab', "(('mab':*))"],
  ['abc', "(('mabc'))"],
  ['abcd', "(('mabc' & 'mbcd'))"],
  ['abcdef', "(('mabc' & 'mdef'))"],
  ['abcdefg', "(('mabc' & 'mdef' & 'mefg'))"],
  ["o'n\\", "(('mo''n' & 'm''n\\\\'))"],
  ['報告 über', "(('m報告':*)) & (('mübe' & 'mber') | ('mÜbe' & 'mber'))"],
  ['🦊🦊🦊🦊', "(('m🦊🦊🦊' & 'm🦊🦊🦊'))"],
])('of the index of names, %s asks for %s', (text, asked) => {
  expect(namesQuestionOf(partsOf(text), 'm')).toBe(asked)
})

test('every word of a question has the mark of its organisation before it', () => {
  expect(questionOf('Quarterly 東京都庁', '1f2e3d4c')).toBe(
    "'1f2e3d4cquarterly':* & '1f2e3d4c東京都':* & '1f2e3d4c京都庁':*",
  )
  // The migration that marked what was there calculates the same.
  expect(markOf('org_a')).toBe('671b8040')
  expect(markOf('org_b')).not.toBe(markOf('org_a'))
})

test('words are stored with their mark, up to what Postgres takes', () => {
  expect(markedWords(['one', '東京'], 'ab')).toEqual(['abone', 'ab東京'])
  expect(markedWords([], 'ab')).toEqual([])
  const fits = Array.from({ length: MAX_WORDS_BYTES / 50 }, () => 'é'.repeat(24))
  expect(markedWords(fits, 'ab')).toHaveLength(fits.length)
  expect(markedWords(['é'.repeat(MAX_WORDS_BYTES / 2), 'x'], 'ab')).toEqual([])
  expect(markedWords([...fits, 'x'], 'ab')).toHaveLength(fits.length)
})

test.each([
  ['<title>A &amp; B</title><p>one<b>two</b> three</p>', ' A & B  onetwo three '],
  ['<script>let hidden</script>shown<style>p{}</style>', ' shown '],
  ['a < b <!-- hidden --> c', 'a < b  c'],
  ['<p>cut <b', ' cut '],
  ['<script>never ends', ' '],
])('the text of %s', (html, text) => {
  expect(textOfPage(Buffer.from(html))).toBe(text)
})

test('the landing page is read first, other kinds of files not at all', () => {
  expect(planWords(manifestOf(['b.html', 'a.css', 'index.html'])).map(({ path }) => path)).toEqual([
    'index.html',
    'b.html',
  ])
})
