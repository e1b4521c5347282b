/** The address of a drop's card in its pages: where it is wished, in pages without a picture of their own, and nowhere else. */
import { describe, expect, test } from 'vitest'
import { inject, injectedPieces } from '../../../edge/rewrite/inject.ts'
import { isCard } from '../../../edge/processes/machines/rules.ts'
import { createSnippets } from '../../../edge/rewrite/snippets.ts'
import { fromStored, toStored } from '../../../edge/store/replica/stored-route.ts'
import { decodeRouteRecord, encodeRouteRecord } from '../../../shared/contracts/route-record.ts'
import { routeOf } from '../../support/manifests.ts'

const HASH = 'ab'.repeat(32)
const card: [string, number] = [HASH, 12_345]
const source = createSnippets({ baseUrl: 'https://dropway.test', publicPort: 8443 })
const wished = routeOf({ analytics: null, badge: false, host: 'a.dropway.test', card })

test('a drop with a card and nothing else has a snippet that asks nothing of a policy', () => {
  const made = source.for(wished, 'html', undefined)!
  expect(made.card!.toString()).toBe(
    '<meta property="og:image" content="https://a.dropway.test:8443/.dropway/card.png?v=abababababab">' +
      '<meta property="og:image:width" content="1200"><meta property="og:image:height" content="630">' +
      '<meta name="twitter:card" content="summary_large_image">',
  )
  expect([made.head.length, made.body.length]).toEqual([0, 0])
  expect(Object.values(made.csp).flat()).toEqual([])
  expect(source.for(wished, 'xhtml', undefined)!.card!.toString().match(/\/>/g)).toHaveLength(4)
})

test('without a card there is none, and the name of the page with its badge is as before', () => {
  expect(source.for(routeOf({ analytics: null, badge: false }), 'html', undefined)).toBeUndefined()
  const [plain, with_] = [false, true].map((has) =>
    source.for(
      routeOf({ analytics: null, badge: true, host: 'a.dropway.test', ...(has ? { card } : {}) }),
      'html',
      'en',
    ),
  )
  expect(plain!.card).toBeUndefined()
  expect(with_!.key).not.toBe(plain!.key)
  expect(with_!.head.equals(plain!.head) && with_!.body.equals(plain!.body)).toBe(true)
})

test('another picture is another name of the page', () => {
  const other = routeOf({ analytics: null, badge: false, host: 'a.dropway.test', card: ['cd'.repeat(32), 1] })
  expect(source.for(other, 'html', undefined)!.key).not.toBe(source.for(wished, 'html', undefined)!.key)
})

describe('in a page', () => {
  const snippets = source.for(wished, 'html', undefined)!
  const page = (head: string) => `<html><head>${head}</head><body>x</body></html>`
  const put = (text: string, injection: { head: number; body: number | null }): string =>
    inject(Buffer.from(text), injection, snippets).toString()
  const placesIn = (text: string) => ({ head: text.indexOf('</head>'), body: text.indexOf('</body>') })

  test('it stands at the end of the head', () => {
    const text = page('<title>A</title>')
    expect(put(text, placesIn(text))).toBe(text.replace('</head>', `${snippets.card!.toString()}</head>`))
  })

  test.each(['<meta property="og:image" content="/x.png">', "<meta content='x' property='og:image:url'>"])(
    '%s is a choice of its own',
    (own) => {
      const text = page(own)
      expect(put(text, placesIn(text))).toBe(text)
    },
  )

  test('what stands in the body is none', () => {
    const text = page('').replace('x</body>', 'og:image</body>')
    expect(put(text, placesIn(text))).toContain(snippets.card!.toString())
  })

  test('beside policies and frames, which are looked at too', async () => {
    const policy = "default-src 'self'"
    const meta = `<meta http-equiv="content-security-policy" content="${policy}">`
    for (const own of ['', '<meta property="og:image" content="x">']) {
      const text = `<html><head>${meta}${own}</head><frameset></frameset></html>`
      const start = text.indexOf(policy)
      const injection = {
        head: text.indexOf('<frameset'),
        body: null,
        csp: [{ policy, start, end: start + policy.length }],
      }
      const whole = inject(Buffer.from(text), injection, snippets).toString()
      expect(whole.includes(snippets.card!.toString())).toBe(own === '')
      expect(whole).toContain(meta)
      const pieces = await injectedPieces(text.length, injection, snippets, async (from, to) =>
        Buffer.from(text.slice(from, to)),
      )
      const streamed = pieces.map((piece) =>
        'bytes' in piece ? piece.bytes.toString() : text.slice(piece.start, piece.end),
      )
      expect(streamed.join('')).toBe(whole)
    }
  })

  test('the head is read where a card may stand in it, and not otherwise', async () => {
    const looksAt = async (added: typeof snippets, start: number): Promise<string[]> => {
      const looks: string[] = []
      const injection = { head: 20, body: 90, csp: [{ policy: 'img-src a', start, end: 9 }] }
      await injectedPieces(100, injection, added, async (from, to) => {
        looks.push(`${from}-${to}`)
        return Buffer.alloc(to - from)
      })
      return looks
    }
    expect(await looksAt(snippets, 5)).toEqual(['4-5', '0-20'])
    expect(await looksAt({ ...snippets, card: undefined }, 5)).toEqual(['4-5'])
    expect(await looksAt({ ...snippets, card: undefined }, 0)).toEqual(['0-0'])
  })

  test('a page that was not scanned gets none', () => {
    expect(inject(Buffer.from('<p>large'), undefined, snippets).toString()).toBe('<p>large')
  })
})

test.each([
  ['/.dropway/card.png', true],
  ['/.dropway/card.png?v=1', true],
  ['/.dropway/card.png/x', false],
  ['/.dropway/card.pngx', false],
  ['/card.png', false],
  ['/', false],
])('%s is a card: %s', (target, is) => {
  expect(isCard(target)).toBe(is)
})

test('the record carries it to the edges and into their replica', () => {
  const record = { ...wished, v: 1 as const, revision: 7, versions: [] }
  expect(decodeRouteRecord(encodeRouteRecord(record))).toEqual(record)
  const { versions: _, ...served } = record
  expect(fromStored('a.dropway.test', toStored(record))).toEqual(served)
})
