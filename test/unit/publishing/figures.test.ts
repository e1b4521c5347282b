/** Where comments on images, and on other elements without text, are after a page has changed. */
import { expect, test } from 'vitest'
import type { Anchor } from '../../../control/drops/publishing/comparison/anchors.ts'
import { figureOf, placeFigure, tagOf } from '../../../control/drops/publishing/comparison/figures.ts'
import { figuresOf } from '../../../control/drops/publishing/comparison/page-text.ts'
import {
  changedPassages,
  findAnchor,
  placeAnchors,
} from '../../../control/drops/publishing/comparison/place-threads.ts'

const HALL = '<img src="/hall.jpg" alt="The hall">'
const ICON = '<img src="/icon.png">'
const ROWS = (icon = ICON) =>
  `<p>Cards are taken at the desk. ${icon}</p><p>Coins are taken everywhere here. ${icon}</p><p>Notes are changed on request.</p>`
const PAGE = (figure: string) =>
  `<h1>Tickets</h1><p>Open on every day but Monday.</p>${figure}<p>Children come in free with their parents.</p>`
const figures = (html: string) => figuresOf(Buffer.from(html))

test('figures are read with what they show and the text around them', () => {
  const html = `<h1>One</h1>\n<p>Two &amp; <img alt="A &quot;b&quot;" src=" /a.png ">three</p><script>"<img src=x>"</script><hr><textarea name="t"><img></textarea>`
  expect(figures(html)).toEqual([
    { tag: 'img', src: '/a.png', alt: 'A "b"', before: 'One Two &', after: 'three', line: 2 },
    { tag: 'hr', src: '', alt: '', before: 'One Two & three', after: '', line: 2 },
    { tag: 'textarea', src: 't', alt: '', before: 'One Two & three', after: '', line: 2 },
  ])
})

test.each([
  ['main > img:nth-of-type(2)', 'img'],
  ['img#hall', 'img'],
  ['#hall', ''],
  ['body>P.x', 'p'],
  ['', ''],
])('%j ends with %j', (selector, tag) => expect(tagOf(selector)).toBe(tag))

test.each([
  ['text changed elsewhere', PAGE(HALL), PAGE(HALL).replace('free', 'in at half price'), 'same', '/hall.jpg'],
  ['text came before it', PAGE(HALL), PAGE(`<p>New: tours with a guide.</p>${HALL}`), 'same', '/hall.jpg'],
  [
    'it stands elsewhere',
    PAGE(HALL),
    `${PAGE('')}<h2>The house</h2><p>Built long ago, of stone.</p>${HALL}`,
    'moved',
    '/hall.jpg',
  ],
  ['another image in its place', PAGE(HALL), PAGE('<img src="/new.jpg">'), 'changed', '/new.jpg'],
  [
    'another with its description',
    PAGE(HALL),
    `<p>All is new.</p><img src="/x.jpg" alt="The hall">`,
    'changed',
    '/x.jpg',
  ],
  ['another elsewhere', PAGE(HALL), `<p>All is new.</p><img src="/x.jpg">`, 'gone', undefined],
  ['it is gone', PAGE(HALL), PAGE(''), 'gone', undefined],
  [
    'another that was there before',
    PAGE(`${HALL}${ICON}`),
    PAGE(ICON).replace('Children', 'People'),
    'gone',
    undefined,
  ],
])('%s', (_, before, after, placement, src) => {
  const [old, fresh] = [figures(before), figures(after)]
  const placed = placeFigure(old, fresh, figureOf(old, anchor())!)
  expect([placed.placement, placed.at?.src]).toEqual([placement, src])
})

function anchor(change: Partial<Anchor> = {}): Anchor {
  return {
    exact: '',
    prefix: 'but Monday.',
    suffix: 'Children come',
    element: 'body > img',
    src: '/hall.jpg',
    ...change,
  }
}

const second = anchor({ src: '/icon.png', prefix: 'Coins are taken everywhere here.', suffix: 'Notes are changed' })

test.each([
  ['nothing else changed', ROWS(), 'same', 'Coins are taken everywhere here.'],
  ['the other was taken away', ROWS().replace(`desk. ${ICON}`, 'desk.'), 'same', 'Coins are taken everywhere here.'],
  ['this one was taken away', ROWS().replace(`here. ${ICON}`, 'here.'), 'gone', undefined],
  [
    'all of its words changed',
    `<p>Pay with plastic. ${ICON}</p><p>Pay with metal. ${ICON}</p><p>Ask for paper.</p>`,
    'same',
    'Pay with metal.',
  ],
  ['there are more, with other words', `<p>a ${ICON}</p><p>b ${ICON}</p><p>c ${ICON}</p>`, 'gone', undefined],
])('of two alike, the second: %s', (_, after, placement, before) => {
  const old = figures(ROWS())
  const own = figureOf(old, second)!
  expect(old.indexOf(own)).toBe(1)
  const placed = placeFigure(old, figures(after), own)
  expect(placed.placement).toBe(placement)
  expect(placed.at?.before.endsWith(before ?? '')).toBe(before === undefined ? undefined : true)
})

test('of two alike, neither is meant by who says nothing of what is around', () => {
  expect(figureOf(figures(ROWS()), { ...second, prefix: '', suffix: '' })).toBeUndefined()
  expect(figureOf(figures(ROWS()), { ...second, element: 'svg' })).toBeUndefined()
})

test('what names nothing is known by its surroundings alone', () => {
  const old = figures(PAGE('<hr>'))
  const own = figureOf(old, anchor({ src: '', element: 'hr' }))!
  expect(placeFigure(old, figures(PAGE('<p>More.</p><hr>')), own).placement).toBe('same')
  expect(placeFigure(old, figures('<p>All is new here now.</p><hr><p>And this as well.</p>'), own).placement).toBe(
    'gone',
  )
})

const blobs = (...texts: string[]) => ({ read: (hash: string) => Promise.resolve(Buffer.from(texts[Number(hash)]!)) })
const file = (hash: string) => ({ path: 'index.html', hash, size: 1000 })

test('a comment on a point is found, and placed in each version with the file and the line', async () => {
  const store = blobs(PAGE(HALL), `\n${PAGE('<img src="/new.jpg">')}`, PAGE(''))
  const wanted = anchor({ point: { x: 0.2, y: 0.4 } })
  const found = await findAnchor(store, wanted, file('0'))
  expect(found).toMatchObject({ point: wanted.point, src: '/hall.jpg', file: 'index.html', line: 1 })
  const request = { id: 'th_1', anchor: wanted, found, before: file('0'), after: file('1') }
  const [changed] = await placeAnchors(store, [request])
  expect(changed).toMatchObject({ placement: 'changed', found: { src: '/new.jpg', line: 2, point: wanted.point } })
  // It stays changed as long as another image stands there; the first one in its place again is the same.
  const later = { ...request, found: changed!.found, before: file('1') }
  expect(await placeAnchors(store, [{ ...later, after: file('1') }])).toMatchObject([{ placement: 'changed' }])
  expect(await placeAnchors(store, [{ ...later, after: file('2') }])).toEqual([
    { id: 'th_1', placement: 'gone', found: null },
  ])
  expect(await placeAnchors(store, [{ ...request, before: undefined, after: file('0') }])).toMatchObject([
    { placement: 'same' },
  ])
})

test('what changed since a version is told block by block, in the words of the newer one', async () => {
  const store = blobs(PAGE(''), PAGE('').replace('Monday', 'Tuesday'))
  expect(await changedPassages(store, file('0'), file('0'))).toEqual([])
  expect(await changedPassages(store, file('0'), file('1'))).toEqual([
    { exact: 'Open on every day but Tuesday.', prefix: 'Tickets', suffix: 'Children come in free with their parents.' },
  ])
  expect(await changedPassages(store, undefined, file('1'))).toHaveLength(3)
})
