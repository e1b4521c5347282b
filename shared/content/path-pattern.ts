/**
 * The grammar that `_redirects` and `_headers` share: at publish time it finds the mistakes, at serve time it matches.
 *
 *   /old                literal; a trailing slash in the request does not matter
 *   /blog/:slug         a placeholder is one whole, non-empty segment
 *   /news/*             one splat: anything, also nothing and also `/news` itself
 *
 * A request path is matched decoded and with single slashes; values come out decoded. Nothing is tried twice: a
 * placeholder ends at the next slash, and what stands behind the splat is compared from the end. So one match costs no
 * more than comparing the pattern's own text; pattern-set.ts asks many patterns at once.
 */
import { before } from '../values/before.ts'
import { toNfc } from '../values/nfc.ts'

export interface PathPattern {
  /** Names that a destination may use, `splat` included, in the order of the path. */
  readonly names: readonly string[]
  readonly form: PatternForm
  /** A value for each of the names. */
  match(path: string): readonly string[] | undefined
}

/** A pattern taken apart: literal runs with a placeholder between each two of them, and what may follow. */
export interface PatternForm {
  readonly first: string
  /** Each behind a placeholder. */
  readonly rest: readonly string[]
  readonly end: PatternEnd
}

export type PatternEnd =
  /** Nothing more, or one slash. */
  | { readonly kind: 'exact' }
  /** Nothing more, or a slash and anything. */
  | { readonly kind: 'subtree' }
  /** Anything, then again runs with placeholders between them. */
  | { readonly kind: 'splat'; readonly tail: Tail; readonly mayEndWithSlash: boolean }

/** Runs from the end of the path. */
interface Tail {
  readonly last: string
  /** Each before a placeholder, the nearest to the end first. */
  readonly before: readonly string[]
}

export interface PathProblem {
  /** Says what to do, for the publish report. */
  readonly problem: string
}

const NAME = /^[A-Za-z][A-Za-z0-9_]*$/
/** A pattern of more placeholders is not written by hand. */
const MAX_PLACEHOLDERS = 16
/** Each may be as long as the visitor's path: more would make an address that no header can hold. */
const MAX_REFERENCES = 16

export function compilePattern(from: string): PathPattern | PathProblem {
  const path = toNfc(decodeText(from))
  const problem = patternProblem(from, path)
  if (problem) return { problem }
  const names: string[] = []
  for (const [found, name = ''] of path.matchAll(/\/:([^/]*)|\*/g)) {
    if (found === '*') names.push('splat')
    else if (NAME.test(name)) names.push(name)
    else
      return {
        problem: `":${name}" is not a placeholder: use letters, digits and _ for the whole segment, such as :slug`,
      }
  }
  if (new Set(names).size !== names.length) return { problem: `"${from}" uses a placeholder name twice` }
  if (names.length > MAX_PLACEHOLDERS) return { problem: `"${from}" has more than ${MAX_PLACEHOLDERS} placeholders` }
  const form = formOf(path)
  return { names, form, match: (candidate) => matchForm(form, candidate) }
}

function patternProblem(from: string, path: string): string | undefined {
  if (/^https?:\/\//i.test(from))
    return `"${from}" names a host: patterns start with / and apply to every address of the drop`
  if (!from.startsWith('/')) return `"${from}" must start with /`
  if (/[?#]/.test(from)) return `"${from}" must be a path without query or fragment`
  if (!isPlainText(path)) return `"${from}" has a character that no address can have`
  if (path.indexOf('*') !== path.lastIndexOf('*')) return `"${from}" has more than one *`
  if (/\/\.\.?(?:\/|$)/.test(from)) return `"${from}" must not contain . or .. segments`
  return undefined
}

function formOf(path: string): PatternForm {
  if (path.endsWith('/*')) return { ...runsOf(path.slice(0, -2)), end: { kind: 'subtree' } }
  const body = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
  const star = body.indexOf('*')
  if (star < 0) return { ...runsOf(body), end: { kind: 'exact' } }
  return {
    ...runsOf(body.slice(0, star)),
    end: { kind: 'splat', tail: tailOf(body.slice(star + 1)), mayEndWithSlash: !path.endsWith('*') },
  }
}

/** `/a/:b/c` → `/a/`, `/c`. Every segment that begins with a colon is a placeholder. */
function runsOf(text: string): Pick<PatternForm, 'first' | 'rest'> {
  const at = text.indexOf('/:')
  if (at < 0) return { first: text, rest: [] }
  const { first, rest } = runsOf(text.slice(endOfSegment(text, at + 1)))
  return { first: text.slice(0, at + 1), rest: [first, ...rest] }
}

function tailOf(text: string): Tail {
  const { first, rest } = runsOf(text)
  const last = rest.at(-1)
  return last === undefined ? { last: first, before: [] } : { last, before: [first, ...rest.slice(0, -1)].reverse() }
}

const SLASH = 0x2f

function matchForm({ first, rest, end }: PatternForm, path: string): readonly string[] | undefined {
  if (!path.startsWith(first)) return undefined
  let position = first.length
  const found: string[] = []
  for (const run of rest) {
    const segmentEnd = endOfSegment(path, position)
    if (segmentEnd === position || !path.startsWith(run, segmentEnd)) return undefined
    found.push(path.slice(position, segmentEnd))
    position = segmentEnd + run.length
  }
  switch (end.kind) {
    case 'exact':
      if (!isEnd(path, position)) return undefined
      break
    case 'subtree':
      if (position !== path.length && path.charCodeAt(position) !== SLASH) return undefined
      found.push(path.slice(position + 1))
      break
    case 'splat': {
      const values = matchTail(end, path, position)
      if (values === undefined) return undefined
      found.push(...values)
      break
    }
    default:
      return end satisfies never
  }
  return found
}

/** Where the segment that begins here ends: at the next slash, or with the path. */
export function endOfSegment(path: string, position: number): number {
  const slash = path.indexOf('/', position)
  return slash < 0 ? path.length : slash
}

/** Nothing but perhaps one slash is left. A pattern for the root itself takes none. */
export function isEnd(path: string, position: number): boolean {
  if (position === path.length) return true
  return position === path.length - 1 && path.charCodeAt(position) === SLASH && position > 1
}

/** The splat that starts at `from` and the placeholders behind it. The longest splat is the right one. */
export function matchTail(
  { tail, mayEndWithSlash }: Extract<PatternEnd, { kind: 'splat' }>,
  path: string,
  from: number,
  startOf: StartOfSegment = startOfSegment,
): string[] | undefined {
  const whole = tailBefore(path.length, tail, path, from, startOf)
  if (whole !== undefined || !mayEndWithSlash || path.charCodeAt(path.length - 1) !== SLASH) return whole
  return tailBefore(path.length - 1, tail, path, from, startOf)
}

/** Where the segment that ends here began. */
export type StartOfSegment = (path: string, end: number) => number

function startOfSegment(path: string, end: number): number {
  return path.lastIndexOf('/', end - 1) + 1
}

function tailBefore(
  end: number,
  tail: Tail,
  path: string,
  from: number,
  startOf: StartOfSegment,
): string[] | undefined {
  const found: string[] = []
  let position = end - tail.last.length
  if (position < from || !path.startsWith(tail.last, position)) return undefined
  for (const run of tail.before) {
    const segmentStart = startOf(path, position)
    if (segmentStart >= position) return undefined
    found.push(path.slice(segmentStart, position))
    position = segmentStart - run.length
    if (position < from || !path.startsWith(run, position)) return undefined
  }
  found.push(path.slice(from, position))
  return found.reverse()
}

/** Where a rule leads, given what its pattern found for each of its names. */
export interface RuleDestination {
  /** An address elsewhere that the publisher wrote out: `https://…`. */
  readonly isAbsolute: boolean
  /** Value for `Location`: ASCII, encoded, and one-slash relative unless it is absolute. */
  location(values: readonly string[]): string
  /** Decoded path inside the drop, single slashes, for rewrites. Only for destinations that are not absolute. */
  path(values: readonly string[]): string
  /** Whether `path(values)` is this one, found out without building it. */
  leadsTo(path: string, values: readonly string[]): boolean
}

/** `names`: what the pattern yields; other words after a colon stand for themselves. */
export function compileDestination(to: string, names: readonly string[]): RuleDestination | PathProblem {
  const origin = /^https?:\/\/[^/?#]*/i.exec(to)?.[0]
  const problem = destinationProblem(to, origin)
  if (problem) return { problem }
  const rest = to.slice(origin?.length ?? 0)
  const encoded = withEncoders(splitDestination(encodeUnsafe(rest), names))
  if (encoded.references.length > MAX_REFERENCES)
    return { problem: `"${to}" uses more than ${MAX_REFERENCES} placeholders` }
  const decoded = splitDestination(singleSlashes(toNfc(decodeText(before(before(rest, '#'), '?')))), names)
  return {
    isAbsolute: origin !== undefined,
    location: (values) => {
      const text = fill(encoded, values, (value, { encode }) => encode(value))
      return origin === undefined ? oneSlash(text) : origin + text
    },
    path: (values) => singleSlashes(fill(decoded, values, (value) => value)),
    leadsTo: (path, values) => isFilledTo(path, decoded, values),
  }
}

/** A destination taken apart: literal text, and placeholders with the text that follows each. */
interface Template<Kind extends Reference = Reference> {
  readonly start: string
  readonly references: readonly Kind[]
}

interface Reference {
  /** Among the names of the pattern. */
  readonly position: number
  readonly textAfter: string
}

interface EncodedReference extends Reference {
  readonly encode: (value: string) => string
}

/** How each value is written depends on where it lands: a `&` of the path must not begin another parameter. */
function withEncoders({ start, references }: Template): Template<EncodedReference> {
  let isInPath = !/[?#]/.test(start)
  const encoded = references.map((reference) => {
    const encode = isInPath ? encodePath : encodeComponent
    isInPath &&= !/[?#]/.test(reference.textAfter)
    return { ...reference, encode }
  })
  return { start, references: encoded }
}

function isFilledTo(path: string, { start, references }: Template, values: readonly string[]): boolean {
  let end = endOfPart(path, 0, start)
  for (const { position, textAfter } of references) {
    if (end < 0) return false
    end = endOfPart(path, end, values[position] ?? '')
    if (end < 0) return false
    end = endOfPart(path, end, textAfter)
  }
  return end === path.length
}

/** Where the path goes on behind the part that it should have here; -1 when it has another. */
function endOfPart(path: string, position: number, part: string): number {
  // Each part has single slashes; two may meet where parts do.
  const isDoubled = position > 0 && path.charCodeAt(position - 1) === SLASH && part.charCodeAt(0) === SLASH
  const next = isDoubled ? part.slice(1) : part
  const end = position + next.length
  // Native comparison: `startsWith` takes 20 ns per character of a text beyond Latin-1.
  return path.slice(position, end) === next ? end : -1
}

function singleSlashes(path: string): string {
  return path.replace(/\/{2,}/g, '/')
}

function destinationProblem(to: string, origin: string | undefined): string | undefined {
  if (origin !== undefined) {
    // A placeholder in the host would let a visitor choose where the redirect leads.
    const authority = origin.slice(origin.indexOf('//') + 2)
    if (!/^[A-Za-z0-9.-]+(?::\d{1,5})?$/.test(authority)) return `"${to}" must name a plain host, without placeholders`
    return undefined
  }
  if (!/^\/(?![/\\])/.test(to)) return `"${to}" must be a path that starts with one /, or an https:// address`
  return undefined
}

function splitDestination(text: string, names: readonly string[]): Template {
  let start = ''
  const references: { position: number; textAfter: string }[] = []
  let last: { position: number; textAfter: string } | undefined
  for (const piece of text.split(/(:[A-Za-z][A-Za-z0-9_]*)/)) {
    const position = piece.startsWith(':') ? names.indexOf(piece.slice(1)) : -1
    if (position >= 0) references.push((last = { position, textAfter: '' }))
    else if (last) last.textAfter += piece
    else start += piece
  }
  return { start, references }
}

function fill<Kind extends Reference>(
  { start, references }: Template<Kind>,
  values: readonly string[],
  show: (value: string, reference: Kind) => string,
): string {
  let text = start
  for (const reference of references) text += show(values[reference.position] ?? '', reference) + reference.textAfter
  return text
}

/** `//evil.com` and `/\evil.com` are addresses of another host to a browser; one slash is a path here. */
export function oneSlash(location: string): string {
  return `/${location.replace(/^[/\\]+/, '')}`
}

/** Mostly there is nothing to encode. */
const PLAIN_PATH = /^[\w\-./~!$&'()*+,;=:@]*$/

/** A decoded path → the path of an address. Slashes stay slashes. */
export function encodePath(path: string): string {
  if (PLAIN_PATH.test(path)) return path
  return encodeURI(path.toWellFormed()).replace(/[?#]/g, (char) => (char === '?' ? '%3F' : '%23'))
}

/** A value inside a query or a fragment; slashes are legal there and stay readable (RFC 3986 §3.4). */
function encodeComponent(value: string): string {
  return encodeURIComponent(value.toWellFormed()).replaceAll('%2F', '/')
}

/** Encodes what an address cannot hold and leaves what is already encoded alone. */
export function encodeUnsafe(text: string): string {
  return text.replace(/[^\x21-\x7e]+|[\\"<>^`{|}]/g, (run) => encodeURIComponent(run.toWellFormed()))
}

/** No control characters and no backslash. */
function isPlainText(text: string): boolean {
  return !/[\p{Cc}\\]/u.test(text)
}

/** Percent-decodes; a text that is not well encoded stands for itself. */
function decodeText(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
