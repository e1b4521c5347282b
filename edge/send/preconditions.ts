/**
 * Conditional and range requests (RFC 9110 §13, §14). Pure: headers and what is there → what to answer.
 *
 * Content has no date of its own (a version is known by its hash), so no Last-Modified is sent, and If-Modified-Since and
 * If-Unmodified-Since are ignored, as a recipient without a date must (RFC 9110 §13.1.3, §13.1.4).
 */
import type { ByteRange } from '../../shared/blobs/blob-store.ts'

export interface Preconditions {
  readonly method: string
  readonly ifMatch: string | undefined
  readonly ifNoneMatch: string | undefined
  readonly ifRange: string | undefined
  readonly range: string | undefined
}

export interface Validators {
  /** Strong, quoted. */
  readonly etag: string
  readonly size: number
}

export type Outcome =
  | { readonly kind: 'whole' }
  | { readonly kind: 'not-modified' }
  | { readonly kind: 'precondition-failed' }
  | { readonly kind: 'ranges'; readonly ranges: readonly [ByteRange, ...ByteRange[]] }
  | { readonly kind: 'unsatisfiable' }

/** More is either a mistake or an attempt to make one request cost many. */
const MAX_RANGES = 16

const WHOLE: Outcome = { kind: 'whole' }
const NOT_MODIFIED: Outcome = { kind: 'not-modified' }
const PRECONDITION_FAILED: Outcome = { kind: 'precondition-failed' }

/** In the order of RFC 9110 §13.2.2. */
export function evaluate(asked: Preconditions, validators: Validators): Outcome {
  if (asked.ifMatch !== undefined && !listMatches(asked.ifMatch, validators.etag, 'strong')) return PRECONDITION_FAILED
  if (asked.ifNoneMatch !== undefined && listMatches(asked.ifNoneMatch, validators.etag, 'weak')) return NOT_MODIFIED
  if (asked.range === undefined || asked.method !== 'GET') return WHOLE
  if (asked.ifRange !== undefined && asked.ifRange.trim() !== validators.etag) return WHOLE
  return rangesOf(asked.range, validators.size)
}

/** True when the header names the tag, or is `*`. */
function listMatches(header: string, etag: string, comparison: 'strong' | 'weak'): boolean {
  if (header === etag || header.trim() === '*') return true
  for (const [, weak, tag] of header.matchAll(/(W\/)?("[^"]*")/g)) {
    if (tag === etag && (comparison === 'weak' || weak === undefined)) return true
  }
  return false
}

/** A malformed or excessive Range is ignored: the whole is always a right answer. */
function rangesOf(header: string, size: number): Outcome {
  const list = /^\s*bytes\s*=(.*)$/i.exec(header)?.[1]
  if (list === undefined) return WHOLE
  const specs = list
    .split(',')
    .map((spec) => spec.trim())
    .filter((spec) => spec !== '')
  if (specs.length === 0 || specs.length > MAX_RANGES) return WHOLE
  const ranges: ByteRange[] = []
  for (const spec of specs) {
    const range = rangeOf(spec, size)
    if (range === 'malformed') return WHOLE
    if (range !== 'outside') ranges.push(range)
  }
  const [first, ...others] = ranges
  if (first === undefined) return { kind: 'unsatisfiable' }
  // Overlapping ranges would send more than the whole: then the whole is cheaper for both.
  const total = ranges.reduce((sum, { start, end }) => sum + end - start + 1, 0)
  return others.length > 0 && total > size ? WHOLE : { kind: 'ranges', ranges: [first, ...others] }
}

function rangeOf(spec: string, size: number): ByteRange | 'malformed' | 'outside' {
  // Any number is a number (RFC 9110 §14.1.2); beyond the end it is the end.
  const match = /^(\d{0,40})-(\d{0,40})$/.exec(spec)
  if (!match || spec === '-') return 'malformed'
  const [, first = '', last = ''] = match
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'outside' : { start: size - length, end: size - 1 }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return 'malformed'
  if (start >= size) return 'outside'
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) }
}
