/** The list of drops: what its query asks for, and which drops it shows. */
import { expect, test } from 'vitest'
import { listAddress, listQueryOf, pageOf } from '../../../control/doors/dashboard/drops/list-order.ts'

const site = (
  slug: string,
  rest: Partial<{ state: 'live' | 'paused'; published_at: string; views_30d: number }> = {},
) => ({
  id: slug,
  name: '',
  title: '',
  slug,
  state: 'live' as const,
  published_at: null,
  views_30d: 0,
  ...rest,
})
const slugs = (sites: readonly { slug: string }[]) => sites.map(({ slug }) => slug).join(' ')
const ask = (query: string) => listQueryOf(new URLSearchParams(query))

const three = [
  site('page-10', { published_at: '2026-01-02', views_30d: 5 }),
  site('page-9', { state: 'paused', published_at: '2026-01-03', views_30d: 1 }),
  site('about', { views_30d: 9 }),
]

test.each([
  ['', 'page-10 page-9 about'],
  ['sort=name', 'about page-9 page-10'],
  ['sort=views', 'about page-10 page-9'],
  ['sort=published', 'page-9 page-10 about'],
  ['sort=nonsense', 'page-10 page-9 about'],
  ['state=paused', 'page-9'],
])('%s shows %s', (query, expected) => expect(slugs(pageOf(three, ask(query), undefined).shown)).toBe(expected))

test('what a search has found is shown in the order that was asked for', () => {
  const found = new Set(['about', 'page-9'])
  expect(slugs(pageOf(three, ask('q=x&sort=views'), found).shown)).toBe('about page-9')
  expect(slugs(pageOf(three, ask('q=x&state=paused'), found).shown)).toBe('page-9')
  expect(slugs(pageOf(three, ask('q=x'), new Set()).shown)).toBe('')
})

test('a long list has pages, and one beyond the last is the last', () => {
  const many = Array.from({ length: 60 }, (_, index) => site(`drop-${index}`))
  const second = pageOf(many, ask('page=2'), undefined)
  expect([second.first, second.shown.length, second.found, second.pages]).toEqual([26, 25, 60, 3])
  expect(pageOf(many, ask('page=99'), undefined)).toMatchObject({ page: 3, first: 51 })
  for (const wrong of ['page=0', 'page=-1', 'page=x', 'page=1e999']) expect(ask(wrong).page).toBe(1)
})

test.each(['/sites', '/sites?q=a+b&state=live&sort=name&page=3'])(
  '%s is the address of what it asks for',
  (address) => {
    expect(listAddress(listQueryOf(new URL(address, 'https://dropway.test').searchParams))).toBe(address)
  },
)
