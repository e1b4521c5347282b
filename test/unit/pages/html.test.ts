import { parseFragment, type DefaultTreeAdapterMap } from 'parse5'
import { describe, expect, test } from 'vitest'
import { compact } from '../../../shared/pages/design.ts'
import { html, raw, safeUrl } from '../../../shared/pages/html.ts'
import { mailDocument } from '../../../control/ground/mail/letters/document.ts'
import { HOUSE_LOOK } from '../../../shared/pages/look.ts'
import { createStandalonePages } from '../../../shared/pages/shell.ts'

type Element = DefaultTreeAdapterMap['element']

const HOSTILE = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onfocus='alert(1)' autofocus='",
  '`onclick=alert(1)`',
  '&lt;b&gt; &amp;amp;',
  '</textarea></style></title><script>',
  '<!--',
  ']]>',
  '\u0000\u2028\u202E',
]

test.each(HOSTILE)('%j stays text in text and in attributes', (text) => {
  const [element] = parseFragment(html`<p title="${text}" data-x='${text}'>${text}</p>`.text).childNodes as Element[]
  // The parser drops NUL and reads CR as LF, as browsers do.
  const expected = text.replaceAll('\u0000', '')
  expect(element!.attrs.map((attribute) => [attribute.name, attribute.value.replaceAll('\uFFFD', '')])).toEqual([
    ['title', expected],
    ['data-x', expected],
  ])
  expect(element!.childNodes.map((node) => ('value' in node ? node.value : node.nodeName))).toEqual([expected])
})

describe('templates', () => {
  test('nest, take lists, and drop what is false or absent', () => {
    const items = ['a', '<b>'].map((item) => html`<li>${item}</li>`)
    expect(html`<ul>${items}</ul>${false}${undefined}${null}${0}`.text).toBe('<ul><li>a</li><li>&lt;b&gt;</li></ul>0')
  })

  test('markup passes only when it is marked', () => {
    expect(html`${raw('<i>ours</i>')}${'<i>theirs</i>'}`.text).toBe('<i>ours</i>&lt;i&gt;theirs&lt;/i&gt;')
  })

  test('an attribute without quotes is a mistake that shows at once', () => {
    expect(() => html`<a href=${'x y'}>x</a>`).toThrow('Quote the attribute')
    expect(html`<a href="/x?q=${'1'}">x</a>`.text).toBe('<a href="/x?q=1">x</a>')
  })
})

test.each([
  ['https://example.com/a', 'https://example.com/a'],
  ['mailto:a@example.com', 'mailto:a@example.com'],
  [' HTTPS://Example.com ', 'https://example.com/'],
  ['javascript:alert(1)', undefined],
  ['java\nscript:alert(1)', undefined],
  ['data:text/html,<script>', undefined],
  ['//example.com', undefined],
  ['', undefined],
])('a link that says %j becomes %j', (text, expected) => {
  expect(safeUrl(text)).toBe(expected)
})

test('a compacted style sheet means the same', () => {
  expect(compact('/* x */\na,\nb :hover {\n  margin: 0 auto;\n  width: calc(1rem + 2px);\n}\n')).toBe(
    'a,b :hover{margin:0 auto;width:calc(1rem + 2px)}',
  )
})

test('a stand-alone page carries its style sheet and allows nothing else', () => {
  const page = createStandalonePages()({ title: '<x>', heading: 'H', lead: 'L', home: 'https://dropway.example' })
  expect(page.body).toContain('<title>&lt;x&gt;</title>')
  expect(page.body).not.toContain('<script')
  expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-/)
  // Browsers ask for the icon of the host by themselves.
  expect(page.headers['content-security-policy']).toContain("img-src 'self'")
  expect(Buffer.byteLength(page.body)).toBeLessThan(12_000)
})

test('a mail escapes what users wrote', () => {
  const mail = {
    preview: '<p>',
    heading: '<b>',
    paragraphs: ['<i>'],
    action: { label: '"x"', url: 'https://x/?a=1&b=2' },
    footer: '<u>',
  }
  const text = mailDocument(mail, HOUSE_LOOK)
  expect(text).not.toMatch(/<[biu]>/)
  expect(text).toContain('href="https://x/?a=1&amp;b=2"')
})
