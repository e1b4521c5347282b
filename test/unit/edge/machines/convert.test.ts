import { expect, test } from 'vitest'
import { countTokens } from 'gpt-tokenizer'
import { pageToMarkdown } from '../../../../edge/processes/machines/convert.ts'
import { estimateTokens } from '../../../../edge/processes/machines/tokens.ts'

const ADDRESS = 'https://docs.example.test/guide/start'
const page = (body: string, head = '<title>Guide</title>'): string =>
  `<!doctype html><html><head>${head}</head><body>${body}</body></html>`
const convert = (body: string, head?: string): string => pageToMarkdown(page(body, head), ADDRESS)

test.each<[string, string, string]>([
  ['a heading and words', '<h1>Start</h1><p>Some <b>bold</b> words.</p>', '# Start\n\nSome **bold** words.\n'],
  ['the title where there is no heading', '<p>Words.</p>', '# Guide\n\nWords.\n'],
  ['relative links', '<h1>A</h1><a href="../x?q#f">x</a>', '# A\n\n[x](https://docs.example.test/x?q#f)\n'],
  ['links that a script follows', '<h1>A</h1><a href="javascript:go()">x</a>', '# A\n\nx\n'],
  [
    'images with alt',
    '<h1>A</h1><img src="i.png" alt="A cat">',
    '# A\n\n![A cat](https://docs.example.test/guide/i.png)\n',
  ],
  ['images inside the page', '<h1>A</h1><img src="data:image/png;base64,AA" alt="A cat">', '# A\n\nA cat\n'],
  [
    'code with its language',
    '<h1>A</h1><div class="highlight-source-js"><pre><code>let a = 1\nlet b</code></pre></div>',
    '# A\n\n```js\nlet a = 1\nlet b\n```\n',
  ],
  [
    'code whose lines end with elements',
    '<h1>A</h1><pre class="language-sh"><code><span>one<br></span><span>two<br></span></code></pre>',
    '# A\n\n```sh\none\ntwo\n```\n',
  ],
  ['code that holds a fence', '<h1>A</h1><pre>```\nx\n```</pre>', '# A\n\n````\n```\nx\n```\n````\n'],
  [
    'tables, with and without a head',
    '<h1>A</h1><table><tr><td>a</td><td>b | c</td></tr><tr><td>1</td><td>2</td></tr></table>',
    '# A\n\n| a | b \\| c |\n| --- | --- |\n| 1 | 2 |\n',
  ],
  [
    'terms and their meaning',
    '<h1>A</h1><dl><dt>id</dt><dd>Its name.</dd><dt>b</dt><dd>c</dd></dl>',
    '# A\n\nid: Its name.\n\nb: c\n',
  ],
  ['names with underscores', '<h1>A</h1><p>not_found _x_</p>', '# A\n\nnot_found \\_x\\_\n'],
  ['what is struck', '<h1>A</h1><p><del>old</del> new</p>', '# A\n\n~~old~~ new\n'],
  ['nothing but a description', '<div id="app"></div><script>x()</script>', '# Guide\n'],
])('%s', (_what, body, markdown) => {
  expect(convert(body)).toBe(markdown)
})

test('a base element moves relative links', () => {
  expect(convert('<h1>A</h1><a href="x">x</a>', '<base href="/other/">')).toContain(
    '(https://docs.example.test/other/x)',
  )
})

test('menus, scripts, styles and what is hidden are left out; the content is not', () => {
  const markdown = convert(
    `<header><nav><a href="/">Home</a></nav></header>
     <main><h1>Start<a class="anchor" href="#start">#</a></h1><p>The content has to be here.</p>
     <aside>A note that belongs to it.</aside><button>Copy</button><h2><button>Question</button></h2></main>
     <aside>Advertisement</aside><footer>Imprint</footer><script>let x</script><style>p{}</style><p hidden>unseen</p>`,
  )
  expect(markdown).toBe('# Start\n\nThe content has to be here.\n\nA note that belongs to it.\n\n## Question\n')
})

test('what is called main but holds next to nothing does not hide the rest', () => {
  const article = `<p>${'Every one of these sentences matters. '.repeat(20)}</p>`
  expect(convert(`<main><p>Loading</p></main><div>${article}</div>`)).toContain('Every one of these sentences matters.')
})

test('a page that would become endless by its links is refused', () => {
  const address = `https://docs.example.test/${'long/'.repeat(400)}`
  expect(() => pageToMarkdown(page('<a href="x">x</a> '.repeat(5000)), address)).toThrow('2000000 characters')
})

const TEXTS: Readonly<Record<string, string>> = {
  English: 'When the answer arrives, every worker of every edge already serves the new version of the page. ',
  German:
    'Wenn die Antwort kommt, liefern alle Knoten bereits die neue Fassung der Seite mit Umlauten wie ü und ß aus. ',
  Russian: 'Когда приходит ответ, все узлы уже показывают новую версию страницы. ',
  Chinese: '当响应到达时，每个边缘节点都已经提供了新版本的页面，访问者不需要等待。',
  Japanese: '応答が届いたとき、すべてのエッジはすでに新しいバージョンのページを配信しています。',
  Korean: '응답이 도착하면 모든 엣지가 이미 새 버전의 페이지를 제공하고 있습니다. ',
  Arabic: 'عندما تصل الإجابة تكون جميع الخوادم قد بدأت بعرض النسخة الجديدة من الصفحة. ',
  Hindi: 'जब उत्तर आता है, तब तक हर सर्वर पृष्ठ का नया संस्करण दिखा रहा होता है। ',
  code: 'const answer = await fetch(`${base}/api/v1/sites/${id}`, { headers: { accept: "text/markdown" } })\n',
  table: '| name | value |\n| --- | --- |\n| alpha | 1024 |\n| beta | [link](https://docs.example.test/a/b) |\n',
}

test.each(Object.entries(TEXTS))(
  'the number of tokens is told within half of what a model counts: %s',
  (_name, text) => {
    const counted = countTokens(text.repeat(20))
    const told = estimateTokens(text.repeat(20))
    expect(told / counted).toBeGreaterThan(0.5)
    expect(told / counted).toBeLessThan(1.5)
  },
)
