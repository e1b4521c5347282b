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
import { toNfc } from './nfc.ts'

export interface PathPattern {
  /** Names that a target may use, `splat` included, in the order of the path. */
  readonly names: readonly string[]
  readonly form: PatternForm
  match(path: string): ReadonlyMap<string, string> | undefined
}

/** A pattern taken apart: literal runs with a placeholder between each two of them, and what may follow. */
export interface PatternForm {
  readonly runs: readonly string[]
  readonly end: PatternEnd
}

export type PatternEnd =
  /** Nothing more, or one slash. */
  | { readonly kind: 'exact' }
  /** Nothing more, or a slash and anything. */
  | { readonly kind: 'subtree' }
  /** Anything, then again runs with placeholders between them. */
  | { readonly kind: 'splat'; readonly tail: readonly string[]; readonly mayEndWithSlash: boolean }

export interface PathProblem {
  /** Says what to do, for the publish report. */
  readonly problem: string
}

const NAME = /^[A-Za-z][A-Za-z0-9_]*$/
/** A pattern of more placeholders is not written by hand. */
const MAX_PLACEHOLDERS = 16
/** Each may be as long as the visitor's path: more would make an address that no header can hold. */
const MAX_REFERENCES = 16
const NO_VALUES: ReadonlyMap<string, string> = new Map()

export function compilePattern(from: string): PathPattern | PathProblem {
  const path = toNfc(decodeText(from))
  const problem = patternProblem(from, path)
  if (problem) return { problem }
  const names: string[] = []
  for (const [found, name] of path.matchAll(/\/:([^/]*)|\*/g)) {
    if (found === '*') names.push('splat')
    else if (NAME.test(name!)) names.push(name!)
    else
      return {
        problem: `":${name}" is not a placeholder: use letters, digits and _ for the whole segment, such as :slug`,
      }
  }
  if (new Set(names).size !== names.length) return { problem: `"${from}" uses a placeholder name twice` }
  if (names.length > MAX_PLACEHOLDERS) return { problem: `"${from}" has more than ${MAX_PLACEHOLDERS} placeholders` }
  const form = formOf(path)
  return { names, form, match: (candidate) => matchForm(form, names, candidate) }
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
  if (path.endsWith('/*')) return { runs: runsOf(path.slice(0, -2)), end: { kind: 'subtree' } }
  const body = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
  const star = body.indexOf('*')
  if (star < 0) return { runs: runsOf(body), end: { kind: 'exact' } }
  return {
    runs: runsOf(body.slice(0, star)),
    end: { kind: 'splat', tail: runsOf(body.slice(star + 1)), mayEndWithSlash: !path.endsWith('*') },
  }
}

/** `/a/:b/c` → `/a/`, `/c`. Every segment that begins with a colon is a placeholder. */
function runsOf(text: string): string[] {
  const runs: string[] = []
  let start = 0
  for (let at = text.indexOf('/:'); at >= 0; at = text.indexOf('/:', start)) {
    runs.push(text.slice(start, at + 1))
    start = endOfSegment(text, at + 1)
  }
  runs.push(text.slice(start))
  return runs
}

const SLASH = 0x2f

function matchForm(form: PatternForm, names: readonly string[], path: string): ReadonlyMap<string, string> | undefined {
  const { runs, end } = form
  if (!path.startsWith(runs[0]!)) return undefined
  let position = runs[0]!.length
  const found: string[] = []
  for (let index = 1; index < runs.length; index++) {
    const segmentEnd = endOfSegment(path, position)
    if (segmentEnd === position || !path.startsWith(runs[index]!, segmentEnd)) return undefined
    found.push(path.slice(position, segmentEnd))
    position = segmentEnd + runs[index]!.length
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
      const rest = matchTail(end, path, position)
      if (rest === undefined) return undefined
      found.push(...rest)
      break
    }
    default:
      return end satisfies never
  }
  return names.length === 0 ? NO_VALUES : new Map(names.map((name, index) => [name, found[index]!]))
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
  tail: readonly string[],
  path: string,
  from: number,
  startOf: StartOfSegment,
): string[] | undefined {
  const found: string[] = []
  let position = end
  for (let index = tail.length - 1; ; index--) {
    const run = tail[index]!
    position -= run.length
    if (position < from || !path.startsWith(run, position)) return undefined
    if (index === 0) break
    const segmentStart = startOf(path, position)
    if (segmentStart >= position) return undefined
    found.push(path.slice(segmentStart, position))
    position = segmentStart
  }
  found.push(path.slice(from, position))
  return found.reverse()
}

/** Where a rule leads. */
export interface PathTarget {
  /** An address elsewhere that the publisher wrote out: `https://…`. */
  readonly isAbsolute: boolean
  /** Value for `Location`: ASCII, encoded, and one-slash relative unless it is absolute. */
  location(values: ReadonlyMap<string, string>): string
  /** Decoded path inside the drop, single slashes, for rewrites. Only for targets that are not absolute. */
  path(values: ReadonlyMap<string, string>): string
  /** Whether `path(values)` is this one, found out without building it. */
  leadsTo(path: string, values: ReadonlyMap<string, string>): boolean
}

/** `names`: what the pattern yields; other words after a colon stand for themselves. */
export function compileTarget(to: string, names: readonly string[]): PathTarget | PathProblem {
  const origin = /^https?:\/\/[^/?#]*/i.exec(to)?.[0]
  const problem = targetProblem(to, origin)
  if (problem) return { problem }
  const rest = to.slice(origin?.length ?? 0)
  const encoded = splitTarget(encodeUnsafe(rest), names)
  if ((encoded.length - 1) / 2 > MAX_REFERENCES)
    return { problem: `"${to}" uses more than ${MAX_REFERENCES} placeholders` }
  const encoders = encodersOf(encoded)
  const decoded = splitTarget(singleSlashes(toNfc(decodeText(rest.split(/[?#]/, 1)[0]!))), names)
  return {
    isAbsolute: origin !== undefined,
    location: (values) => {
      const text = fill(encoded, values, (value, index) => encoders[index]!(value))
      return origin === undefined ? oneSlash(text) : origin + text
    },
    path: (values) => singleSlashes(fill(decoded, values, (value) => value)),
    leadsTo: (path, values) => isFilledTo(path, decoded, values),
  }
}

type Encode = (value: string) => string

/** How each value is written depends on where it lands: a `&` of the path must not begin another parameter. */
function encodersOf(parts: readonly string[]): Encode[] {
  const encoders: Encode[] = []
  let encode: Encode = encodePath
  for (let index = 0; index < parts.length; index += 2) {
    if (/[?#]/.test(parts[index]!)) encode = encodeComponent
    encoders.push(encode)
  }
  return encoders
}

function isFilledTo(path: string, parts: readonly string[], values: ReadonlyMap<string, string>): boolean {
  let position = 0
  for (let index = 0; index < parts.length; index++) {
    const text = index % 2 === 0 ? parts[index]! : (values.get(parts[index]!) ?? '')
    // Each part has single slashes; two may meet where parts do.
    const doubled = position > 0 && path.charCodeAt(position - 1) === SLASH && text.charCodeAt(0) === SLASH
    const next = doubled ? text.slice(1) : text
    // Native comparison: `startsWith` takes 20 ns per character of a text beyond Latin-1.
    if (path.slice(position, position + next.length) !== next) return false
    position += next.length
  }
  return position === path.length
}

function singleSlashes(path: string): string {
  return path.replace(/\/{2,}/g, '/')
}

function targetProblem(to: string, origin: string | undefined): string | undefined {
  if (origin !== undefined) {
    // A placeholder in the host would let a visitor choose where the redirect leads.
    const authority = origin.slice(origin.indexOf('//') + 2)
    if (!/^[A-Za-z0-9.-]+(?::\d{1,5})?$/.test(authority)) return `"${to}" must name a plain host, without placeholders`
    return undefined
  }
  if (!/^\/(?![/\\])/.test(to)) return `"${to}" must be a path that starts with one /, or an https:// address`
  return undefined
}

/** Literal texts at even, names at odd positions. */
function splitTarget(text: string, names: readonly string[]): readonly string[] {
  const parts: string[] = ['']
  for (const piece of text.split(/(:[A-Za-z][A-Za-z0-9_]*)/)) {
    if (piece.startsWith(':') && names.includes(piece.slice(1))) parts.push(piece.slice(1), '')
    else parts[parts.length - 1] += piece
  }
  return parts
}

/** `show` is told which reference it is, counted from the left. */
function fill(
  parts: readonly string[],
  values: ReadonlyMap<string, string>,
  show: (value: string, reference: number) => string,
): string {
  let text = parts[0]!
  for (let index = 1; index < parts.length; index += 2)
    text += show(values.get(parts[index]!) ?? '', (index - 1) / 2) + parts[index + 1]!
  return text
}

/** `//evil.com` and `/\evil.com` are addresses of another host to a browser; one slash is a path here. */
export function oneSlash(location: string): string {
  return `/${location.replace(/^[/\\]+/, '')}`
}

/** A decoded path → the path of an address. Slashes stay slashes. */
export function encodePath(path: string): string {
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
