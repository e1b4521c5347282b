/** Cards: what stands on them, that nothing is drawn as an empty box, and that the picture is one. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { cardSvg, drawable, drawCard } from '../../../control/drops/publishing/analysis/card-picture.ts'
import { readFont } from '../../../control/drops/publishing/analysis/font.ts'

const { resolve } = createRequire(import.meta.url)
const font = readFont(readFileSync(resolve('@expo-google-fonts/inter/700Bold/Inter_700Bold.ttf')))
const host = 'my-page.dropway.example'

const textsOf = (svg: string): string[] => [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text!)

test('the font knows its characters and how wide they are', () => {
  for (const character of 'AzÄßŁőЖяΩλếığ→—…€') expect([character, font.has(character)]).toEqual([character, true])
  for (const character of '東한ไعא🚀') expect([character, font.has(character)]).toEqual([character, false])
  expect(font.widthOf('')).toBe(0)
  expect(font.widthOf('iiii')).toBeLessThan(font.widthOf('MMMM') / 2)
  expect(font.widthOf('MM')).toBe(2 * font.widthOf('M'))
})

test.each<[string, string | undefined]>([
  ['Quarterly figures', 'Quarterly figures'],
  ['  two \n lines\u0000 ', 'two lines'],
  ['Отчёт за квартал', 'Отчёт за квартал'],
  ['🚀 Launch 2️⃣0️⃣26 👩‍💻', 'Launch 2 0 26'],
  ['Cafe\u0301', 'Café'],
  ['#1 * 2 © 3', '#1 * 2 © 3'],
  ['東京都の報告書', undefined],
  ['Report 東京', undefined],
  ['דוח', undefined],
  ['🚀', undefined],
  ['', undefined],
])('%j is drawn as %j', (title, text) => {
  expect(drawable(title, font)).toBe(text)
})

test('a card says the title and the address; in a script that the font lacks, the address alone', () => {
  expect(textsOf(cardSvg({ title: 'Quarterly figures', host }, font))).toEqual(['Quarterly figures', host])
  expect(textsOf(cardSvg({ title: '東京都の報告書', host }, font))).toEqual([host])
  expect(textsOf(cardSvg({ title: 'a <b> & "c"', host }, font))[0]).toBe('a &lt;b&gt; &amp; &quot;c&quot;')
})

test.each([
  ['words', 'Lorem ipsum dolor sit amet '.repeat(20)],
  ['one long word', 'Donaudampfschifffahrt'.repeat(14)],
  ['wide letters', 'WWWWWWWW '.repeat(30)],
])('%s stay on the card, and end with … where they are too many', (_what, title) => {
  const svg = cardSvg({ title, host }, font)
  const lines = [...svg.matchAll(/<text x="(\d+)" y="(\d+)" font-size="(\d+)"[^>]*>([^<]*)</g)].map(
    ([, x, y, size, text]) => ({ x: Number(x), y: Number(y), size: Number(size), text: text! }),
  )
  const titleLines = lines.slice(0, -1)
  expect(titleLines).toHaveLength(5)
  expect(titleLines.at(-1)!.text.endsWith('…')).toBe(true)
  for (const { x, y, size, text } of lines) {
    expect(x + font.widthOf(text) * size).toBeLessThanOrEqual(1200 - 88)
    expect(y).toBeLessThanOrEqual(630 - 88)
  }
  expect(titleLines.at(-1)!.y).toBeLessThan(lines.at(-1)!.y - 40)
})

test('short titles are large', () => {
  const sizeOf = (title: string): number => Number(/font-size="(\d+)"/.exec(cardSvg({ title, host }, font))?.[1])
  expect([sizeOf('Hello'), sizeOf('word '.repeat(18)), sizeOf('word '.repeat(40))]).toEqual([88, 68, 54])
})

test('the picture is a PNG of the promised size, and the same text gives the same bytes', async () => {
  const [one, again, other] = await Promise.all([
    drawCard({ title: 'One', host }),
    drawCard({ title: 'One', host }),
    drawCard({ title: 'Other', host }),
  ])
  const bytes = Buffer.from(one)
  expect(bytes.subarray(1, 4).toString()).toBe('PNG')
  expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).toEqual([1200, 630])
  expect(Buffer.from(again).equals(bytes)).toBe(true)
  expect(Buffer.from(other).equals(bytes)).toBe(false)
})
