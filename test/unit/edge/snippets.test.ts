import { createHash } from 'node:crypto'
import { Script } from 'node:vm'
import { parse, parseFragment } from 'parse5'
import { describe, expect, test } from 'vitest'
import type { Snippets } from '../../../edge/context.ts'
import { consentTexts } from '../../../edge/rewrite/consent-texts.ts'
import { cutPieces, inject, injectedPieces, sizeOf, type Piece } from '../../../edge/rewrite/inject.ts'
import { languages } from '../../../edge/rewrite/language.ts'
import { createSnippets } from '../../../edge/rewrite/snippets.ts'
import type { Analytics } from '../../../shared/analytics.ts'
import { routeOf } from '../../support/manifests.ts'

const BASE_URL = 'https://dropway.test:8443'
const source = createSnippets({ baseUrl: BASE_URL })

const ga = { google_analytics: { measurement_id: 'G-ABCD1234' } }
const meta = { meta_pixel: { pixel_id: '1234567890' } }
const posthog = { posthog: { project_key: 'phc_abcdefghijklmnop' } }
const plausible = { plausible: { domain: 'example.com' } }

function make(analytics: Analytics | null, options: { badge?: boolean; language?: string } = {}): Snippets | undefined {
  return source.for(routeOf({ analytics, badge: options.badge ?? false }), 'html', options.language)
}

function headOf(analytics: Analytics, language?: string): string {
  return make(analytics, { language })!.head.toString()
}

function elementsOf(markup: string): string[] {
  return parseFragment(markup).childNodes.map((node) => node.nodeName)
}

describe('what is added', () => {
  test('nothing to a drop without badge and analytics', () => {
    expect(make(null)).toBeUndefined()
    expect(make({})).toBeUndefined()
    expect(make({ consent_banner: 'auto' })).toBeUndefined()
  })

  test('a badge with the word dropway, a way home and a way to report', () => {
    const { body, head } = make(null, { badge: true })!
    expect(head.length).toBe(0)
    expect(elementsOf(body.toString())).toEqual(['dropway-badge', 'style'])
    expect(body.toString()).toContain('>dropway</a>')
    expect(body.toString()).toContain(`href="${BASE_URL}/"`)
    expect(body.toString()).toContain(`href="${BASE_URL}/report?url=https%3A%2F%2Fdemo.dropway.test%3A8443%2F"`)
    expect(body.toString()).toContain('@media print')
  })

  test.each<[string, Analytics, readonly string[]]>([
    ['Google Analytics', ga, ['"G-ABCD1234"', 'https://www.googletagmanager.com/gtag/js?id=G-ABCD1234']],
    ['Meta Pixel', meta, ['"1234567890"', 'https://connect.facebook.net/en_US/fbevents.js']],
    [
      'PostHog',
      posthog,
      ['"phc_abcdefghijklmnop"', 'https://us-assets.i.posthog.com/static/array.js', '"https://us.i.posthog.com"'],
    ],
    [
      'PostHog in the EU',
      { posthog: { ...posthog.posthog, host: 'https://eu.i.posthog.com' } },
      ['https://eu-assets.i.posthog.com/static/array.js', '"https://eu.i.posthog.com"'],
    ],
    [
      'a self-hosted PostHog',
      { posthog: { ...posthog.posthog, host: 'https://ph.example.com' } },
      ['https://ph.example.com/static/array.js', '"https://ph.example.com"'],
    ],
    ['Plausible', plausible, ['"data-domain":"example.com"', 'https://plausible.io/js/script.js']],
  ])('%s, with its id literally in the page', (_, analytics, texts) => {
    const head = headOf(analytics)
    for (const text of texts) expect(head).toContain(text)
  })
})

describe('the consent banner', () => {
  const hasBanner = (analytics: Analytics): boolean => headOf(analytics).includes('dw-consent')

  test.each<[Analytics, boolean]>([
    [ga, true],
    [meta, true],
    [posthog, true],
    [{ ...plausible, ...ga }, true],
    [plausible, false],
    [{ ...plausible, consent_banner: 'on' }, true],
    [{ consent_banner: 'on' }, true],
    [{ ...ga, ...meta, consent_banner: 'off' }, false],
  ])('%j: %s', (analytics, expected) => {
    expect(hasBanner(analytics)).toBe(expected)
    expect(make(analytics)!.variesByLanguage).toBe(expected)
  })

  test('does not advertise the service: the badge does that, and only where the plan shows it', () => {
    expect(headOf({ ...ga, ...meta, ...posthog, ...plausible })).not.toMatch(/dropway/i)
  })

  test('speaks twelve languages, in ASCII, so that the charset of the page does not matter', () => {
    expect(languages).toHaveLength(12)
    const seen = new Set<string>()
    for (const language of languages) {
      const head = headOf(ga, language)
      expect(head).toMatch(/^[\n -~]+$/)
      expect(head).toContain(`"lang":"${language}"`)
      const { text } = consentTexts[language]
      seen.add(text)
      const json = /,t=(\{.*?\}),box=/.exec(head)![1]!
      expect(JSON.parse(json)).toEqual({ ...consentTexts[language], lang: language })
    }
    expect(seen.size).toBe(12)
  })

  test('is chosen by accept-language and only then varies', () => {
    expect(make(ga, { language: 'de-DE' })).not.toBe(make(ga, { language: 'fr' }))
    expect(make(plausible, { language: 'de' })).toBe(make(plausible, { language: 'fr' }))
  })
})

describe('the key and the policy', () => {
  test('equal settings share one object; anything else has another key', () => {
    expect(make(ga)).toBe(make(structuredClone(ga)))
    const keys = [
      make(ga),
      make(meta),
      make(plausible),
      make(ga, { badge: true }),
      make(ga, { language: 'de' }),
      make(null, { badge: true }),
    ].map((made) => made!.key)
    expect(new Set(keys).size).toBe(keys.length)
    for (const key of keys) expect(key).toMatch(/^[0-9a-f]{12}$/)
  })

  test('every inline script and style is named by its hash', () => {
    const { head, body, csp } = make({ ...ga, ...plausible }, { badge: true })!
    const inline = (name: string): string[] =>
      [...(head.toString() + body.toString()).matchAll(new RegExp(`<${name}>([\\s\\S]*?)</${name}>`, 'g'))].map(
        ([, text]) => `'sha256-${createHash('sha256').update(text!).digest('base64')}'`,
      )
    expect(inline('script')).toHaveLength(1)
    expect(inline('style')).toHaveLength(2)
    expect(csp.scriptSrc).toEqual([...inline('script'), 'https://www.googletagmanager.com', 'https://plausible.io'])
    expect(csp.styleSrc).toEqual(inline('style'))
  })
})

test('hostile settings, should any get past the schema, stay text', () => {
  const evil = `</script><img src=x onerror=alert(1)>"'\`\${alert(1)}\u2028\n\\`
  const analytics: Analytics = {
    google_analytics: { measurement_id: evil },
    meta_pixel: { pixel_id: evil },
    posthog: { project_key: evil, host: `https://x${evil}` },
    plausible: { domain: evil },
  }
  const made = createSnippets({ baseUrl: `https://d.test/"><script>` }).for(
    routeOf({ analytics, badge: true, host: `"><script>` }),
    'html',
    undefined,
  )!
  expect(elementsOf(made.head.toString())).toEqual(['style', 'script'])
  expect(elementsOf(made.body.toString())).toEqual(['dropway-badge', 'style'])
  const script = /<script>([\s\S]*)<\/script>$/.exec(made.head.toString())![1]!
  // Compiled, not run: it is still one well-formed script.
  expect(() => new Script(script)).not.toThrow()
  expect(script).toMatch(/^[\n -~]+$/)
})

test('in XML every snippet is well-formed, and a policy names the same hashes', () => {
  const analytics = { google_analytics: { measurement_id: 'G-ABC123' } }
  const route = routeOf({ analytics, badge: true })
  const [html, xhtml] = [source.for(route, 'html', 'de')!, source.for(route, 'xhtml', 'de')!]
  expect(xhtml.csp).toEqual(html.csp)
  const scriptIn = ({ head }: Snippets) => /<script>(.*)<\/script>/s.exec(head.toString())![1]!
  expect(xhtml.head.toString() + xhtml.body.toString()).not.toMatch(/&(?!#?\w+;)/)
  expect(scriptIn(xhtml)).not.toContain('<')
  // What an XML parser reads is the script as it was.
  const read = parseFragment(`<textarea>${scriptIn(xhtml)}</textarea>`) as unknown as {
    childNodes: { childNodes: { value: string }[] }[]
  }
  expect(read.childNodes[0]!.childNodes[0]!.value).toBe(scriptIn(html))
})

describe('injection', () => {
  const snippets: Snippets = {
    markup: 'html',
    key: 'k',
    head: Buffer.from('<H>'),
    body: Buffer.from('<B>'),
    csp: { scriptSrc: ["'sha256-S'"], connectSrc: [], imgSrc: [], styleSrc: [], frameSrc: [] },
    variesByLanguage: false,
  }
  const page = Buffer.from('<head><title>ü</title></head><body>x</body>')
  const head = page.indexOf('</head>')
  const body = page.indexOf('</body>')

  test('puts the snippets at their offsets and leaves all other bytes alone', () => {
    expect(inject(page, { head, body }, snippets).toString()).toBe('<head><title>ü</title><H></head><body>x<B></body>')
    expect(inject(page, { head, body: null }, snippets).toString()).toBe(
      '<head><title>ü</title><H></head><body>x</body>',
    )
    expect(inject(Buffer.from(''), { head: 0, body: 0 }, snippets).toString()).toBe('<H><B>')
  })

  test('keeps bytes that are not UTF-8', () => {
    const bytes = Buffer.from([0x3c, 0x70, 0x3e, 0xe9, 0xff, 0x00])
    expect(inject(bytes, { head: 0, body: 6 }, snippets)).toEqual(
      Buffer.concat([Buffer.from('<H>'), bytes, Buffer.from('<B>')]),
    )
  })

  test.each([
    ['ASCII and what contains it', (text: string) => Buffer.from(text, 'latin1')],
    ['UTF-16, little end first', (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')],
    ['UTF-16, big end first', (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16()],
  ])('a page without offsets gets everything at its end, in its own encoding: %s', (_, encode) => {
    expect(inject(encode('<p>\xe9'), undefined, snippets)).toEqual(encode('<p>\xe9<H><B>'))
  })

  test.each([
    ['"', '"'],
    ["'", "'"],
    ['', '"'],
  ])('extends a policy in the page, in a value quoted with %j', (given, expected) => {
    const before = `<head><meta http-equiv=content-security-policy content=${given}`
    const policy = "script-src https://a.test/?b&c'ü"
    const value = `script-src&#32;https://a.test/?b&amp;c&#39;&uuml;`
    const text = `${before}${value}${given}></head>`
    const start = before.length
    const end = start + value.length
    const made = inject(
      Buffer.from(text),
      { head: text.indexOf('</head>'), body: null, csp: [{ policy, start, end }] },
      snippets,
    ).toString()
    expect(made).toContain(
      `content=${expected}script-src https://a.test/?b&#38;c&#39;&#252; &#39;sha256-S&#39;${expected}><H></head>`,
    )
    const html = parse(made).childNodes.find((node) => node.nodeName === 'html') as unknown as {
      childNodes: { childNodes: { attrs: { name: string; value: string }[] }[] }[]
    }
    expect(html.childNodes[0]!.childNodes[0]!.attrs[1]!.value).toBe(`${policy} 'sha256-S'`)
  })

  test('a page in XML without offsets gets everything before the end of its body, if it has one', () => {
    const xhtml = { ...snippets, markup: 'xhtml' } as const
    const text = '<html><body><p>x</p></body></html>'
    expect(inject(Buffer.from(text), undefined, xhtml).toString()).toBe('<html><body><p>x</p><H><B></body></html>')
    expect(inject(Buffer.from('<svg/>'), undefined, xhtml).toString()).toBe('<svg/>')
  })

  test('any part of a page that is streamed is that part of the page built whole', async () => {
    const text = `<head><meta content="a"></head><body>${'x'.repeat(50)}</body>`
    const whole = Buffer.from(text)
    const start = text.indexOf('"a"') + 1
    const injection = {
      head: text.indexOf('</head>'),
      body: text.indexOf('</body>'),
      csp: [{ policy: 'script-src a', start, end: start + 1 }],
    }
    const built = inject(whole, injection, snippets)
    const read = async (from: number, to: number) => whole.subarray(from, to)
    const pieces = await injectedPieces(whole.length, injection, snippets, read)
    expect(sizeOf(pieces)).toBe(built.length)
    const bytesOf = (part: readonly Piece[]) =>
      Buffer.concat(part.map((piece) => ('bytes' in piece ? piece.bytes : whole.subarray(piece.start, piece.end))))
    expect(bytesOf(pieces)).toEqual(built)
    for (let from = 0; from < built.length; from += 3)
      for (let to = from; to < built.length; to += 7)
        expect(bytesOf(cutPieces(pieces, { start: from, end: to }))).toEqual(built.subarray(from, to + 1))
  })

  test('offsets that do not fit the page are an error, not a broken page', () => {
    expect(() => inject(page, { head: page.length + 1, body: null }, snippets)).toThrow(RangeError)
    expect(() => inject(page, { head: 5, body: null, csp: [{ policy: '', start: 3, end: 9 }] }, snippets)).toThrow(
      RangeError,
    )
  })
})
