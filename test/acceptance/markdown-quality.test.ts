/** Markdown of real pages: short, and without a sentence of the content lost. The pages are those of the docs. */
import { countTokens } from 'gpt-tokenizer'
import { beforeAll, expect, test } from 'vitest'
import { sharedStack, type Published, type Stack } from '../support/stack.ts'

/** Of what the page itself costs a model. The reference of the API is nearly all content. */
const MAX_SHARE = { guide: 0.3, reference: 0.4 }

let stack: Stack
let drop: Published
/** Path at the service → the page. */
const pages = new Map<string, string>()

beforeAll(async () => {
  stack = await sharedStack()
  const index = (await stack.fetch('/docs')).text()
  const sitemap = [...index.matchAll(/href="(\/docs[^"#]*)"/g)].map(([, path]) => path!)
  const api = (await stack.fetch('/docs/api')).text()
  const tags = [...api.matchAll(/href="(\/docs\/api\/[^"#]+)"/g)].map(([, path]) => path!)
  for (const path of new Set([...sitemap, ...tags])) pages.set(path, (await stack.fetch(path)).text())
  const files = Object.fromEntries([...pages].map(([path, page]) => [`${path.slice(1)}/index.html`, page]))
  drop = await stack.publish(await stack.createAccount('plus'), { 'index.html': '<h1>Docs</h1>', ...files })
})

const plain = (text: string): string => text.replace(/[^\p{L}\p{N}]+/gu, '').toLowerCase()

/** Sentences of the paragraphs and cells of the content, as they are read. */
function sentencesOf(page: string): string[] {
  const main = /<main\b[\s\S]*<\/main>/.exec(page)?.[0] ?? page
  const content = main.replace(/<nav\b[\s\S]*?<\/nav>/g, '')
  return [...content.matchAll(/<(?:p|li|td|h[1-3])\b[^>]*>([^<]{12,})</g)].flatMap(([, text]) =>
    text!
      .replace(/&(?:amp|lt|gt|quot|#39|#96|nbsp);/g, ' ')
      .split(/(?<=[.!?]) /)
      .map(plain)
      .filter((sentence) => sentence.length >= 12),
  )
}

test('twenty pages and more cost a model a third of themselves, and say the same', async () => {
  expect(pages.size).toBeGreaterThanOrEqual(20)
  const tokens = { guide: { page: 0, markdown: 0 }, reference: { page: 0, markdown: 0 } }
  const lost: string[] = []
  let sentences = 0
  for (const [path, page] of pages) {
    const answer = await stack.visit(drop.slug, `${path}/`, { headers: { accept: 'text/markdown' } })
    expect([path, answer.header('content-type')]).toEqual([path, 'text/markdown; charset=utf-8'])
    const read = plain(answer.text())
    for (const sentence of sentencesOf(page)) {
      sentences++
      if (!read.includes(sentence)) lost.push(`${path}: ${sentence}`)
    }
    const kind = tokens[path.startsWith('/docs/api') ? 'reference' : 'guide']
    kind.page += countTokens(page)
    kind.markdown += countTokens(answer.text())
    const told = Number(answer.header('x-markdown-tokens'))
    expect(told / countTokens(answer.text()), path).toBeGreaterThan(0.5)
    expect(told / countTokens(answer.text()), path).toBeLessThan(1.5)
  }
  expect(sentences).toBeGreaterThan(300)
  expect(lost).toEqual([])
  expect(tokens.guide.markdown / tokens.guide.page).toBeLessThan(MAX_SHARE.guide)
  expect(tokens.reference.markdown / tokens.reference.page).toBeLessThan(MAX_SHARE.reference)
})
