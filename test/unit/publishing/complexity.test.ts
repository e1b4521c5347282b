/** Every parser of publishing takes time linear in what a stranger sends, up to the largest that is let in. */
import { describe, expect, test } from 'vitest'
import { isHtml } from '../../../control/doors/dashboard/publish/pasted-text.ts'
import { scanHtml } from '../../../control/drops/publishing/html/scan.ts'
import { decodeReferences, shorten } from '../../../control/drops/publishing/html/text.ts'
import { cssLinks, htmlLinks } from '../../../control/drops/publishing/analysis/links.ts'
import { textOf, withoutFrontMatter } from '../../../control/drops/publishing/markdown/markdown.ts'
import { PathSet, pathProblem, quotePath } from '../../../control/drops/publishing/files/paths.ts'
import { parseHeaders, parseRedirects } from '../../../control/drops/publishing/manifest/site-rules.ts'
import { inspectPage } from '../../../control/drops/trust/phishing.ts'
import { toNfc } from '../../../shared/nfc.ts'
import { plans } from '../../../shared/plans.ts'
import { growthProblem } from '../../support/complexity.ts'

/** The largest that a stranger may send. Pages of accounts are read up to eight times of it, in the same way. */
const ANONYMOUS = plans.anonymous.uploadBytes
/** Rule files are read up to a megabyte. */
const RULE_FILE = 1_000_000

/** `text` again and again, `n` characters in all. */
function fill(text: string, n: number): string {
  return text.repeat(Math.ceil(n / text.length)).slice(0, n)
}

/** Openings, then as many endings that fit none of them. */
function halves(first: string, second: string) {
  return (n: number): string => fill(first, n / 2) + fill(second, n / 2)
}

const repeated =
  (text: string, tail = '') =>
  (n: number): string =>
    fill(text, n) + tail

const PAGES: Readonly<Record<string, (n: number) => string>> = {
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
  'dots in a link': (n) => `<a href="${fill('../', n)}">`,
  'blanks around links': (n) => fill(`<a href="${fill(' ', 1000)}x${fill(' ', 1000)}">`, n),
  'percent signs in links': (n) => fill(`<a href="/${fill('%25', 900)}">`, n),
}

const STYLES: Readonly<Record<string, (n: number) => string>> = {
  'comments that never end': repeated('/* '),
  'comment starts without an end': repeated('/*/'),
  'url( that never closes': repeated('url('),
  'url( and blanks': repeated('url(          '),
  'strings that never close': repeated('url("'),
  'strings over lines': repeated('"\n'),
  imports: repeated('@import  '),
  'escaped quotes': repeated('\\"'),
}

describe('pages', () => {
  test.each(Object.entries(PAGES))('%s', { timeout: 120_000 }, (_name, make) => {
    const problem = growthProblem((n) => {
      const bytes = Buffer.from(make(n))
      return () => htmlLinks('a/b/index.html', scanHtml(bytes))
    }, ANONYMOUS)
    expect(problem).toBeUndefined()
  })
})

describe('stylesheets', () => {
  test.each(Object.entries(STYLES))('%s', { timeout: 120_000 }, (_name, make) => {
    expect(
      growthProblem((n) => {
        const css = make(n)
        return () => cssLinks('a.css', css)
      }, ANONYMOUS),
    ).toBeUndefined()
  })
})

describe('texts', () => {
  const TEXTS: Readonly<Record<string, [(n: number) => string, (text: string) => unknown, number]>> = {
    'pasted text of empty comments': [repeated('<!---->', 'x'), isHtml, ANONYMOUS],
    'pasted text of comment starts': [repeated('<!--'), isHtml, ANONYMOUS],
    'pasted text of blanks': [repeated(' \ufeff'), isHtml, ANONYMOUS],
    'pasted text with one long tag': [(n) => `<div${fill(' a', n)}`, isHtml, ANONYMOUS],
    'marks of two kinds': [(n) => `a${halves('\u0301', '\u0323')(n)}`, toNfc, ANONYMOUS],
    'just not too many marks': [repeated(`a${'\u0323\u0301'.repeat(15)}`), toNfc, ANONYMOUS],
    ampersands: [repeated('&#'), decodeReferences, ANONYMOUS],
    'digits of a reference': [repeated('&#1111111'), decodeReferences, ANONYMOUS],
    'blanks in a long text': [repeated('  \n'), (text) => shorten(text, 200), ANONYMOUS],
    'front matter that never ends': [(n) => `---\n${fill('    a\n', n)}`, withoutFrontMatter, ANONYMOUS],
    'front matter of blanks': [(n) => `---\n${fill(' ', n)}`, withoutFrontMatter, ANONYMOUS],
    'front matter of dashes': [repeated('---\n'), withoutFrontMatter, ANONYMOUS],
    'less-than signs in a heading': [repeated('<'), textOf, ANONYMOUS],
    'a path of slashes': [repeated('a/'), pathProblem, ANONYMOUS],
    'a path of control characters in a message': [repeated('\u0001'), quotePath, ANONYMOUS],
  }
  test.each(Object.entries(TEXTS))('%s', { timeout: 120_000 }, (_name, [make, work, largest]) => {
    expect(
      growthProblem((n) => {
        const text = make(n)
        return () => work(text)
      }, largest),
    ).toBeUndefined()
  })

  test('names of one upload', () => {
    expect(
      growthProblem((n) => {
        const names = Array.from({ length: n }, (_, index) => `${fill('a/', 60)}${index}`)
        return () => {
          const set = new PathSet()
          for (const name of names) set.add(name)
        }
      }, 20_000),
    ).toBeUndefined()
  })
})

describe('rule files', () => {
  const lines =
    (line: (index: number) => string) =>
    (n: number): string => {
      const one = line(0).length + 1
      return Array.from({ length: Math.ceil(n / one) }, (_, index) => line(index)).join('\n')
    }
  const blanks = fill(' ', 1980)
  const marks = halves('\u0301', '\u0323')(1900)
  const REDIRECTS: Readonly<Record<string, (n: number) => string>> = {
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
  test.each(Object.entries(REDIRECTS))('_redirects: %s', { timeout: 120_000 }, (_name, make) => {
    expect(
      growthProblem((n) => {
        const text = make(n)
        return () => parseRedirects(text)
      }, RULE_FILE),
    ).toBeUndefined()
  })

  const HEADERS: Readonly<Record<string, (n: number) => string>> = {
    'many headers under one path': (n) => `/*\n${lines((index) => `  x-${index}: a`)(n)}`,
    'the same header under one path': (n) => `/*\n${lines(() => '  cache-control: a')(n)}`,
    'blanks before a value': lines((index) => `/${index}\n  x-a:${blanks}b`),
    'lines that are not indented': lines(() => 'x-a: b'),
    'many paths': lines((index) => `/${index}\n  x-a: b`),
    'one line': repeated('a:'),
  }
  test.each(Object.entries(HEADERS))('_headers: %s', { timeout: 120_000 }, (_name, make) => {
    expect(
      growthProblem((n) => {
        const text = make(n)
        return () => parseHeaders(text)
      }, RULE_FILE),
    ).toBeUndefined()
  })
})

describe('the phishing heuristic', () => {
  const SUSPECTS: Readonly<Record<string, (n: number) => string>> = {
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
  test.each(Object.entries(SUSPECTS))('%s', { timeout: 120_000 }, (_name, make) => {
    expect(
      growthProblem((n) => {
        const page = Buffer.from(make(n))
        return () => inspectPage(page)
      }, ANONYMOUS),
    ).toBeUndefined()
  })
})
