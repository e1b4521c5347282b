/** The worst inputs of every parser of publishing, up to the largest that is let in. */
import { immutablePaths } from '../../../control/drops/publishing/manifest/immutable.ts'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { isHtml } from '../../../control/drops/publishing/files/pasted-text.ts'
import { scanHtml } from '../../../control/drops/publishing/html/scan.ts'
import { decodeReferences, shorten } from '../../../control/drops/publishing/html/text.ts'
import { cssLinks, encodeLinks, htmlLinks } from '../../../control/drops/publishing/analysis/links.ts'
import { textOf } from '../../../control/drops/publishing/html/text.ts'
import { requireRenderable } from '../../../control/drops/publishing/markdown/budget.ts'
import { withoutFrontMatter } from '../../../control/drops/publishing/markdown/front-matter.ts'
import { PathSet, pathProblem } from '../../../control/drops/publishing/files/paths.ts'
import { textOfPage } from '../../../control/drops/publishing/analysis/page-words.ts'
import { wordsOf } from '../../../control/drops/publishing/analysis/words.ts'
import { likeness, placeWithout } from '../../../control/drops/publishing/comparison/anchors.ts'
import { similarSlugs } from '../../../shared/values/readable-slug.ts'
import { quotePath } from '../../../shared/values/quoted-path.ts'
import {
  translateHostFile,
  MAX_HOST_FILE_BYTES,
} from '../../../control/drops/publishing/manifest/other-hosts/translate.ts'
import { parseIgnore } from '../../../cli/content/ignore/ignore.ts'
import { keyIn } from '../../../shared/content/private-key.ts'
import { parseHeaders, parseRedirects, type SiteRules } from '../../../control/drops/publishing/manifest/site-rules.ts'
import { MAX_SCANNED_BYTES } from '../../../control/drops/publishing/analysis/analyse.ts'
import { writeReport, type ReportInput } from '../../../control/drops/publishing/analysis/report.ts'
import { diffLines } from '../../../control/drops/publishing/comparison/text-diff.ts'
import { inspectArchive } from '../../../control/drops/publishing/archive/gate.ts'
import { walkMultipart } from '../../../control/ground/http/bodies/multipart.ts'
import { parseCookies } from '../../../control/ground/http/server/request.ts'
import { MAX_BUNDLE_FILES } from '../../../shared/contracts/limits.ts'
import { inspectPage } from '../../../control/drops/trust/phishing.ts'
import { toNfc } from '../../../shared/values/nfc.ts'
import { plans } from '../../../control/ground/terms/plans.ts'
import { IS_DEEP } from '../../support/depth.ts'
import { rawZip } from '../../support/raw-zip.ts'
import { fill, grouped, halves, repeated, workCase, type WorkCase } from '../../support/counting/cases.ts'

/** The largest that a stranger may send. */
/** Characters of a file of rules. Counting a longer one takes seconds of a core, which a deep run has. */
const RULES_COUNTED = IS_DEEP ? 65_536 : 16_384
const ANONYMOUS = plans.anonymous.uploadBytes
/** Rule files are read up to a megabyte. */
const RULE_FILE = 1_000_000

type Makers = Readonly<Record<string, (n: number) => string>>
const bytesOf =
  (make: (n: number) => string) =>
  (n: number): Buffer =>
    Buffer.from(make(n))

/** One case for each maker, all read in the same way. */
function each(
  group: string,
  makers: Makers,
  caseOf: (make: (n: number) => string) => WorkCase,
): Record<string, WorkCase> {
  return grouped(group, Object.fromEntries(Object.entries(makers).map(([name, make]) => [name, caseOf(make)])))
}

const PAGES: Makers = {
  'open elements of an SVG, then end tags of none': (n) => `<svg>${halves('<g>', '</x>')(n)}`,
  'integration points and end tags of none': (n) => `<svg>${halves('<desc><svg>', '</x>')(n)}`,
  'comments that end with a bang': repeated('<!----!>'),
  'comments of dashes': repeated('<!-----'),
  'one comment that never ends': repeated('-', '<!--'),
  'comments that never end, inside scripts': repeated('<script><!--</script>'),
  'scripts inside comments inside scripts': repeated('<script><!--<script></script>'),
  'script starts': repeated('<script'),
  'raw text that nearly ends': (n) => `<title>${fill('</titl', n)}`,
  'templates in templates': repeated('<template>'),
  'attributes in one tag': (n) => `<a ${fill('b=c ', n)}>`,
  'different attributes in one tag': (n) =>
    `<a ${Array.from({ length: n / 8 }, (_, index) => `a${index}=1`).join(' ')}>`,
  'quotes that never close': repeated('<a b="'),
  'processing instructions': repeated('<?'),
  'end tags without names': repeated('</'),
  'CDATA in SVG': (n) => `<svg>${fill('<![CDATA[', n)}`,
  'bare less-than signs': repeated('<'),
  'policies in metas': repeated(`<meta http-equiv=content-security-policy content="script-src 'self'">`),
  'a charset that never comes': (n) => `<meta http-equiv=content-type content="charset=${fill(' ', n)}">`,
  'charsets in one meta': (n) => `<meta http-equiv=content-type content="${fill('charset = ', n)}">`,
  'blanks in a title': (n) => `<title>${fill(' \n', n)}</title>`,
  'references in a title': (n) => `<title>${fill('&#1;&amp', n)}</title>`,
  'commas in a srcset': (n) => `<img srcset="${fill(', ', n)}">`,
  'marks above one letter in a link': (n) => `<a href="/a${halves('\u0301', '\u0323')(n)}">`,
  'many links with marks': (n) => fill(`<a href="/a${halves('\u0301', '\u0323')(500)}">`, n),
  'a long base and many links': (n) => `<base href="/${fill('a/', n / 2)}">${fill('<a href=x>', n / 2)}`,
  'words in a rel': (n) => `<link href=a rel="${fill('next ', n)}">`,
  'selects and drawings that shield them': repeated('<select><svg></select>'),
  'dots in a link': (n) => `<a href="${fill('../', n)}">`,
  'blanks around links': (n) => fill(`<a href="${fill(' ', 1000)}x${fill(' ', 1000)}">`, n),
  'percent signs in links': (n) => fill(`<a href="/${fill('%25', 900)}">`, n),
}

const STYLES: Makers = {
  'comments that never end': repeated('/* '),
  'comment starts without an end': repeated('/*/'),
  'url( that never closes': repeated('url('),
  'url( and blanks': repeated('url(          '),
  'strings that never close': repeated('url("'),
  'strings over lines': repeated('"\n'),
  imports: repeated('@import  '),
  'escaped quotes': repeated('\\"'),
}

const TEXTS: Readonly<Record<string, [(n: number) => string, (text: string) => unknown]>> = {
  'pasted text of empty comments': [repeated('<!---->', 'x'), isHtml],
  'pasted text of comment starts': [repeated('<!--'), isHtml],
  'pasted text of links that never end': [(n) => `<p>\n${fill('[', n)}`, isHtml],
  'pasted text of lines of verbatim starts': [(n) => `<p>\n${fill('<pre\n', n)}`, isHtml],
  'pasted text of blanks': [repeated(' \ufeff'), isHtml],
  'pasted text with one long tag': [(n) => `<div${fill(' a', n)}`, isHtml],
  'marks of two kinds': [(n) => `a${halves('\u0301', '\u0323')(n)}`, toNfc],
  'marks of two kinds in words to find a page by': [(n) => `a${halves('\u0301', '\u0323')(n)}`, wordsOf],
  'words to find a page by, without spaces': [repeated('\u6f22'), wordsOf],
  'words to find a page by': [(n) => Array.from({ length: n / 8 }, (_, index) => `word${index}`).join(' '), wordsOf],
  'tags between words to find a page by': [repeated('<b>a</b><p>'), (text) => textOfPage(Buffer.from(text))],
  'verbatim text that never ends between words': [repeated('<title>'), (text) => textOfPage(Buffer.from(text))],
  'marks of two kinds in a wanted address': [(n) => `a${halves('\u0301', '\u0323')(n)}`, similarSlugs],
  'a quote of one word, looked for in a page': [
    (n) => fill('a ', n),
    (text) => placeWithout([{ tag: 'p', text, line: 1 }], { exact: fill('a ', 200), prefix: 'b', suffix: 'b' }),
  ],
  'how alike two texts are': [(n) => fill('a b ', n), (text) => likeness(text, text)],
  'just not too many marks': [repeated(`a${'\u0323\u0301'.repeat(15)}`), toNfc],
  ampersands: [repeated('&#'), decodeReferences],
  'digits of a reference': [repeated('&#1111111'), decodeReferences],
  'blanks in a long text': [repeated('  \n'), (text) => shorten(text, 200)],
  'front matter that never ends': [(n) => `---\n${fill('    a\n', n)}`, withoutFrontMatter],
  'front matter of blanks': [(n) => `---\n${fill(' ', n)}`, withoutFrontMatter],
  'front matter of dashes': [repeated('---\n'), withoutFrontMatter],
  'less-than signs in a heading': [repeated('<'), textOf],
  'a path of slashes': [repeated('a/'), pathProblem],
  'a path of control characters in a message': [repeated('\u0001'), quotePath],
}
const lines =
  (line: (index: number) => string) =>
  (n: number): string => {
    const one = line(0).length + 1
    return Array.from({ length: Math.ceil(n / one) }, (_, index) => line(index)).join('\n')
  }
const blanks = fill(' ', 1980)
const marks = halves('\u0301', '\u0323')(1900)
const REDIRECTS: Makers = {
  'blanks before what is no comment': lines((index) => `/a${index}${blanks}b`),
  'blanks after blanks': lines((index) => `/a${index} ${blanks}`),
  'marks in the path': lines((index) => `/a${index}${marks} /b`),
  'marks in the target': lines((index) => `/a${index} /b${marks}`),
  'slashes after a splat': lines((index) => `/*/:a/:b${fill('/x', 1800)}/${index} /c`),
  'splats into itself': lines((index) => `/*/:a/:b${fill('/x', 800)}/${index} /y/:a/:b${fill('/x', 800)}`),
  'placeholders in the target': lines((index) => `/${index}/* ${fill('/:splat', 1900)}`),
  'percent signs': lines((index) => `/${index}${fill('%25', 900)} /${fill('%25', 900)}`),
  'colons in the target': lines((index) => `/${index}/:a /${fill(':', 1900)}`),
  'short lines': lines((index) => `/${index} /b`),
  'one line': repeated('/a '),
  'no line at all': repeated('\n'),
}
const HEADERS: Makers = {
  'many headers under one path': (n) => `/*\n${lines((index) => `  x-${index}: a`)(n)}`,
  'the same header under one path': (n) => `/*\n${lines(() => '  cache-control: a')(n)}`,
  'blanks before a value': lines((index) => `/${index}\n  x-a:${blanks}b`),
  'lines that are not indented': lines(() => 'x-a: b'),
  'many paths': lines((index) => `/${index}\n  x-a: b`),
  'one line': repeated('a:'),
}
const SUSPECTS: Makers = {
  'form starts': repeated('<form '),
  'input starts': repeated('<input '),
  'forms that nearly post elsewhere': repeated('<form action="'),
  'meta starts': repeated('<meta '),
  'image starts': repeated('<img '),
  'types that nearly ask': repeated('type= '),
  'script starts': repeated('<script>'),
  'scripts that end late': (n) => `${fill('<script>', n)}</script>`,
  'character codes': repeated('string.fromcharcode(1,'),
  'alternative texts': repeated('alt="'),
  blanks: repeated(' '),
  'equals signs and blanks': repeated('action = '),
}
/** More files need the larger form of a zip, which `rawZip` does not write. */
const MOST_WITHOUT_ZIP64 = 65_535
const ARCHIVES: Readonly<Record<string, (n: number) => Parameters<typeof rawZip>[0]>> = {
  'many files': (n) => Array.from({ length: n }, (_, index) => ({ name: `f${index}.txt`, data: 'x' })),
  'deep folders': (n) => Array.from({ length: n }, (_, index) => ({ name: `${fill('a/', 60)}${index}`, data: 'x' })),
  'names that differ in accents': (n) =>
    Array.from({ length: n }, (_, index) => ({ name: `${fill('e\u0301', 80)}${index}`, data: '', flags: 0x800 })),
  'files that are nothing': (n) => Array.from({ length: n }, (_, index) => ({ name: `f${index}`, data: '' })),
}
const part = (name: string, more = ''): string => `--b\r\nContent-Disposition: form-data; name="${name}"${more}\r\n`
const FORMS: Makers = {
  'one part that nearly ends': (n) => `${part('file', '; filename="a"')}\r\n${fill('\r\n--a', n)}\r\n--b--\r\n`,
  'text that nearly ends': (n) => `${part('text')}\r\n${fill('\r\n--a', n)}\r\n--b--\r\n`,
  'line ends': (n) => `${part('file', '; filename="a"')}\r\n${fill('\r\n', n)}\r\n--b--\r\n`,
  'many small parts': (n) => `${fill(`${part('a')}\r\nx\r\n`, n)}--b--\r\n`,
  'names that never end': (n) => `${part(fill('\\"', n))}\r\nx\r\n--b--\r\n`,
  'part headers': (n) => `${part('a')}${fill('x-a: b\r\n', n)}\r\nx\r\n--b--\r\n`,
}
/** As a socket hands them over. */
function* inChunks(body: Buffer): Generator<Buffer> {
  for (let start = 0; start < body.length; start += 65_536) yield body.subarray(start, start + 65_536)
}

const NO_RULES = { redirects: [], headers: [], invalid: [], hostFiles: [] }
const site = (pages: number, linksOf: (page: number) => string[], rules: Partial<SiteRules> = {}): ReportInput => ({
  files: Array.from({ length: pages }, (_, index) => {
    const page = Buffer.from(
      linksOf(index)
        .map((link) => `<a href="${link}">`)
        .join(''),
    )
    return {
      path: `p${index}.html`,
      size: page.length,
      links: encodeLinks(htmlLinks(`p${index}.html`, scanHtml(page))),
    }
  }),
  rules: { ...NO_RULES, ...rules },
})
const redirects = parseRedirects(
  Array.from({ length: 2000 }, (_, index) => `/old${index}/*/:a /new/:splat`).join('\n'),
).rules
const SITES: Readonly<Record<string, [(n: number) => ReportInput, number]>> = {
  'pages that lead to each other': [
    (n) => site(n, (page) => [0, 1, 2, 3, 4].map((by) => `/p${(page * by) % n}.html`)),
    4000,
  ],
  'links to nowhere': [(n) => site(1, () => Array.from({ length: n }, (_, index) => `/nowhere/${index}`)), 40_000],
  'links and redirect patterns': [
    (n) => site(1, () => Array.from({ length: n }, (_, index) => `/old${index}/${index}/x`), { redirects }),
    20_000,
  ],
  'links full of accents': [
    (n) => site(1, () => Array.from({ length: n }, (_, index) => `/${halves('\u0301', '\u0323')(200)}${index}`)),
    8000,
  ],
  'folders and no first page': [(n) => site(n, () => []), MAX_BUNDLE_FILES],
}

/** micromark itself is bounded by this budget, which `markdown-budget.test.ts` holds against hostile and honest documents. */
const MARKED: Makers = {
  prose: repeated('Some words, a *few* of them **strong**, and [a link](https://a.test/).\n\n'),
  'one paragraph': repeated('words _of_ a **paragraph**\n'),
  lists: repeated('1. a\n   - b\n     - c\n'),
  'lists that nest': (n) => Array.from({ length: Math.sqrt(n) }, (_, level) => `${' '.repeat(level)}- a`).join('\n'),
  'bullets in one line': repeated('- '),
  'quotes in lines': repeated(`${'>'.repeat(90)}a\n`),
  'fences that never close': repeated('```a\n'),
  tables: repeated('| a | b |\n|---|---|\n'),
  blanks: repeated(' '),
  'blank lines': repeated('\n'),
  definitions: repeated('[a]: b\n'),
  'brackets of a definition': repeated('['),
  'lines of dashes': repeated('- - - - - - - - - - - - - - - - -x\n'),
}

const COOKIES = [';', '=', 'a=b; ', '"', '%41=%42;', '; ']

/** Names of one upload. */
function addNames(names: readonly string[]): void {
  const set = new PathSet()
  for (const name of names) set.add(name)
}

let folder: string | undefined
/** Archives are read from files, which go with the process. */
function zipFile(content: Buffer): string {
  if (folder === undefined) {
    const own = (folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-complexity-')))
    process.once('exit', () => rmSync(own, { recursive: true, force: true }))
  }
  const file = path.join(folder, `${content.length}.zip`)
  writeFileSync(file, content)
  return file
}

async function readParts(body: Buffer): Promise<void> {
  const headers = { 'content-type': 'multipart/form-data; boundary=b' }
  const walk = walkMultipart(
    Readable.from(inChunks(body)),
    headers,
    async (given) => {
      if (given.kind !== 'field') for await (const chunk of given.stream) void chunk
    },
    { contentField: 'text' },
  )
  // A form may be refused; it is read in the same time.
  await walk.catch(() => {})
}

/** Cases whose size is a number of things, each of which takes many steps. */
const THINGS = { counted: 400, maxPerUnit: 6000 }

const NAMES: Readonly<Record<string, (index: number) => string>> = {
  'hashed, in one folder': (index) => `assets/${index}-B${String(index).padStart(3, 'x')}k9F2.js`,
  'hashed, each in a folder': (index) => `a${index}/js/app.${(index * 2_654_435_761).toString(16).padStart(8, 'a')}.js`,
  'of separators': () => `${fill('a-', 240)}.js`,
  'of one long number': (index) => `${fill('1a', 240)}${index}.js`,
}

function judgeNames(files: readonly { path: string; hash: string }[]): unknown {
  const paths = new Set(files.map((file) => file.path))
  return immutablePaths(files, { scripts: paths, modules: paths, styles: paths })
}

const KEYS: Makers = {
  marks: repeated('-----BEGIN PRIVATE KEY-----\n'),
  'marks with headers behind them': repeated('-----BEGIN PRIVATE KEY-----\nA: b\nC: d\n'),
  'marks as headers of marks': repeated('-----BEGIN PRIVATE KEY-----\nComment: '),
  'marks that nearly are': repeated('-----BEGIN A A A '),
  'short keys': repeated('-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n'),
  'quotes and spaces behind a mark': (n) => `-----BEGIN PRIVATE KEY-----${fill('" \n', n)}`,
  'one endless key': (n) => `-----BEGIN PRIVATE KEY-----\n${fill('A', n)}`,
}

const TOML: Makers = {
  redirects: repeated('[[redirects]]\nfrom="/a"\nto="/b"\n'),
  'tables in tables': (n) => `[${fill('a.', n)}b]`,
  brackets: (n) => `a=${fill('[', n)}`,
  'one string': (n) => `a="${fill('\\n', n - (n % 2))}"`,
  'a string that never ends': (n) => `a='''${fill("''x", n)}`,
  comments: repeated('# a\n'),
  'keys of one table': (n) => Array.from({ length: n / 8 }, (_, index) => `k${index}=1`).join('\n'),
  blanks: (n) => `a = ${fill(' ', n)}`,
}

const CONFIGS: Makers = {
  'redirects of placeholders': (n) => `{"redirects":[${list(n, '{"source":"/:a/:b*","destination":"/:b*/:a"}')}]}`,
  'redirects of expressions': (n) => `{"redirects":[${list(n, '{"source":"/((((a|b)))","destination":"/"}')}]}`,
  'one long source': (n) => `{"redirects":[{"source":"/${fill(':a', n)}*","destination":"/"}]}`,
  headers: (n) => `{"headers":[{"source":"/(.*)","headers":[${list(n, '{"key":"a","value":"b"}')}]}]}`,
  'unknown settings': (n) => `{${Array.from({ length: n / 16 }, (_, index) => `"k${index}":1`).join(',')}}`,
  brackets: repeated('['),
}
const list = (n: number, one: string): string => Array.from({ length: Math.ceil(n / one.length) }, () => one).join(',')

const LAYOUT = { hasFlatPages: true, hasFolderPages: true }

/** A line of a repository's .dropwayignore, and a path as long as a file system takes. */
const IGNORED: Makers = {
  'stars and letters': repeated('*a'),
  'folders of any depth': (n) => `${fill('**/a/', n - (n % 5))}b`,
  choices: repeated('[ab]*'),
  'classes that never end': repeated('[[:'),
  backslashes: repeated('\\'),
}
const LONG_PATH = `${fill('a/', 255)}c`

export const cases: Readonly<Record<string, WorkCase>> = {
  ...each('private keys', KEYS, (make) => workCase(make, keyIn, { largest: MAX_SCANNED_BYTES, counted: 65_536 })),
  ...each('netlify.toml', TOML, (make) =>
    workCase(make, (text) => translateHostFile('netlify.toml', text, LAYOUT), {
      largest: MAX_HOST_FILE_BYTES,
      counted: 16_384,
    }),
  ),
  ...each('vercel.json', CONFIGS, (make) =>
    workCase(make, (text) => translateHostFile('vercel.json', text, LAYOUT), {
      largest: MAX_HOST_FILE_BYTES,
      counted: 16_384,
    }),
  ),
  ...each('firebase.json', CONFIGS, (make) =>
    workCase(
      (n) => `{"hosting":${make(n)}}`,
      (text) => translateHostFile('firebase.json', text, LAYOUT),
      {
        largest: MAX_HOST_FILE_BYTES,
        counted: 16_384,
      },
    ),
  ),
  'staticwebapp.config.json of routes': workCase(
    (n) => `{"routes":[${list(n, '{"route":"/*.{a,b,c}","redirect":"/x"}')}]}`,
    (text) => translateHostFile('staticwebapp.config.json', text, LAYOUT),
    { largest: MAX_HOST_FILE_BYTES, counted: 16_384 },
  ),
  // A pattern costs its length times that of the path, so each unit of it costs a path.
  ...each('.dropwayignore', IGNORED, (make) =>
    workCase(make, (text) => parseIgnore(text).leavesOut(LONG_PATH, false), {
      largest: 8192,
      counted: 512,
      maxPerUnit: 40 * LONG_PATH.length * LONG_PATH.length,
    }),
  ),
  ...each('page', PAGES, (make) =>
    workCase(bytesOf(make), (page) => htmlLinks('a/b/index.html', scanHtml(page)), { largest: MAX_SCANNED_BYTES }),
  ),
  ...each('stylesheet', STYLES, (make) =>
    workCase(make, (css) => cssLinks('a.css', css), { largest: MAX_SCANNED_BYTES }),
  ),
  ...grouped(
    'text',
    Object.fromEntries(
      Object.entries(TEXTS).map(([name, [make, run]]) => [name, workCase(make, run, { largest: ANONYMOUS })]),
    ),
  ),
  'names of one upload': workCase(
    (n) => Array.from({ length: n }, (_, index) => `${fill('a/', 60)}${index}`),
    addNames,
    { largest: MAX_BUNDLE_FILES, ...THINGS },
  ),
  ...each('names of files', NAMES, (nameOf) =>
    workCase(
      (n) => Array.from({ length: n }, (_, index) => ({ path: nameOf(index), hash: 'ab'.repeat(32) })),
      judgeNames,
      { largest: MAX_BUNDLE_FILES, ...THINGS },
    ),
  ),
  ...each('_redirects', REDIRECTS, (make) =>
    workCase(make, parseRedirects, { largest: RULE_FILE, counted: RULES_COUNTED }),
  ),
  ...each('_headers', HEADERS, (make) => workCase(make, parseHeaders, { largest: RULE_FILE, counted: RULES_COUNTED })),
  ...each('phishing', SUSPECTS, (make) => workCase(bytesOf(make), inspectPage, { largest: MAX_SCANNED_BYTES })),
  ...grouped(
    'archive',
    Object.fromEntries(
      Object.entries(ARCHIVES).map(([name, make]) => [
        name,
        workCase(
          (n) => zipFile(rawZip(make(n))),
          (file) => inspectArchive(file, { capBytes: 1e9, maxFiles: MAX_BUNDLE_FILES }),
          { largest: MOST_WITHOUT_ZIP64, ...THINGS },
        ),
      ]),
    ),
  ),
  ...each('form', FORMS, (make) => workCase(bytesOf(make), readParts, { largest: ANONYMOUS, counted: 131_072 })),
  ...Object.fromEntries(
    COOKIES.map((unit) => [
      `cookies of ${JSON.stringify(unit)}`,
      workCase(repeated(unit), parseCookies, { largest: 16_000 }),
    ]),
  ),
  ...grouped(
    'report',
    Object.fromEntries(
      Object.entries(SITES).map(([name, [make, largest]]) => [
        name,
        workCase(make, (input) => writeReport(input, () => false), { largest, ...THINGS }),
      ]),
    ),
  ),
  'comparison of texts whose lines repeat': workCase(
    (n) => [0, 1].map((version) => `o${version}\n${fill('a\n', n)}${fill(`${version} `, 800)}`),
    ([before, after]) => diffLines(before ?? '', after ?? ''),
    { largest: 200_000, counted: 65_536 },
  ),
  ...each('the budget of Markdown', MARKED, (make) =>
    workCase(
      make,
      (text) => {
        try {
          requireRenderable(text)
        } catch {
          // Refused is judged as well.
        }
      },
      { largest: 3_000_000 },
    ),
  ),
}
