import { createHash } from 'node:crypto'
import { Script } from 'node:vm'
import { parse, parseFragment } from 'parse5'
import { describe, expect, test } from 'vitest'
import type { Snippets } from '../../../edge/context.ts'
import { consentTexts } from '../../../edge/rewrite/consent-texts.ts'
import { cutPieces, inject, injectedPieces, sizeOf, type Piece } from '../../../edge/rewrite/inject.ts'
import { languages } from '../../../edge/rewrite/language.ts'
import { createSnippets } from '../../../edge/rewrite/snippets.ts'
import type { Analytics } from '../../../shared/contracts/analytics.ts'
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

  test('no badge where the plan shows none', () => {
    expect(make(ga)!.body.toString()).toBe('')
    expect(make(null, { badge: true })!.head.toString()).toBe('')
  })

  test('a badge with the name of the service, a way home and a way to report', () => {
    const { body, head } = make(null, { badge: true })!
    expect(head.length).toBe(0)
    expect(elementsOf(body.toString())).toEqual(['dropway-badge', 'style'])
    expect(body.toString()).toContain('>Dropway</a>')
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
    ['Plausible', plausible, ['dataset.domain="example.com"', 'https://plausible.io/js/script.js']],
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
      const json = /\nconsent\((\{.*?\}),\(\)=>/.exec(head)![1]!
      expect(JSON.parse(json)).toEqual({ ...consentTexts[language], lang: language })
    }
    expect(seen.size).toBe(12)
  })

  test('is chosen by accept-language and only then varies', () => {
    expect(make(ga, { language: 'de-DE' })).not.toBe(make(ga, { language: 'fr' }))
    expect(make(plausible, { language: 'de' })).toBe(make(plausible, { language: 'fr' }))
  })
})

describe('what a page’s own policy must allow', () => {
  const policyOf = (analytics: Analytics) => {
    const { connectSrc, imgSrc, frameSrc, scriptSrc, styleSrc } = make({ ...analytics, consent_banner: 'off' })!.csp
    const elsewhere = (sources: readonly string[]) =>
      sources.filter((source) => !source.startsWith("'sha256-")).join(' ')
    expect([frameSrc, styleSrc]).toEqual([[], []])
    return { script: elsewhere(scriptSrc), connect: connectSrc.join(' '), img: imgSrc.join(' ') }
  }
  const self = 'https://ph.example.com'
  test.each<[string, Analytics, ReturnType<typeof policyOf>]>([
    [
      'Google Analytics',
      ga,
      {
        script: 'https://www.googletagmanager.com',
        connect: 'https://www.googletagmanager.com https://*.google-analytics.com https://*.analytics.google.com',
        img: 'https://www.googletagmanager.com https://*.google-analytics.com',
      },
    ],
    [
      'Meta Pixel',
      meta,
      {
        script: 'https://connect.facebook.net',
        connect: 'https://connect.facebook.net https://www.facebook.com',
        img: 'https://www.facebook.com',
      },
    ],
    [
      'PostHog',
      posthog,
      {
        script: 'https://us-assets.i.posthog.com https://us.i.posthog.com',
        connect: 'https://us.i.posthog.com https://us-assets.i.posthog.com',
        img: 'https://us.i.posthog.com',
      },
    ],
    [
      'a self-hosted PostHog',
      { posthog: { ...posthog.posthog, host: self } },
      { script: self, connect: self, img: self },
    ],
    [
      'a host that only looks like PostHog’s',
      { posthog: { ...posthog.posthog, host: 'https://x.i.posthog.com.test' } },
      {
        script: 'https://x.i.posthog.com.test',
        connect: 'https://x.i.posthog.com.test',
        img: 'https://x.i.posthog.com.test',
      },
    ],
    ['Plausible', plausible, { script: 'https://plausible.io', connect: 'https://plausible.io', img: '' }],
  ])('%s', (_, analytics, expected) => expect(policyOf(analytics)).toEqual(expected))

  test('without a script or a style no hash is named', () => {
    expect(make(null, { badge: true })!.csp.scriptSrc).toEqual([])
    expect(make({ ...plausible, consent_banner: 'off' })!.csp.styleSrc).toEqual([])
    expect(make({ consent_banner: 'on' })!.csp.scriptSrc).toHaveLength(1)
  })
})

describe('what waits for the visitor’s word', () => {
  /** The statements inside the function that begins once the visitor agrees, and those outside of it. */
  const partsOf = (analytics: Analytics): { waiting: string; atOnce: string } => {
    const head = headOf(analytics)
    const waiting = /consent\(\{.*?\},\(\)=>\{(.*)\}\)\}\)\(window/s.exec(head)?.[1] ?? ''
    return { waiting, atOnce: head.replace(waiting, '') }
  }
  const ids = ['G-ABCD1234', '1234567890', 'phc_abcdefghijklmnop', 'example.com']
  const idsIn = (text: string): string[] => ids.filter((id) => text.includes(`"${id}"`))

  test('is what sets cookies, in the order in which the providers are listed', () => {
    const { waiting, atOnce } = partsOf({ ...plausible, ...posthog, ...meta, ...ga })
    expect(idsIn(waiting)).toEqual(['G-ABCD1234', '1234567890', 'phc_abcdefghijklmnop'])
    expect(idsIn(atOnce)).toEqual(['example.com'])
    const places = ids.slice(0, 3).map((id) => waiting.indexOf(id))
    expect(places).toEqual(places.toSorted((a, b) => a - b))
  })
  test('is nothing where the owner wants no banner, and nothing that sets no cookies', () => {
    expect(idsIn(partsOf({ ...ga, ...plausible, consent_banner: 'off' }).atOnce)).toEqual(['G-ABCD1234', 'example.com'])
    expect(idsIn(partsOf({ ...plausible, consent_banner: 'on' }).atOnce)).toEqual(['example.com'])
  })
  test('statements stand apart from each other', () => {
    for (const consent_banner of ['on', 'off'] as const) {
      const script = /<script>(.*)<\/script>/s.exec(
        headOf({ ...ga, ...meta, ...posthog, ...plausible, consent_banner }),
      )![1]!
      expect(() => new Script(script)).not.toThrow()
      for (const [, called] of script.matchAll(/(?:^|[\n;{])(load|meta|consent)\(/g))
        expect(script, called).toContain(`function ${called}(`)
    }
  })
})

describe('what was made is kept', () => {
  test('for a language that is asked for in many ways', () => {
    expect(make(ga, { language: 'de-DE' })).toBe(make(ga, { language: 'de;q=0.9' }))
    expect(make(ga, { language: `${'x,'.repeat(100)}de` })).toBe(make(ga, { language: undefined }))
    expect(make(ga, { language: `de,${'x'.repeat(300)}` })).toBe(make(ga, { language: 'de' }))
    expect(make(ga, { language: '' })).toBe(make(ga))
  })
  test('for each route and each markup', () => {
    const route = routeOf({ analytics: ga })
    expect(source.for(route, 'html', 'de')).toBe(source.for(route, 'html', 'de'))
    expect(source.for(route, 'xhtml', 'de')!.markup).toBe('xhtml')
    expect(source.for(route, 'html', 'de')!.markup).toBe('html')
  })
})

describe('for reviewers and previews', () => {
  const kinds = [
    ['in the frame of the review page', (markup: 'html' | 'xhtml') => source.framed(markup), 'startReview'],
    ['in a named preview', (markup: 'html' | 'xhtml') => source.live(markup, 7), 'followPreview'],
  ] as const
  test.each(kinds)('%s there is one script, and nothing that counts or asks', (_, snippetsFor, call) => {
    const [html, xhtml] = [snippetsFor('html'), snippetsFor('xhtml')]
    expect([html.markup, xhtml.markup]).toEqual(['html', 'xhtml'])
    expect(elementsOf(html.head.toString())).toEqual(['script'])
    const script = /^<script>(.*)<\/script>$/s.exec(html.head.toString())![1]!
    expect(() => new Script(script)).not.toThrow()
    expect(script).toContain(`function ${call}(`)
    expect(script).toMatch(new RegExp(`\\n${call}\\(.*\\)\\}\\)\\(window,document\\)$`))
    expect(xhtml.head.toString()).not.toMatch(/&(?!#?\w+;)/)
    expect(xhtml.head.toString().slice('<script>'.length, -'</script>'.length)).not.toContain('<')
    for (const made of [html, xhtml]) {
      expect(made).toMatchObject({ variesByLanguage: false, key: expect.stringMatching(/^[0-9a-f]{12}$/) })
      expect(made.body).toHaveLength(0)
      expect(made.csp.scriptSrc).toEqual([`'sha256-${createHash('sha256').update(script).digest('base64')}'`])
    }
    expect(html.key).not.toBe(xhtml.key)
  })

  test('a page of a preview knows its version, so that the same file is another answer in each', () => {
    const [seventh, eighth] = [source.live('html', 7), source.live('html', 8)]
    expect(source.live('html', 7)).toBe(seventh)
    expect(seventh.key).not.toBe(eighth.key)
  })

  test('the frame is the service’s alone, and a preview asks its own host whether there is something newer', () => {
    expect(source.framed('html').frameAncestor).toBe(BASE_URL)
    expect(source.framed('html').head.toString()).toContain(`startReview("${BASE_URL}")`)
    expect(source.framed('html').csp.connectSrc).toEqual([])
    expect(source.live('html', 7).frameAncestor).toBeUndefined()
    expect(source.live('html', 7).csp.connectSrc).toEqual(["'self'"])
  })
})

describe('a badge around frames', () => {
  test('is there in HTML, and where there is a badge', () => {
    const route = routeOf({ analytics: null, badge: true })
    const { frames } = source.for(route, 'html', undefined)!
    expect(frames!.open.toString()).toContain('<frameset')
    expect(frames!.close.toString()).toContain('</frameset>')
    // XHTML has none.
    expect(source.for(route, 'xhtml', undefined)!.frames).toBeUndefined()
    expect(make(ga)!.frames).toBeUndefined()
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
  expect(xhtml.body.toString()).toContain('&quot;Segoe UI&quot;')
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

  describe('a page of frames', () => {
    const framed = { ...snippets, frames: { open: Buffer.from('<O>'), close: Buffer.from('<C>') } }
    const frames = Buffer.from('<head></head><script></script><FrameSet cols=1><frame></frameset></html>')
    const frameset = frames.indexOf('<FrameSet')

    test('gets a frame of ours around its own', () => {
      expect(inject(frames, { head: frameset, body: null }, framed).toString()).toBe(
        '<head></head><script></script><H><O><FrameSet cols=1><frame></frameset></html><C>',
      )
    })

    test('without a badge gets none', () => {
      expect(inject(frames, { head: frameset, body: null }, snippets).toString()).toBe(
        '<head></head><script></script><H><FrameSet cols=1><frame></frameset></html>',
      )
    })

    test('of a manifest that names the end of the head gets none', () => {
      expect(inject(frames, { head: 6, body: null }, framed).toString()).toBe(
        '<head><H></head><script></script><FrameSet cols=1><frame></frameset></html>',
      )
    })

    test('may load it, whatever its policy says', () => {
      const text = `<meta content="frame-src 'self'"><frameset>`
      const csp = [{ policy: "frame-src 'self'", start: 15, end: 31 }]
      expect(inject(Buffer.from(text), { head: 33, body: null, csp }, framed).toString()).toBe(
        '<meta content="frame-src &#39;self&#39; data:"><H><O><frameset><C>',
      )
    })
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
    // The last one counts; it may be the very first thing, or 4,096 bytes before the end, and not farther.
    expect(inject(Buffer.from('<!--</body>--></body>'), undefined, xhtml).toString()).toBe(
      '<!--</body>--><H><B></body>',
    )
    expect(inject(Buffer.from('</body>'), undefined, xhtml).toString()).toBe('<H><B></body>')
    const far = (bytes: number): string => `<p/></body>${' '.repeat(bytes - '</body>'.length)}`
    expect(inject(Buffer.from(far(4096)), undefined, xhtml).toString()).toBe(`<p/><H><B>${far(4096).slice(4)}`)
    expect(inject(Buffer.from(far(4097)), undefined, xhtml).toString()).toBe(far(4097))
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

  test.each([
    [0xff, 0xff],
    [0xfe, 0xfe],
    [0x20, 0xfe],
    [0x20, 0xff],
  ])('bytes %j at the beginning are no sign of UTF-16', (...bytes) => {
    expect(inject(Buffer.from(bytes), undefined, snippets)).toEqual(Buffer.from([...bytes, ...Buffer.from('<H><B>')]))
  })

  test('a page without offsets is looked at where it must be, and no more', async () => {
    const looksAt = async (size: number, markup: Snippets['markup']): Promise<string[]> => {
      const looks: string[] = []
      const read = async (start: number, end: number) => {
        looks.push(`${start}-${end}`)
        return Buffer.alloc(end - start)
      }
      await injectedPieces(size, undefined, { ...snippets, markup }, read)
      return looks
    }
    expect(await looksAt(0, 'html')).toEqual(['0-0'])
    expect(await looksAt(1, 'html')).toEqual(['0-1'])
    expect(await looksAt(9000, 'html')).toEqual(['0-2'])
    expect(await looksAt(9000, 'xhtml')).toEqual([`${9000 - 4096}-9000`])
    expect(await looksAt(100, 'xhtml')).toEqual(['0-100'])
  })

  test('no piece is empty', async () => {
    const read = async () => Buffer.alloc(0)
    const pieces = await injectedPieces(4, { head: 0, body: 4 }, { ...snippets, head: Buffer.alloc(0) }, read)
    expect(pieces).toEqual([{ start: 0, end: 4 }, { bytes: Buffer.from('<B>') }])
    expect(cutPieces(pieces, { start: 4, end: 4 })).toEqual([{ bytes: Buffer.from('<') }])
    expect(cutPieces(pieces, { start: 0, end: 3 })).toEqual([{ start: 0, end: 4 }])
  })

  test('several policies of a page are each extended in their own quotes', async () => {
    const text = `<head>"1"'2'=3</head>`
    const at = (piece: string, policy: string) => ({ policy, start: text.indexOf(piece), end: text.indexOf(piece) + 1 })
    const injection = {
      head: text.indexOf('</head>'),
      body: null,
      csp: [at('1', 'script-src a'), at('2', 'script-src b'), at('3', 'script-src c')],
    }
    const added = '&#39;sha256-S&#39;'
    const expected = `<head>"script-src a ${added}"'script-src b ${added}'="script-src c ${added}"<H></head>`
    expect(inject(Buffer.from(text), injection, snippets).toString()).toBe(expected)
    const whole = Buffer.from(text)
    const pieces = await injectedPieces(whole.length, injection, snippets, async (from, to) => whole.subarray(from, to))
    const bytes = pieces.map((piece) => ('bytes' in piece ? piece.bytes : whole.subarray(piece.start, piece.end)))
    expect(Buffer.concat(bytes).toString()).toBe(expected)
  })

  test('more policies than anyone writes stay as they are, all of them', () => {
    const count = (policies: readonly string[]): number => {
      const text = policies.map((_, index) => `"${index % 10}"`).join('')
      const csp = policies.map((policy, index) => ({ policy, start: 3 * index + 1, end: 3 * index + 2 }))
      return inject(Buffer.from(text), { head: 0, body: null, csp }, snippets).toString().split('sha256-S').length - 1
    }
    const short = (length: number): string[] => Array<string>(length).fill('script-src a')
    expect([32, 33].map((length) => count(short(length)))).toEqual([32, 0])
    const long = (chars: number): string[] => ['script-src a', 'script-src '.padEnd(chars - 12, 'a')]
    expect([65_536, 65_537].map((chars) => count(long(chars)))).toEqual([2, 0])
  })

  test('offsets that do not fit the page are an error, not a broken page', () => {
    expect(() => inject(page, { head: page.length + 1, body: null }, snippets)).toThrow(RangeError)
    expect(() => inject(page, { head: 5, body: null, csp: [{ policy: '', start: 3, end: 9 }] }, snippets)).toThrow(
      RangeError,
    )
  })
})
