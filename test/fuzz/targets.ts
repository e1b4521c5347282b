/** What is fuzzed without a running service. Each takes any bytes: it may refuse them with an error of the catalogue. */
import { rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { inspectArchive } from '../../control/drops/publishing/archive/gate.ts'
import { scanHtml } from '../../control/drops/publishing/html/scan.ts'
import { cssLinks, decodeLinks, encodeLinks, htmlLinks } from '../../control/drops/publishing/analysis/links.ts'
import { renderMarkdown } from '../../control/drops/publishing/markdown/markdown.ts'
import { pathProblem } from '../../control/drops/publishing/files/paths.ts'
import { quotePath } from '../../shared/values/quoted-path.ts'
import { parseSiteRules } from '../../control/drops/publishing/manifest/site-rules.ts'
import { isHtml } from '../../control/drops/publishing/files/pasted-text.ts'
import { requireJsonShape } from '../../control/ground/http/bodies/json-shape.ts'
import { walkMultipart } from '../../control/ground/http/bodies/multipart.ts'
import { parseCookies } from '../../control/ground/http/server/request.ts'
import { inspectPage } from '../../control/drops/trust/phishing.ts'
import { readRequestHead } from '../../edge/accept/http1/request-head.ts'
import { readPath } from '../../edge/locate/request-path.ts'
import { chooseLanguage } from '../../edge/rewrite/language.ts'
import { chooseEncoding } from '../../edge/rewrite/negotiate.ts'
import { evaluate } from '../../edge/send/preconditions.ts'
import { ApiError } from '../../shared/contracts/errors.ts'
import { headerRuleSchema, redirectRuleSchema } from '../../shared/contracts/manifest.ts'
import { compilePattern, compileDestination } from '../../shared/content/path-pattern.ts'
import { createPatternSet } from '../../shared/content/pattern-set.ts'
import { readByNode } from '../support/read-by-node.ts'
import { rawZip } from '../support/raw-zip.ts'

export interface Target {
  readonly name: string
  /** Longer inputs are cut. Chosen so that an honest input of this size takes a few milliseconds. */
  readonly maxBytes: number
  readonly seeds: readonly (string | Uint8Array)[]
  /** Pieces that random bytes hardly ever form. */
  readonly words: readonly string[]
  /** Throws when the input shows a fault. */
  run(input: Buffer): unknown
}

/** Something that must hold did not. */
export class Broken extends Error {}

function require(condition: boolean, what: string): void {
  if (!condition) throw new Broken(what)
}

/** An error of the catalogue with a 4xx is an answer. */
async function refusing(work: () => unknown): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error
  }
}

const HEADER = { maxBytes: 16_000 }
const VARIANT = { hash: '0'.repeat(64), size: 1 }

export const targets: readonly Target[] = [
  {
    name: 'html',
    maxBytes: 50_000,
    seeds: [
      '<!doctype html><html><head><title>a</title><meta charset=utf-8></head><body><p>x</p></body></html>',
      '<svg><desc><p></svg><math><mi><b></math><template><body></template><frameset>',
      '<script><!--<script></script>--></script><style></style><!-- --!><![CDATA[x]]><?a?></>',
      `<base href="/a/"><a href="b?c#d"><img srcset="a 1x, b 2x"><meta http-equiv=content-security-policy content="x">`,
    ],
    words: [
      ...['<!--', '-->', '--!>', '<script', '</script>', '<svg>', '</svg>', '<template>', '</template>', '<title>'],
      ...['</head>', '<body', '</body>', '</html>', '<frameset>', '<![CDATA[', ']]>', 'href="', 'content="', '&#x'],
    ],
    run(input) {
      const scan = scanHtml(input)
      require(scan.head >= 0 && scan.head <= input.length, 'the head ends inside the page')
      require(scan.body === null ||
        (scan.body >= scan.head && scan.body <= input.length), 'the body ends after the head')
      for (const { start, end } of scan.csp) require(start <= end && end <= input.length, 'a policy is inside the page')
      const links = htmlLinks('a/b.html', scan)
      const encoded = encodeLinks(links)
      const sorted = encoded === undefined ? [] : decodeLinks(encoded).local
      require(sorted.length === links.local.length, 'links survive their encoding')
    },
  },
  {
    name: 'css',
    maxBytes: 50_000,
    seeds: ['a{b:url("c.png")} @import "d.css"; /* url(e) */ f{g:url( h )}'],
    words: ['url(', '@import', '/*', '*/', '"', "'", '\\', ')', '\n'],
    run: (input) => cssLinks('a.css', input.toString()),
  },
  {
    name: 'markdown',
    // micromark takes a hundred times as long as a parser of ours for each character: inputs stay short.
    maxBytes: 600,
    seeds: [
      '# a\n\n*b* **c** [d](e)\n\n- f\n  - g\n\n| h | i |\n|---|---|\n| j | k |\n\n```js\nl\n```\n',
      '---\na: b\n---\n# c',
    ],
    words: ['**', '[', '](', '![', '```', '> ', '- ', '1. ', '|', '---\n', '<a', '&amp;', '[^1]', '~~', '\\'],
    run: (input) => refusing(() => renderMarkdown(input.toString())),
  },
  {
    name: 'pasted-text',
    maxBytes: 50_000,
    seeds: ['<!-- a --><div>', '<!doctype html>', '# a'],
    words: ['<!--', '-->', '<div', '\ufeff', ' '],
    run: (input) => isHtml(input.toString()),
  },
  {
    name: 'rules',
    maxBytes: 20_000,
    seeds: ['/a /b 301\n/c/* /d/:splat 200!\n/e/:f /g?h=:f', '/*\n  Cache-Control: a\n  ! X-B\n/c/*\n  Link: <d>'],
    words: ['/*', '/:a', ':splat', ' 301', ' 200!', '\n', '  X-A: b', 'Cache-Control: ', '! ', '#', '%2F', 'https://'],
    run(input) {
      const text = input.toString()
      const { redirects, headers } = parseSiteRules({ redirects: text, headers: text })
      for (const rule of redirects) redirectRuleSchema.parse(rule)
      for (const rule of headers) headerRuleSchema.parse(rule)
    },
  },
  {
    name: 'path-patterns',
    maxBytes: 4000,
    seeds: ['/a/:b\n/c/*\n/d\n/*/e\n\n/a/x', '/:a/:b/c\n/x*y\n\n/1/2/c'],
    words: ['/*', '/:a', '/:b', '\n', '/', '%2F', 'é'],
    run(input) {
      const lines = input.toString().split('\n')
      const path = `/${lines.pop()}`.replace(/\/{2,}/g, '/')
      const patterns = lines.slice(0, 200).flatMap((line) => {
        const pattern = compilePattern(line)
        return 'problem' in pattern ? [] : [pattern]
      })
      const expected = patterns.flatMap((pattern, index) => (pattern.match(path) ? [index] : []))
      require(createPatternSet(patterns).matching(path).join() === expected.join(), 'the set agrees with each pattern')
      for (const pattern of patterns.slice(0, 20)) {
        const destination = compileDestination('/to/:splat/:a?q=:b', pattern.names)
        const values = pattern.match(path)
        if (values && 'location' in destination)
          require(/^\/(?!\/)[\x21-\x7e]*$/.test(destination.location(values)), 'one slash, ASCII')
      }
    },
  },
  {
    name: 'request-path',
    ...HEADER,
    seeds: ['/', '/a/b%20c?d=e', '//a', '/%2e%2e/a', 'https://a/b', '/\\a', '/%00', '/é'],
    words: ['%2F', '%2e', '..', '//', '\\', '%', '?', '#', 'https://', '\u0301'],
    run(input) {
      const read = readPath(input.toString('latin1'))
      if (read.kind !== 'path') return
      require(read.path.startsWith('/') && !read.path.includes('//'), 'one slash at a time')
      require(!read.path.split('/').some((segment) => segment === '.' || segment === '..'), 'no dot segments')
    },
  },
  {
    name: 'request-head',
    ...HEADER,
    seeds: [
      'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
      'HEAD /a?b HTTP/1.1\r\nhost: a\r\nCookie: a=1\r\nConnection: keep-alive\r\n\r\n',
      'GET / HTTP/1.0\r\nHost: a\r\nConnection: close\r\n\r\n',
    ],
    words: [
      ...['GET ', 'HEAD ', ' HTTP/1.1', '\r\n', '\r\n\r\n', '\n', ': ', '\t', 'Host: ', 'Connection: keep-alive'],
      ...['Content-Length: ', 'Transfer-Encoding: chunked', 'Upgrade: ', ' HTTP/1.0', 'Connection: close'],
    ],
    /** What the edge reads itself is one request for node:http as well, and the same. */
    async run(input) {
      const head = readRequestHead(input)
      if (head === undefined) return
      const { requests, keepsAlive, isBroken } = await readByNode(input)
      const [request] = requests
      require(!isBroken && requests.length === 1 && request?.complete === true, 'it is one whole request')
      require(request?.method === head.method && request.url === head.target, 'it asks for the same')
      require(head.isLast !== keepsAlive[0], 'its connection goes on, or ends')
      for (const [name, value] of Object.entries(request?.headers ?? {}))
        require(head.header(name) === value, `${name} is the same`)
    },
  },
  {
    name: 'file-path',
    maxBytes: 3000,
    seeds: ['a/b.html', '../a', 'C:\\a', 'a//b'],
    words: ['../', '/', '\\', '\u0000', '\u202e'],
    run(input) {
      const text = input.toString()
      pathProblem(text)
      require(quotePath(text).length <= 130, 'a quoted path is short')
    },
  },
  {
    name: 'zip',
    maxBytes: 20_000,
    seeds: [
      rawZip([
        { name: 'index.html', data: '<h1>x</h1>' },
        { name: 'a/b.txt', data: 'y', method: 8 },
      ]),
      rawZip([{ name: 'a/' }, { name: 'a/é.txt', data: 'z', flags: 0x800 }]),
    ],
    words: ['PK\x01\x02', 'PK\x03\x04', 'PK\x05\x06', 'PK\x06\x06', 'PK\x06\x07', '\xff\xff\xff\xff', '\x00\x00'],
    async run(input) {
      const file = path.join(os.tmpdir(), `dropway-fuzz-${process.pid}.zip`)
      await writeFile(file, input)
      await refusing(() => inspectArchive(file, { capBytes: 1_000_000, maxFiles: 20_000 })).finally(() =>
        rm(file, { force: true }),
      )
    },
  },
  {
    name: 'multipart',
    maxBytes: 20_000,
    seeds: [
      '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nc\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="d.html"\r\nContent-Type: text/html\r\n\r\ne\r\n--b--\r\n',
    ],
    words: [
      '--b',
      '\r\n',
      '--b--\r\n',
      'Content-Disposition: form-data; ',
      'name="',
      'filename="',
      "filename*=utf-8''%41",
    ],
    async run(input) {
      const middle = Math.floor(input.length / 2)
      const body = Readable.from(
        [input.subarray(0, middle), input.subarray(middle)].filter((chunk) => chunk.length > 0),
      )
      await refusing(() =>
        walkMultipart(
          body,
          { 'content-type': 'multipart/form-data; boundary=b' },
          async (part) => {
            if (part.kind !== 'field') for await (const chunk of part.stream) void chunk
          },
          { contentField: 'a' },
        ),
      )
    },
  },
  {
    name: 'cookie',
    ...HEADER,
    seeds: ['a=b; c="d"', '__Host-session=x', '; ;=;a'],
    words: ['; ', '=', '"', '__Host-', '%'],
    run: (input) => parseCookies(input.toString('latin1')),
  },
  {
    name: 'range',
    ...HEADER,
    seeds: ['bytes=0-1', 'bytes=-5', 'bytes=1-,3-4', 'bytes=0-0, -1'],
    words: ['bytes=', '-', ',', ' ', '99999999999999999999', 'W/"', '"', '*'],
    run(input) {
      const text = input.toString('latin1')
      const representation = { etag: '"e"', size: 1000 }
      const asked = { method: 'GET', ifRange: undefined, ifMatch: text, ifNoneMatch: text, range: text }
      evaluate(asked, representation)
      const outcome = evaluate({ ...asked, ifMatch: undefined, ifNoneMatch: undefined }, representation)
      if (outcome.kind !== 'ranges') return
      for (const { start, end } of outcome.ranges)
        require(0 <= start && start <= end && end < 1000, 'a range is inside')
    },
  },
  {
    name: 'accept',
    ...HEADER,
    seeds: ['gzip, br;q=0.5', '*;q=0', 'de-CH, de;q=0.9, *;q=0.1'],
    words: [';q=', ',', '*', 'gzip', 'identity', 'zstd', '-', '0.0001', 'en'],
    run(input) {
      const text = input.toString('latin1')
      chooseEncoding(text, { br: VARIANT, gzip: VARIANT, zstd: VARIANT })
      chooseLanguage(text)
    },
  },
  {
    name: 'json',
    maxBytes: 50_000,
    seeds: ['{"a":[1,2,{"b":"c\\"d"}]}', '[]', '"\\\\"'],
    words: ['[', ']', '{', '}', '"', '\\"', '\\\\', ',', ':'],
    run(input) {
      let value: unknown
      try {
        value = JSON.parse(input.toString())
      } catch {
        // What is no JSON may be found fit or unfit; it only must not fail in another way.
        return refusing(() => requireJsonShape(input))
      }
      const bounds = { maxDepth: 16, maxValues: Infinity }
      const isDeep = depthOf(value) > bounds.maxDepth
      let isRefused = false
      try {
        requireJsonShape(input, bounds)
      } catch {
        isRefused = true
      }
      return require(isRefused === isDeep, 'exactly what is too deep is refused')
    },
  },
  {
    name: 'phishing',
    maxBytes: 50_000,
    seeds: ['<form action="https://a"><input type=password> paypal verify your account'],
    words: ['<input ', '<form ', 'type=password', 'action=', '<script>', '</script>', 'alt="', ' '],
    run: (input) => inspectPage(input),
  },
]

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}
