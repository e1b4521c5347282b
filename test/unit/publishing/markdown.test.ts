import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import { scanHtml } from '../../../control/drops/publishing/html/scan.ts'
import { renderBody, renderMarkdown } from '../../../control/drops/publishing/markdown/markdown.ts'

interface Example {
  markdown: string
  html: string
  number: number
}
const { tests } = createRequire(import.meta.url)('commonmark-spec') as { tests: Example[] }
const examples = tests.map((example) => ({
  ...example,
  markdown: example.markdown.replaceAll('→', '\t'),
  html: example.html.replaceAll('→', '\t'),
}))

/** Where GitHub's additions mean something else than CommonMark does: bare addresses become links. */
const ADDITIONS_DIFFER: ReadonlySet<number> = new Set([602, 608, 611, 612])

/** What we add to headings and code, taken away again. */
function withoutDecoration(html: string): string {
  return html
    .replace(/<a class="anchor"[^>]*>#<\/a>/g, '')
    .replace(/<(h[1-6]) id="[^"]*">/g, '<$1>')
    .replace(/<span class="hljs-[^"]*">|<\/span>/g, '')
    .replaceAll('&#x27;', "'")
}

describe('CommonMark', () => {
  test('the specification has 652 examples', () => expect(examples).toHaveLength(652))

  test.each(examples.map((example) => [example.number, example] as const))(
    'example %i',
    (number, { markdown, html }) => {
      expect(renderBody(markdown, 'plain').html).toBe(html)
      const full = withoutDecoration(renderBody(markdown).html)
      if (ADDITIONS_DIFFER.has(number)) expect(full).not.toBe(html)
      else expect(full).toBe(html)
    },
  )
})

describe('GitHub additions', () => {
  test.each([
    ['a table', '| a | b |\n|:--|--:|\n| 1 | 2 |', '<th align="left">a</th>'],
    ['a task list', '- [x] done\n- [ ] open', '<input type="checkbox" disabled="" checked="" />'],
    ['strikethrough', '~~gone~~', '<del>gone</del>'],
    ['a bare address', 'see https://example.com/a.', '<a href="https://example.com/a">https://example.com/a</a>.'],
    ['a footnote', 'a[^1]\n\n[^1]: note', '<section data-footnotes="" class="footnotes">'],
    [
      'raw HTML, also script and iframe',
      'x\n\n<script>1 < 2</script>\n\n<iframe src="a"></iframe>',
      '<script>1 < 2</script>',
    ],
  ])('%s', (_, source, expected) => expect(renderBody(source).html).toContain(expected))
})

describe('headings', () => {
  test('ids follow the text, in any script, and stay unique', () => {
    const { html } = renderBody(
      '# Hello *World*!\n\nÜber uns\n========\n\n## Hello World\n\n## 你好\n\n### !!!\n\n## Hello world 1',
    )
    const ids = [...html.matchAll(/<h\d id="([^"]*)"/g)].map((match) => match[1])
    expect(ids).toEqual(['hello-world', 'über-uns', 'hello-world-1', '你好', 'section', 'hello-world-1-1'])
  })

  test('a heading cannot break out of its id', () => {
    const { html } = renderBody('# "><script>alert(1)</script>')
    expect(html).toMatch(/^<h1 id="[\p{L}\p{N}-]+">/u)
  })
})

describe('the page', () => {
  test.each([
    [{ title: ' Given ' }, 'Given'],
    [{ filename: 'x.md' }, 'First & only'],
    [{}, 'First & only'],
  ])('title from %o', (options, title) =>
    expect(renderMarkdown('# First &amp; *only*\n\ntext', options).title).toBe(title),
  )

  test('title from the file name when there is no heading', () => {
    expect(renderMarkdown('text', { filename: 'notes/Trip to Rome.md' }).title).toBe('Trip to Rome')
    expect(renderMarkdown('').title).toBe('Untitled')
  })

  test('title and description are escaped', () => {
    const { html } = renderMarkdown('The "first" <b>para</b> & more', { title: '</title><script>' })
    expect(html).toContain('<title>&lt;/title&gt;&lt;script&gt;</title>')
    expect(html).toContain('<meta name="description" content="The &quot;first&quot; para &amp; more">')
    expect(html).toContain('<meta property="og:title" content="&lt;/title&gt;&lt;script&gt;">')
  })

  test('needs nothing from elsewhere, and no script', () => {
    const { html } = renderMarkdown('# a\n\n```js\nlet a\n```\n')
    expect(html).not.toMatch(/<script|<link|@import|url\(|https?:/i)
    const { head, body, title } = scanHtml(Buffer.from(html))
    expect(title).toBe('a')
    expect(html.slice(head)).toMatch(/^<\/head>/)
    expect(html.slice(body!)).toMatch(/^<\/body>/)
  })

  test('code in a known language is coloured, in an unknown one it is left alone', () => {
    expect(renderBody('```js\nconst a = "<b>"\n```').html).toContain('<span class="hljs-keyword">const</span>')
    expect(renderBody('```nonsense\nconst a = "<b>"\n```').html).toBe(
      '<pre><code class="language-nonsense">const a = &quot;&lt;b&gt;&quot;\n</code></pre>',
    )
  })

  test('front matter is not shown', () => {
    expect(renderBody(renderMarkdown('---\ntitle: x\ntags:\n  - a\n---\n# Real').html).html).not.toContain('tags:')
    expect(renderMarkdown('---\n\nA rule above\n\n---\n').html).toContain('A rule above')
  })
})
