/** Which drops of a list are shown, in which order: what the query of `/sites` says. Pure. */
import type { ApiSite } from '../../../drops/sites/schemas.ts'
import { nameOf } from '../parts/words.ts'

/** What fits on a few screens, with a chart of views each. */
const PAGE_DROPS = 25

export const SORTS = ['newest', 'published', 'name', 'views'] as const
export type Sort = (typeof SORTS)[number]

type Listed = Pick<ApiSite, 'id' | 'name' | 'title' | 'slug' | 'state' | 'published_at' | 'views_30d'>

export interface ListQuery {
  readonly search: string
  /** Undefined: all. */
  readonly state: string | undefined
  readonly sort: Sort
  /** From 1 on. */
  readonly page: number
}

export interface ListPage<Site extends Listed> {
  readonly shown: readonly Site[]
  /** How many match, on all pages. */
  readonly found: number
  /** Position of the first that is shown, from 1 on. */
  readonly first: number
  readonly page: number
  readonly pages: number
}

export function listQueryOf(query: URLSearchParams): ListQuery {
  const page = Number(query.get('page'))
  return {
    search: (query.get('q') ?? '').trim(),
    state: query.get('state') || undefined,
    sort: SORTS.find((sort) => sort === query.get('sort')) ?? 'newest',
    page: Number.isSafeInteger(page) && page > 0 ? page : 1,
  }
}

/** The address of the list that is asked for; what is usual is left out. */
export function listAddress({ search, state, sort, page }: ListQuery): string {
  const query = new URLSearchParams({
    ...(search === '' ? {} : { q: search }),
    ...(state === undefined ? {} : { state }),
    ...(sort === 'newest' ? {} : { sort }),
    ...(page === 1 ? {} : { page: String(page) }),
  }).toString()
  return query === '' ? '/sites' : `/sites?${query}`
}

/** `all` comes newest first. `wanted`: ids of those that a search has found; undefined: all. A page beyond the last is the last. */
export function pageOf<Site extends Listed>(
  all: readonly Site[],
  query: ListQuery,
  wanted: ReadonlySet<string> | undefined,
): ListPage<Site> {
  const found = all
    .filter(({ id, state }) => (wanted?.has(id) ?? true) && (query.state === undefined || state === query.state))
    .toSorted(ORDERS[query.sort])
  const pages = Math.max(1, Math.ceil(found.length / PAGE_DROPS))
  const page = Math.min(query.page, pages)
  const start = (page - 1) * PAGE_DROPS
  return { shown: found.slice(start, start + PAGE_DROPS), found: found.length, first: start + 1, page, pages }
}

const NAMES = new Intl.Collator('en-GB', { numeric: true })

const ORDERS: Readonly<Record<Sort, (one: Listed, other: Listed) => number>> = {
  newest: () => 0,
  published: (one, other) => (other.published_at ?? '').localeCompare(one.published_at ?? ''),
  name: (one, other) => NAMES.compare(nameOf(one), nameOf(other)),
  views: (one, other) => other.views_30d - one.views_30d,
}
