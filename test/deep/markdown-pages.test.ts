/** Fifty pages and more that generators built: as Markdown they cost a model a third, and no sentence of theirs is lost. */
import { countTokens } from 'gpt-tokenizer'
import { beforeAll, expect, test } from 'vitest'
import { pageToMarkdown } from '../../edge/processes/machines/convert.ts'
import { estimateTokens } from '../../edge/processes/machines/tokens.ts'
import { buildPages, type BuiltPage } from '../support/built-pages.ts'

const MIN_PAGES = 50
const MAX_SHARE = 0.3
/** Shorter ones are labels: "Copy", "Next page". */
const SENTENCE_CHARS = 25

let pages: BuiltPage[]

beforeAll(async () => {
  pages = await buildPages()
}, 900_000)

/** Letters and digits alone: how they are set, and what Markdown escapes, is no part of what is said. */
const plain = (text: string): string => text.replace(/[^\p{L}\p{N}]+/gu, '').toLowerCase()

/** Without the addresses of links, which stand between words in Markdown. */
const saidBy = (markdown: string): string =>
  plain(markdown.replace(/\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?: "[^"]*")?\)/g, ']'))

function sentencesOf({ article }: BuiltPage): string[] {
  return article.flatMap((paragraph) =>
    paragraph
      .split(/(?<=[.!?])\s+/)
      .map(plain)
      .filter((sentence) => sentence.length >= SENTENCE_CHARS),
  )
}

test('every sentence that Readability finds is in the Markdown', () => {
  expect(pages.length).toBeGreaterThanOrEqual(MIN_PAGES)
  const lost: string[] = []
  let sentences = 0
  for (const page of pages) {
    const said = saidBy(pageToMarkdown(page.html, 'https://drop.example/page'))
    for (const sentence of sentencesOf(page)) {
      sentences++
      if (!said.includes(sentence)) lost.push(`${page.name}: ${sentence}`)
    }
  }
  console.log(`${pages.length} pages, ${sentences} sentences, ${lost.length} lost`)
  expect(sentences).toBeGreaterThan(1000)
  expect(lost).toEqual([])
})

test('together they cost at most 30 % of the tokens, and the tokens that are told are right within a half', () => {
  const tokens = { html: 0, markdown: 0 }
  for (const { name, html } of pages) {
    const markdown = pageToMarkdown(html, 'https://drop.example/page')
    const counted = countTokens(markdown)
    tokens.html += countTokens(html)
    tokens.markdown += counted
    expect(estimateTokens(markdown) / counted, name).toBeGreaterThan(0.5)
    expect(estimateTokens(markdown) / counted, name).toBeLessThan(1.5)
  }
  console.log(`tokens: ${tokens.html} as pages, ${tokens.markdown} as Markdown`)
  expect(tokens.markdown / tokens.html).toBeLessThanOrEqual(MAX_SHARE)
})
