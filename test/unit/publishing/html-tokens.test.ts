/** Single tokens, held against the tokenizer of parse5. Characters that it decodes or replaces (`&`, NUL) stay out. */
import fc from 'fast-check'
import { Tokenizer, TokenizerMode, type Token } from 'parse5'
import { describe, expect, test } from 'vitest'
import {
  findRawTextEnd,
  isSpace,
  readMarkup,
  type Markup,
  type Tag,
} from '../../../control/drops/publishing/html/tokens.ts'

type Seen =
  | {
      readonly kind: 'start' | 'end'
      readonly name: string
      readonly end: number
      readonly selfClosing: boolean
      readonly values: Record<string, string>
    }
  | { readonly kind: 'other'; readonly end: number }
  | { readonly kind: 'text' | 'unfinished' }

function valuesOf(bytes: Buffer, { attributes }: Tag): Record<string, string> {
  return Object.fromEntries(
    [...attributes].map(([name, { start, end }]) => [name, bytes.toString('latin1', start, end)]),
  )
}

function seenByUs(text: string, inForeign = false, from = 0): Seen {
  const bytes = Buffer.from(text, 'latin1')
  const markup: Markup = readMarkup(bytes, from, inForeign)
  if (!('attributes' in markup)) return markup
  expect(markup.start).toBe(from)
  const { kind, name, end, selfClosing } = markup
  return { kind, name, end, selfClosing, values: valuesOf(bytes, markup) }
}

const KNOWN = ['action', 'content', 'href', 'http-equiv', 'src', 'srcset', 'xlink:href']

/** The tokens of a text in the order in which parse5 emits them. */
function tokensOf(text: string, mode?: { state: number; name: string }, inForeign = false): Token.Token[] {
  const tokens: Token.Token[] = []
  const note = (token: Token.Token): void => void tokens.push(token)
  const tokenizer = new Tokenizer(
    { sourceCodeLocationInfo: true },
    {
      onComment: note,
      onDoctype: note,
      onStartTag: note,
      onEndTag: note,
      onEof: note,
      onCharacter: note,
      onNullCharacter: note,
      onWhitespaceCharacter: note,
    },
  )
  tokenizer.inForeignNode = inForeign
  if (mode) {
    tokenizer.state = mode.state as typeof tokenizer.state
    tokenizer.lastStartTagName = mode.name
  }
  tokenizer.write(text, true)
  return tokens
}

function seenByParse5(text: string): Seen {
  const token = tokensOf(text)[0]!
  const end = token.location?.endOffset ?? 0
  if ('tagName' in token) {
    const values = token.attrs.filter(({ name }) => KNOWN.includes(name)).map(({ name, value }) => [name, value])
    const kind = text.startsWith('</') ? 'end' : 'start'
    return { kind, name: token.tagName, end, selfClosing: token.selfClosing, values: Object.fromEntries(values) }
  }
  if ('chars' in token) return { kind: 'text' }
  // A token that the end of the document cuts off is closed by it.
  return { kind: 'other', end }
}

const none = { selfClosing: false, values: {} } as const

describe('a token', () => {
  test.each<[string, Seen]>([
    ['<a>', { kind: 'start', name: 'a', end: 3, ...none }],
    ['<A>', { kind: 'start', name: 'a', end: 3, ...none }],
    ['<Z9>', { kind: 'start', name: 'z9', end: 4, ...none }],
    ['</z>', { kind: 'end', name: 'z', end: 4, ...none }],
    ['</b x>', { kind: 'end', name: 'b', end: 6, ...none }],
    ['<a\thref=x>', { kind: 'start', name: 'a', end: 10, selfClosing: false, values: { href: 'x' } }],
    ['<a\nhref\r=\fx>', { kind: 'start', name: 'a', end: 12, selfClosing: false, values: { href: 'x' } }],
    ['<a/>', { kind: 'start', name: 'a', end: 4, selfClosing: true, values: {} }],
    ['<a/href=x/>', { kind: 'start', name: 'a', end: 11, selfClosing: false, values: { href: 'x/' } }],
    ['<a href="x"/>', { kind: 'start', name: 'a', end: 13, selfClosing: true, values: { href: 'x' } }],
    ['<a href=">">', { kind: 'start', name: 'a', end: 12, selfClosing: false, values: { href: '>' } }],
    ["<a href='\"'>", { kind: 'start', name: 'a', end: 12, selfClosing: false, values: { href: '"' } }],
    ['<a href>', { kind: 'start', name: 'a', end: 8, selfClosing: false, values: { href: '' } }],
    ['<a =href=x>', { kind: 'start', name: 'a', end: 11, ...none }],
    ['<a href=1 HREF=2>', { kind: 'start', name: 'a', end: 17, selfClosing: false, values: { href: '1' } }],
    [
      '<a http-equiv=x xlink:href=y onclick=z>',
      { kind: 'start', name: 'a', end: 39, selfClosing: false, values: { 'http-equiv': 'x', 'xlink:href': 'y' } },
    ],
    ['<@>', { kind: 'text' }],
    ['<[>', { kind: 'text' }],
    ['<`>', { kind: 'text' }],
    ['<{>', { kind: 'text' }],
    ['< a>', { kind: 'text' }],
    ['<', { kind: 'text' }],
    ['</>', { kind: 'other', end: 3 }],
    ['</ a>', { kind: 'other', end: 5 }],
    ['<?xml?>', { kind: 'other', end: 7 }],
    ['<!doctype html>', { kind: 'other', end: 15 }],
    ['<!-->', { kind: 'other', end: 5 }],
    ['<!--->', { kind: 'other', end: 6 }],
    ['<!---->', { kind: 'other', end: 7 }],
    ['<!--a-->', { kind: 'other', end: 8 }],
    ['<!--a--!>', { kind: 'other', end: 9 }],
    ['<!--a--->', { kind: 'other', end: 9 }],
    ['<!--a>-- >--!x-->', { kind: 'other', end: 17 }],
    ['<!-a>-->', { kind: 'other', end: 5 }],
    ['<!->', { kind: 'other', end: 4 }],
    ['<!x->', { kind: 'other', end: 5 }],
    ['<!x-a>b-->', { kind: 'other', end: 6 }],
    ['<!-x>b-->', { kind: 'other', end: 5 }],
    ['<a href="" src="x">', { kind: 'start', name: 'a', end: 19, selfClosing: false, values: { href: '', src: 'x' } }],
    ['<![CDATA[a>b]]>', { kind: 'other', end: 11 }],
    ['<a', { kind: 'unfinished' }],
    ['<a ', { kind: 'unfinished' }],
    ['<a/', { kind: 'unfinished' }],
    ['<a href', { kind: 'unfinished' }],
    ['<a href=', { kind: 'unfinished' }],
    ['<a href="x', { kind: 'unfinished' }],
    ['<a href=x', { kind: 'unfinished' }],
    ['<!--a--', { kind: 'unfinished' }],
    ['<!', { kind: 'unfinished' }],
    ['<?', { kind: 'unfinished' }],
    ['</', { kind: 'unfinished' }],
  ])('%j', (text, expected) => {
    expect(seenByUs(text)).toEqual(expected)
    // Nothing before or behind it matters, except to what is not finished.
    if (expected.kind !== 'unfinished' && text !== '<') {
      const shifted = 'end' in expected ? { ...expected, end: expected.end + 3 } : expected
      expect(seenByUs(`>--${text}<b>`, false, 3)).toEqual(shifted)
    }
  })

  test('a CDATA section exists in SVG and MathML only', () => {
    expect(seenByUs('<![CDATA[a>b]]>', true)).toEqual({ kind: 'other', end: 15 })
    expect(seenByUs('<![cdata[a>b]]>', true)).toEqual({ kind: 'other', end: 11 })
    expect(seenByUs('<![CDATA[a>b]]', true)).toEqual({ kind: 'unfinished' })
  })

  test('a value says where it stands and whether it has quotes', () => {
    const attributeOf = (text: string) => {
      const markup = readMarkup(Buffer.from(text), 0, false)
      return markup.kind === 'start' ? markup.attributes.get('src') : undefined
    }
    expect(attributeOf('<img src = "a">')).toEqual({ name: 'src', start: 12, end: 13, quoted: true })
    expect(attributeOf("<img SRC='a'>")).toEqual({ name: 'src', start: 10, end: 11, quoted: true })
    expect(attributeOf('<img src=a>')).toEqual({ name: 'src', start: 9, end: 10, quoted: false })
    expect(attributeOf('<img src>')).toEqual({ name: 'src', start: 0, end: 0, quoted: false })
  })

  test('spaces are the five of the standard', () => {
    const spaces = Array.from({ length: 256 }, (_, byte) => byte).filter(isSpace)
    expect(spaces).toEqual([0x09, 0x0a, 0x0c, 0x0d, 0x20])
    expect(isSpace(undefined)).toBe(false)
  })

  const piece = fc.constantFrom(
    ...['<', '</', '>', '/', '/>', '=', ' ', '\t', '\n', '\f', '"', "'", '!', '--', '-', '?', '-->', '--!>', '<!--'],
    ...['a', 'B', 'p', '1', 'x', ...KNOWN, 'HREF', ' href=', " src='", ' content="', '[CDATA[', ']]>', '`', '@', '{'],
  )
  test('any beginning of a document is read as parse5 reads it', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = `<${pieces.join('')}`
        const ours = seenByUs(text)
        if (ours.kind === 'unfinished') {
          expect(tokensOf(text)[0]).not.toHaveProperty('tagName')
        } else if (text.startsWith('</>')) expect(ours).toEqual({ kind: 'other', end: 3 })
        else expect(ours).toEqual(seenByParse5(text))
      }),
      { numRuns: 1500 },
    )
  })
})

describe('the end of what is not markup', () => {
  const endOf = (text: string, name: string, from = 0): string | undefined => {
    const tag = findRawTextEnd(Buffer.from(text, 'latin1'), name, from)
    return tag && `${tag.kind} ${tag.name} ${tag.start}-${tag.end}`
  }
  test.each([
    ['a</title>', 'title', 'end title 1-9'],
    ['a</TITLE x>b', 'title', 'end title 1-11'],
    ['</titles></title >', 'title', 'end title 9-18'],
    ['<</title/>', 'title', 'end title 1-10'],
    ['</</title>', 'title', 'end title 2-10'],
    ['</title', 'title', undefined],
    ['</title ', 'title', undefined],
    ['</tit</style>', 'title', undefined],
    ['<!--</title>-->', 'title', 'end title 4-12'],
    ['</script>', 'script', 'end script 0-9'],
    ['</scripts></script\n>', 'script', 'end script 10-20'],
    ['<script></script>', 'script', 'end script 8-17'],
    ['<!--</script>', 'script', 'end script 4-13'],
    ['<!--<script></script>', 'script', undefined],
    ['<!--<script></script></script>', 'script', 'end script 21-30'],
    ['<!--<SCRIPT ></SCRIPT></script>', 'script', 'end script 22-31'],
    ['<!--<scripts></script>', 'script', 'end script 13-22'],
    ['<!--<script>--></script>', 'script', 'end script 15-24'],
    ['<!--<script>--<script></script></script>', 'script', 'end script 31-40'],
    ['<!--><script></script>', 'script', 'end script 13-22'],
    ['<!---><script></script>', 'script', 'end script 14-23'],
    ['<!-- --><script></script>', 'script', 'end script 16-25'],
    ['<!-<script></script>', 'script', 'end script 11-20'],
    ['<!--<script></script><script></script></script>', 'script', 'end script 38-47'],
    ['<!--<script></script>--><script></script>', 'script', 'end script 32-41'],
    ['<!--<!--<script></script></script>', 'script', 'end script 25-34'],
    ['<!-- --><!--<script></script></script>', 'script', 'end script 29-38'],
    ['<!--<script><!--</script></script>', 'script', 'end script 25-34'],
  ])('%j of %s: %s', (text, name, expected) => {
    expect(endOf(text, name)).toBe(expected)
  })

  test('is looked for behind where the content starts', () => {
    expect(endOf('</title></title>', 'title', 1)).toBe('end title 8-16')
    expect(endOf('</script></script>', 'script', 1)).toBe('end script 9-18')
    expect(endOf('<!--<script></script>', 'script', 4)).toBe('end script 12-21')
  })

  const modes = { script: TokenizerMode.SCRIPT_DATA, style: TokenizerMode.RAWTEXT, title: TokenizerMode.RCDATA }
  const piece = fc.constantFrom(
    ...['<', '/', '>', '-', '--', '!', '<!--', '-->', ' ', '\n', 'x', '<script', '</script', '<SCRIPT>', '</Script>'],
    ...['<script>', '</script>', '</style>', '</title>', '</styles', '</titl'],
  )
  test.each(Object.entries(modes))('of any %s is where parse5 finds it', (name, state) => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
        const text = pieces.join('')
        const tokens = tokensOf(text, { state, name })
        const tag = tokens.find((token) => 'tagName' in token)
        const { startOffset, endOffset } = tag?.location ?? {}
        expect(endOf(text, name)).toBe(tag && `end ${name} ${startOffset}-${endOffset}`)
      }),
      { numRuns: 1000 },
    )
  })
})
