/** The scanner agrees with parse5, a full parser of the standard, about where the head and the body end. */
import fc from 'fast-check'
import { parse, serialize, type DefaultTreeAdapterTypes } from 'parse5'
import { describe, expect, test } from 'vitest'
import { scanHtml } from '../../../control/drops/publishing/html/scan.ts'

type Node = DefaultTreeAdapterTypes.Node
type Element = DefaultTreeAdapterTypes.Element

const HEAD_MARK = '<meta name="dropway-head-mark">'
const BODY_MARK = '<x-mark id="dropway-body-mark"></x-mark>'

/** What stands in them is not shown, or not as HTML. */
const HIDING = new Set(['select', 'svg', 'math'])

interface Injected {
  document: DefaultTreeAdapterTypes.Document
  body: number | null
  /** The document ends inside a token before its body starts: to be in the body at all, the second snippet must start it. */
  isCutOffEarly: boolean
}

/** A byte order mark is dropped when bytes are decoded, before anything is parsed. */
function inject(html: string): Injected {
  const bytes = Buffer.from(html)
  const { head, body } = scanHtml(bytes)
  const pieces =
    body === null
      ? [bytes.subarray(0, head), HEAD_MARK, bytes.subarray(head)]
      : [bytes.subarray(0, head), HEAD_MARK, bytes.subarray(head, body), BODY_MARK, bytes.subarray(body)]
  const document = parse(
    pieces
      .map(String)
      .join('')
      .replace(/^\ufeff/, ''),
  )
  return { document, body, isCutOffEarly: body !== null && isCutOff(bytes, body) }
}

function isCutOff(bytes: Buffer, body: number): boolean {
  const rest = bytes.toString('utf8', body)
  if (rest === '' || /^<\/(?:body|html)/i.test(rest)) return false
  const before = find(parse(bytes.toString('utf8', 0, body)), (element) => element.tagName === 'body')
  return before === undefined || before.childNodes.length === 0
}

function childrenOf(node: Node): Node[] {
  return 'childNodes' in node ? node.childNodes : []
}

function find(node: Node, wanted: (element: Element) => boolean): Element | undefined {
  if ('tagName' in node && wanted(node)) return node
  for (const child of childrenOf(node)) {
    const found = find(child, wanted)
    if (found) return found
  }
  return undefined
}

function attribute(element: Element, name: string): string | undefined {
  return element.attrs.find((candidate) => candidate.name === name)?.value
}

const isHeadMark = (element: Element): boolean => attribute(element, 'name') === 'dropway-head-mark'
const isBodyMark = (element: Element): boolean => attribute(element, 'id') === 'dropway-body-mark'

function remove(element: Element): void {
  const siblings = childrenOf(element.parentNode!)
  siblings.splice(siblings.indexOf(element), 1)
}

function ancestors(element: Element): string[] {
  const names: string[] = []
  for (let node = element.parentNode; node; node = 'parentNode' in node ? node.parentNode : null) {
    names.push('tagName' in node ? node.tagName : node.nodeName)
  }
  return names
}

/** Text next to a removed element falls apart into two nodes and comes together again when serialized. */
function expectPlaced(html: string): void {
  const { document, body, isCutOffEarly } = inject(html)
  const head = find(document, isHeadMark)
  expect(head, `head mark in ${JSON.stringify(html)}`).toBeDefined()
  expect(ancestors(head!), `head mark in ${JSON.stringify(html)}`).toEqual(['head', 'html', '#document'])
  remove(head!)
  if (body !== null) {
    const mark = find(document, isBodyMark)
    expect(mark, `body mark in ${JSON.stringify(html)}`).toBeDefined()
    expect(ancestors(mark!).slice(-3), `body mark in ${JSON.stringify(html)}`).toEqual(['body', 'html', '#document'])
    expect(
      ancestors(mark!).filter((name) => HIDING.has(name)),
      `body mark in ${JSON.stringify(html)}`,
    ).toEqual([])
    remove(mark!)
  } else {
    expect(find(parse(html), (element) => element.tagName === 'frameset')).toBeDefined()
  }
  if (!isCutOffEarly) expect(serialize(document)).toBe(serialize(parse(html.replace(/^\ufeff/, ''))))
}

const cases: Record<string, string> = {
  'an ordinary page': '<!doctype html><html><head><title>a</title></head><body><p>b</p></body></html>',
  'an empty document': '',
  'only text': 'hello',
  'only white space': ' \n ',
  'no head tag': '<!doctype html><title>a</title><p>b',
  'no tags but a paragraph': '<p>x',
  'no end tags': '<html><head><title>a</title><body><p>b<div>c',
  'end tag of the head in a comment': '<head><!-- </head> --><title>a</title></head><body>',
  'end tag of the head in a script': '<head><script>var a = "</head>"</script></head><body>x</body>',
  'end tag of the head in a style': '<head><style>/* </head><body> */</style></head><body>x</body>',
  'end tag of the head in the title': '<head><title></head></title></head><body>x</body>',
  'end tag of the head in an attribute': '<head><meta content="</head>"></head><body data-x="</body>">x</body>',
  'unquoted attribute with a slash': '<head><link href=/a/b></head><body><a href=x/>y</a></body>',
  'attribute that starts with an equals sign': '<p ="></body>">x</p></body>',
  'single quotes': "<head><meta content='</head>\"'></head><body>x</body>",
  'no white space between attributes': '<p a="1"b=\'2\'c>x</p></body>',
  'greater-than in an end tag attribute': '<script>a</script x=">">y</body>',
  'script with an escaped script': '<script><!--<script></script>--></script><p>x</body>',
  'script with a double escape that never closes': '<script><!--<script></script></body>',
  'script with a comment and an early end': '<script><!-- a </script><p>x</body>',
  'script with a short comment': '<script><!--><script></script><p>x</body>',
  'script whose comment ends': '<script><!-- <script> --> </script><p>x</body>',
  'script with an end tag look-alike': '<script></scripty></script ><p>x</body>',
  'upper case': '<!DOCTYPE HTML><HTML><HEAD><TITLE>A</TITLE></HEAD><BODY><SCRIPT></BODY></SCRIPT></BODY></HTML>',
  'byte order mark': '\ufeff<!doctype html><head></head><body>x</body>',
  'template in the head': '<head><template><p></head></body></template><meta></head><body>x</body>',
  'nested templates': '<template><template></body></template></body></template>x</body>',
  'unclosed textarea': '<body><p>a</p><textarea></body></html>',
  'textarea with an end tag of the body': '<body><textarea></body></textarea></body>',
  'unclosed comment': '<body>x<!-- </body>',
  'unclosed comment in the head': '<head><title>x</title><!-- </head><body>y',
  'unclosed tag': '<body>x<div class="</body>',
  'unclosed script': '<head></head><body>x<script>a</body></html>',
  'unclosed style in the head': '<head><style>a</head><body>x',
  'unclosed title': '<head><title>a</head><body>x',
  'end tag of a script cut off': '<body>x<script>a</script ',
  plaintext: '<body>x<plaintext></body>',
  noscript: '<head><noscript><link></noscript></head><body><noscript></body></noscript>x</body>',
  'iframe content': '<iframe></body></iframe>x</body>',
  'xmp content': '<xmp></body></xmp>x</body>',
  'abrupt comments': '<!--><head></head><!---><body><!-- --!>x</body>',
  'comment with dashes': '<!-- a -- b --- ></head> ---><head></head><body>x</body>',
  'bogus comments': '<?xml ></head>?><head></head></ x><body><!x></body>',
  'end tag without a name': '<body>x</>y</body>',
  'less-than in text': '<body>1 < 2 <3 <- x</body>',
  'less-than at the end': '<body>x<',
  'end tag start at the end': '<body>x</',
  'frameset page': '<html><head><title>a</title></head><frameset cols="1"><frame></frameset></html>',
  'frameset after a body tag': '<body><frameset></frameset></body>',
  'frameset after text': 'x<frameset></frameset></body>',
  'frameset after a paragraph': '<p><frameset><frame></frameset>',
  'frameset after a template with text': '<template>x</template><frameset></frameset>',
  'frameset in a script': '<script><frameset></script><p>x</body>',
  'style in svg is not raw': '<body><svg><style></style></svg><p>x</body>',
  'style in svg without an end tag': '<body><svg><style><g></g></style></svg></body>',
  'title in svg': '<body><svg><title></title></svg>x</body>',
  'cdata in svg': '<body><svg><![CDATA[</svg></body>]]></svg>x</body>',
  'cdata in html is a comment': '<body><![CDATA[ ></body>',
  'svg that an html tag breaks out of': '<body><svg><p><style></body></style></p></body>',
  'foreignObject holds html': '<body><svg><foreignObject><style></svg></body></style></foreignObject></svg>x</body>',
  'template in svg is none': '<body><svg><template></svg>x</body>',
  'self-closing svg': '<body><svg/><style></body></style>x</body>',
  'math text holds html': '<body><math><mi><style></math></body></style></mi></math>x</body>',
  'script in svg': '<body><svg><script><g></g></script></svg>x</body>',
  'content after the body': '<body>a</body></html>b<!-- c -->',
  'two bodies': '<body>a</body><body>b</body>',
  'only an end tag of the head': '</head>x',
  'stray end tags before the head': '</p></div><head></head><body>x',
  'a line break ends the head': '<head><title>x</title></br><meta></body>',
  'end tag of the body only': '</body>',
  'doctype with a greater-than': '<!doctype html public ">"></head><body>x</body>',
  'image in the head': '<head><title>x</title><img></head><body>y</body>',
  'a table that ends inside of a drawing': '<table><svg></table><textarea>',
  'a block that ends inside of a formula': '<div><math></div><script>',
  'a template that ends inside of a drawing': '<template><svg></template><textarea>',
  'a cell that shields the block around it': '<div><table><tr><td><svg></div><textarea></svg>',
  'text behind a template with text': '</head><template>x</template>y<frameset>',
  'a page that ends in a select': '<body>x<select><option>y',
  'the end tag of the body in a select': '<body>x<select><option>y</body></html>',
  'a select that ends after the end tag of the body': '<body>x<select></body></select>y',
  'a select that an end tag around it does not end': '<details><select></details>',
  'a select that a drawing shields': '<select><svg><desc></select>',
  'a select in a template': '<body>x<template><select></template>y</body>',
  'a page that ends in the description of a drawing': '<body>x<svg><desc><p>y',
  'a page that ends in a formula': '<body>x<math><mi>y',
  'a page that ends in a formula, with the end tag of the body': '<body>x<math><mrow><mi>y</mi></body></html>',
  'a select in a table in a drawing': '<table><tr><td><svg><foreignObject><select><option>y',
  'null bytes': '<body>a\0b</body>',
}

describe('snippets land in the head and in the body, and nothing else changes', () => {
  test.each(Object.entries(cases))('%s', (_, html) => expectPlaced(html))

  test('any sequence of pieces', () => {
    const piece = fc.constantFrom(
      ...[
        '<!doctype html>',
        '<html>',
        '<head>',
        '</head>',
        '<title>t</title>',
        '<meta charset=utf-8>',
        '<link href="a>b">',
      ],
      ...['<script>', '</script>', '<!--', '-->', '<script><!--<script>x</script>y</script>', '<style>a{}</style>'],
      ...[
        '</body>',
        '</html>',
        '<p>',
        '</p>',
        '<div class="</head>">',
        '</div>',
        'text',
        ' ',
        '\n',
        '<br>',
        '<b>b</b>',
      ],
      ...[
        '<textarea>',
        '</textarea>',
        '<template>x</template>',
        '<svg><path d="M0"/></svg>',
        '<?pi?>',
        '</>',
        '<',
        '<3',
      ],
      ...[
        '<svg><style>a</style></svg>',
        '<svg><![CDATA[</body>]]></svg>',
        '<noscript><p></noscript>',
        '<iframe></iframe>',
        ...[
          '<table>',
          '<tr><td>x',
          '</table>',
          '<frameset>',
          '<body>',
          '<svg>',
          '</svg>',
          '<xmp></body></xmp>',
          '--!>',
        ],
        ...['<select>', '</select>', '<option>', '<svg><desc>', '</desc>', '<details>', '</details>'],
        ...['<ul><li>', '</li>', '<span>', '</span>', '<h2>', '</h3>', '<math>', '<foreignObject>'],
        ...['<script', '</script', '<math><mi>x</mi></math>', '<svg><foreignObject><p>x</p></foreignObject></svg>'],
      ],
    )
    const pages = fc.array(piece, { maxLength: 14 }).map((pieces) => pieces.join(''))
    fc.assert(
      fc.property(pages, (html) => {
        expectPlaced(html)
      }),
      { numRuns: 3000 },
    )
  })

  test('any bytes: offsets are in order and inside the document', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'<>!-/="\' abhsct\0é'), maxLength: 60 }), (text) => {
        const bytes = Buffer.from(text)
        const { head, body } = scanHtml(bytes)
        expect(head).toBeGreaterThanOrEqual(0)
        expect(body ?? bytes.length).toBeGreaterThanOrEqual(head)
        expect(body ?? 0).toBeLessThanOrEqual(bytes.length)
        expectPlaced(text.replaceAll('\0', ''))
      }),
      { numRuns: 3000 },
    )
  })

  test('an unclosed template hides nothing of ours', () => {
    const { head, body } = scanHtml(Buffer.from('<body>x<template><p></body>'))
    expect([head, body]).toEqual([0, 7])
  })
})

describe('facts about a page', () => {
  const scan = (html: string) => scanHtml(Buffer.from(html))

  test('title and description, decoded and on one line', () => {
    const page = scan(
      '<title> A &amp;\n B &#169; </title><meta name=Description content="x &quot;y&quot;"><svg><title>no</title></svg>',
    )
    expect(page).toMatchObject({ title: 'A & B ©', description: 'x "y"' })
  })

  test.each([
    ['<meta charset="ISO-8859-1">', 'iso-8859-1'],
    ['<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">', 'windows-1251'],
    ['\ufeff<meta charset=latin1>', 'utf-8'],
    ['<!-- <meta charset=latin1> -->', undefined],
  ])('charset of %s', (html, charset) => expect(scan(html).charset).toBe(charset))

  test('the policies of a page, with their places', () => {
    const html = `<head><meta http-equiv="Content-Security-Policy" content="default-src &#39;self&#39;"><title>t</title>
      <META content='img-src x' http-equiv='content-security-policy'></head>`
    const { csp } = scan(html)
    expect(csp.map(({ policy }) => policy)).toEqual(["default-src 'self'", 'img-src x'])
    expect(csp.map(({ start, end }) => html.slice(start, end))).toEqual(['default-src &#39;self&#39;', 'img-src x'])
  })

  test('a policy outside the head does not count', () => {
    expect(scan(`<body><meta http-equiv="content-security-policy" content="x">`).csp).toEqual([])
    expect(scan(`<template><meta http-equiv="content-security-policy" content="x"></template>`).csp).toEqual([])
  })

  test('links of every kind', () => {
    const html = `<a href="a?x=1&amp;y">1</a><img src=b srcset="c 1x, d 2x"><script src='e'></script><link rel=icon href=f><link rel=next href=no>
      <video poster=g></video><svg><use xlink:href="h#i"/></svg><!-- <a href=no> --><textarea><a href=no></textarea>`
    expect(scan(html).links.map((link) => link.url)).toEqual(['a?x=1&y', 'b', 'c', 'd', 'e', 'f', 'g', 'h#i'])
  })

  test('what a page does with an address', () => {
    const html = `<a href=a></a><img src=b><script src=c></script><script type=" Module" src=d></script>
      <link rel="preload stylesheet" as=style href=e><link rel=modulepreload href=f><form action=g></form>
      <script type="text/plain" src=h></script>`
    expect(scan(html).links.map(({ url, use }) => [url, use])).toEqual([
      ['a', 'page'],
      ['b', 'file'],
      ['c', 'script'],
      ['d', 'module'],
      ['e', 'style'],
      ['f', 'module'],
      ['g', 'page'],
      ['h', 'script'],
    ])
  })
})
