/** What Markdown costs is bounded before it is rendered, and everything that people write is within the bound. */
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { requireRenderable } from '../../../control/drops/publishing/markdown/budget.ts'
import { renderMarkdown } from '../../../control/drops/publishing/markdown/markdown.ts'
import { fill } from '../../support/counting/cases.ts'

const SIZE = 100_000

describe('what would take seconds is refused, and the line is named', () => {
  test.each([
    ['bullets', `# a\n\n${'- '.repeat(400)}a`, 'line 3 nests more than 100 levels deep'],
    ['quotes', `${'>'.repeat(400)}a`, 'line 1 nests'],
    ['quotes with blanks', `a\n${'> '.repeat(101)}a`, 'line 2 nests'],
    ['numbers', `${'1. '.repeat(101)}a`, 'line 1 nests'],
    [
      'lists by their indentation',
      Array.from({ length: 120 }, (_, level) => `${' '.repeat(2 * level)}- a`).join('\n'),
      'line 101 nests',
    ],
    ['emphasis', fill('**a', SIZE), 'line 1 is where'],
    ['emphasis of two kinds', fill('*a_b', SIZE), 'line 1 is where'],
    ['strikethrough', fill('~~a', SIZE), 'line 1 is where'],
    ['links without a beginning', fill('](', SIZE), 'line 1 is where'],
    ['titles that never end', fill('[a](b "c ', SIZE), 'line 1 is where'],
    ['tags that never end', fill(`x <a b='`, SIZE), 'line 1 is where'],
    ['comments that never end', fill('x <!-- ', SIZE), 'line 1 is where'],
    ['lines of one paragraph', fill('a**b\n', SIZE), 'is where'],
    ['numbers in one paragraph', `a\n${fill('2. a**b\n', SIZE)}`, 'is where'],
    ['nested lists, left thousands of times', fill('1. a\n   - b\n     - c\n', SIZE), 'is where'],
    ['lists of three on a line', fill('- - - a\n', SIZE), 'is where'],
    ['lists of ninety on a line', fill(`${'- '.repeat(90)}a\n`, SIZE), 'is where'],
    ['quotes in items, left thousands of times', fill('- > a\n', SIZE), 'is where'],
    ['items in quotes, left thousands of times', fill('> - - a\n', SIZE), 'is where'],
    ['footnotes, left thousands of times', fill('[^1]: a\n# b\n', SIZE), 'is where'],
    ['lines that end as on old machines', fill('- - - a\r', SIZE), 'is where'],
    ['quotes with three blanks', `${'>   '.repeat(400)}a`, 'line 1 nests'],
    ['items behind blanks in a quote', `>  ${'- '.repeat(400)}a`, 'line 1 nests'],
    ['footnotes in footnotes', `${'[^a]:'.repeat(400)}b`, 'line 1 nests'],
    ['what follows a listing in a quote', `> \`\`\`\n${fill('- - - a\n', SIZE)}`, 'is where'],
    ['what follows code between backticks', `\`\`\`a\`\`\`\n${fill('- - - a\n', SIZE)}`, 'is where'],
    ['quotes, left thousands of times', fill('> a\n\n', SIZE), 'is where'],
    ['underlined headings', fill('a\n===\n', SIZE), 'is where'],
    ['after front matter', `---\na: b\n---\n\n${'>'.repeat(400)}a`, 'line 5 nests'],
  ])('%s', (_name, source, words) => expect(() => renderMarkdown(source)).toThrow(words))
})

describe('what people write is within the bound', () => {
  const HONEST: Readonly<Record<string, string>> = {
    'a README of 5,000 items': '- an **item** with [a link](b) and `code`\n'.repeat(5000),
    'a loose list of 5,000 items': '- an *item*\n\n'.repeat(5000),
    'a numbered list of 5,000 items': Array.from({ length: 5000 }, (_, index) => `${index + 1}. *item*\n`).join(''),
    'a table of 2,000 rows': `| a | b |\n|---|---|\n${'| **x** | [y](z) and `code` |\n'.repeat(2000)}`,
    'a change log of 10,000 lines': '## 1.0.0\n\n- one\n  - more of **it**\n  - [more](a)\n- two\n\n'.repeat(1500),
    'three thousand links at the end': Array.from(
      { length: 3000 },
      (_, index) => `[${index}]: https://a.test/${index}\n`,
    ).join(''),
    'a long listing': `\`\`\`\n${'if (a[b](c) && **d) { <e> }\n'.repeat(10_000)}\`\`\`\n`,
    'a listing after one in a quote': `> \`\`\`\n> x\n> \`\`\`\n\n\`\`\`\n${'if (a[b](c) && **d) { <e> }\n'.repeat(10_000)}\`\`\`\n`,
    'a listing in a quote in a list': `- > \`\`\`\n${'  > **a**b**c\n'.repeat(5000)}  > \`\`\`\n`,
    'a long list by tabs': '1.\tone\n\t- more of **it**\n\t- [more](a)\n\n'.repeat(1500),
    'five hundred footnotes': Array.from(
      { length: 500 },
      (_, index) => `[^${index}]: A note.\n\n    With more.\n`,
    ).join(''),
    'items with lines that are not indented': '- an item of some words\nthat goes on here\n'.repeat(2000),
    'answers in a long mail': '> > a question\n> an answer\n\nmore\n\n'.repeat(1000),
    'a listing in a list': `- a\n\n  \`\`\`\n${'  **a**b**c\n'.repeat(5000)}  \`\`\`\n`,
    'a long table of HTML': `<table>\n${'<tr><td><a href="b">c</a></td></tr>\n'.repeat(5000)}</table>\n`,
    'a log with names of variables': 'at some_long_name in other_name [12] <main>\n'.repeat(1000),
    'a book of prose': 'Some words, a *few* of them **strong**, and [a link](https://a.test/).\n\n'.repeat(10_000),
    'a line of dashes': `${'- '.repeat(400)}\n`,
    'a line of stars': `${'* '.repeat(400)}\n`,
  }
  test.each(Object.entries(HONEST))('%s', (_name, source) => requireRenderable(source))

  test('every example of CommonMark and every document of this repository', () => {
    const ROOT = path.resolve(import.meta.dirname, '../../..')
    const spec = readFileSync(path.join(ROOT, 'node_modules/commonmark-spec/spec.txt'), 'utf8')
    requireRenderable(spec)
    for (const example of spec.split(/^`{32}.*$/m)) requireRenderable(example)
    for (const file of globSync('{*.md,docs/*.md,*/README.md}', { cwd: ROOT }))
      requireRenderable(readFileSync(path.join(ROOT, file), 'utf8'))
  })
})
