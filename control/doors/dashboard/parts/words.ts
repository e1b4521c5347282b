/** Numbers, times and states as a person says them. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../../shared/running/clock.ts'
import type { SiteState } from '../../../../shared/contracts/route-record.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'

export function countInWords(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString('en-GB')} ${count === 1 ? noun : plural}`
}

/** Whole units of a currency, as prices of plans are. */
export function money(amount: number, currency: string): string {
  const format = new Intl.NumberFormat('en', {
    style: 'currency',
    currency: currency.toUpperCase(),
    maximumFractionDigits: 0,
  })
  return format.format(amount)
}

const UNITS: readonly (readonly [ms: number, unit: Intl.RelativeTimeFormatUnit])[] = [
  [365 * DAY_MS, 'year'],
  [30 * DAY_MS, 'month'],
  [DAY_MS, 'day'],
  [HOUR_MS, 'hour'],
  [MINUTE_MS, 'minute'],
]

export function relativeTime(at: number, now: number): string {
  const format = new Intl.RelativeTimeFormat('en-GB', { numeric: 'auto' })
  const difference = at - now
  for (const [ms, unit] of UNITS) {
    if (Math.abs(difference) >= ms) return format.format(Math.round(difference / ms), unit)
  }
  return difference > 0 ? 'in a moment' : 'just now'
}

/** A moment, said relatively, with the exact time for those who hover or listen. */
export function timeAgo(at: string | Date, now: number): Html {
  const date = new Date(at)
  const exact = date.toISOString()
  return html`<time datetime="${exact}" data-exact title="${exact.slice(0, 16).replace('T', ' ')} UTC">${relativeTime(date.getTime(), now)}</time>`
}

export function dayInWords(at: string | Date): string {
  return new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })
}

interface StateWords {
  readonly tone: 'good' | 'warn' | 'bad' | ''
  readonly word: string
  readonly meaning: string
}

const STATES: Readonly<Record<SiteState, StateWords>> = {
  reserved: {
    tone: '',
    word: 'Empty',
    meaning: 'The address is yours. It answers "not found" until you publish something.',
  },
  live: { tone: 'good', word: 'Live', meaning: 'Everyone with the address can see it.' },
  unverified: {
    tone: 'warn',
    word: 'Hidden',
    meaning: 'Visitors see it as soon as the owner has opened the verification link.',
  },
  paused: {
    tone: 'warn',
    word: 'Paused',
    meaning: 'It is beyond your plan. Make room by deleting other drops, or have a larger plan, and it returns.',
  },
  expired: {
    tone: 'warn',
    word: 'Expired',
    meaning: 'Its time is over. The owner signing in brings a free drop back.',
  },
  removed: { tone: 'bad', word: 'Removed', meaning: 'Taken down by our trust and safety team.' },
  gone: { tone: 'bad', word: 'Deleted', meaning: 'It was deleted for good.' },
}

export function stateWords(state: SiteState): StateWords {
  return STATES[state]
}

export function stateTag(state: SiteState): Html {
  const { tone, word } = STATES[state]
  return html`<span class="tag ${tone}">${word}</span>`
}

export function nameOf(site: { name: string; title: string; slug: string }): string {
  return site.name || site.title || site.slug
}

/** The address without the scheme: shorter to read, and what people type. */
export function shortAddress(url: string): string {
  return url.replace(/^https:\/\//, '')
}

/** Goes on where the words on a button or a link end, for those who hear it without what stands around it. */
export function spoken(text: string): Html {
  return html`<span class="visually-hidden"> ${text}</span>`
}
