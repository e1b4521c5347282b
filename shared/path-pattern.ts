/**
 * The grammar that `_redirects` and `_headers` share: at publish time it finds the mistakes, at serve time it matches.
 *
 *   /old                literal; a trailing slash in the request does not matter
 *   /blog/:slug         a placeholder is one whole, non-empty segment
 *   /news/*             one splat: anything, also nothing and also `/news` itself
 *
 * A request path is matched decoded and with single slashes; values come out decoded.
 */

export interface PathPattern {
  /** Names that a target may use, `splat` included. */
  readonly names: readonly string[]
  match(path: string): ReadonlyMap<string, string> | undefined
}

export interface PathProblem {
  /** Says what to do, for the publish report. */
  readonly problem: string
}

const PLACEHOLDER = /^:([A-Za-z][A-Za-z0-9_]*)$/
/** A pattern of more placeholders is not written by hand. */
const MAX_PLACEHOLDERS = 16
const NO_VALUES: ReadonlyMap<string, string> = new Map()

export function compilePattern(from: string): PathPattern | PathProblem {
  const problem = patternProblem(from)
  if (problem) return { problem }
  const path = decodeText(from).normalize('NFC')
  const names: string[] = []
  for (const segment of path.split('/')) {
    const name = PLACEHOLDER.exec(segment)?.[1]
    if (name) names.push(name)
    else if (segment.startsWith(':'))
      return {
        problem: `"${segment}" is not a placeholder: use letters, digits and _ for the whole segment, such as :slug`,
      }
    if (segment.includes('*')) names.push('splat')
  }
  if (new Set(names).size !== names.length) return { problem: `"${from}" uses a placeholder name twice` }
  if (names.length > MAX_PLACEHOLDERS) return { problem: `"${from}" has more than ${MAX_PLACEHOLDERS} placeholders` }
  return names.length === 0 ? literalPattern(path) : dynamicPattern(path, names)
}

function patternProblem(from: string): string | undefined {
  if (/^https?:\/\//i.test(from))
    return `"${from}" names a host: patterns start with / and apply to every address of the drop`
  if (!from.startsWith('/')) return `"${from}" must start with /`
  if (/[?#]/.test(from)) return `"${from}" must be a path without query or fragment`
  if (!isPlainText(decodeText(from))) return `"${from}" has a character that no address can have`
  if (from.split('*').length > 2) return `"${from}" has more than one *`
  if (from.split('/').some((segment) => segment === '.' || segment === '..'))
    return `"${from}" must not contain . or .. segments`
  return undefined
}

function literalPattern(path: string): PathPattern {
  const bare = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
  const slashed = bare === '/' ? bare : `${bare}/`
  return { names: [], match: (candidate) => (candidate === bare || candidate === slashed ? NO_VALUES : undefined) }
}

/** The literal text before the first variable part refuses most paths before the expression is tried. */
function dynamicPattern(path: string, names: readonly string[]): PathPattern {
  const expression = patternExpression(path)
  const prefix = path.slice(0, firstVariable(path))
  return {
    names,
    match(candidate) {
      if (!candidate.startsWith(prefix)) return undefined
      const found = expression.exec(candidate)
      if (!found) return undefined
      const values = new Map<string, string>()
      for (let index = 0; index < names.length; index++) values.set(names[index]!, found[index + 1] ?? '')
      return values
    },
  }
}

/** Where the literal prefix ends; `/news` of `/news/*`, because that matches without the slash too. */
function firstVariable(path: string): number {
  const star = path.endsWith('/*') ? path.length - 2 : path.indexOf('*')
  const placeholder = path.indexOf('/:')
  const ends = [star, placeholder < 0 ? -1 : placeholder + 1].filter((position) => position >= 0)
  return Math.min(...ends)
}

/** At most one `.*`, and placeholders end at a slash: matching takes time linear in the path. */
function patternExpression(path: string): RegExp {
  if (path === '/*') return /^\/(.*)$/s
  const tail = path.endsWith('/*') ? '(?:/(.*))?' : path.endsWith('*') ? '' : '/?'
  const body = path.endsWith('/*') ? path.slice(0, -2) : path.endsWith('/') ? path.slice(0, -1) : path
  const source = body
    .split('/')
    .map((segment) => (PLACEHOLDER.test(segment) ? '([^/]+)' : segment.split('*').map(escapeExpression).join('(.*)')))
    .join('/')
  return new RegExp(`^${source}${tail}$`, 's')
}

function escapeExpression(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}

/** Where a rule leads. */
export interface PathTarget {
  /** An address elsewhere that the publisher wrote out: `https://…`. */
  readonly isAbsolute: boolean
  /** Value for `Location`: ASCII, encoded, and one-slash relative unless it is absolute. */
  location(values: ReadonlyMap<string, string>): string
  /** Decoded path inside the drop, single slashes, for rewrites. Only for targets that are not absolute. */
  path(values: ReadonlyMap<string, string>): string
}

/** `names`: what the pattern yields; other words after a colon stand for themselves. */
export function compileTarget(to: string, names: readonly string[]): PathTarget | PathProblem {
  const origin = /^https?:\/\/[^/?#]*/i.exec(to)?.[0]
  const problem = targetProblem(to, origin)
  if (problem) return { problem }
  const rest = to.slice(origin?.length ?? 0)
  const encoded = splitTarget(encodeUnsafe(rest), names)
  const decoded = splitTarget(decodeText(rest.split(/[?#]/, 1)[0]!).normalize('NFC'), names)
  return {
    isAbsolute: origin !== undefined,
    location: (values) => {
      const text = fill(encoded, values, encodePath)
      return origin === undefined ? oneSlash(text) : origin + text
    },
    path: (values) => fill(decoded, values, (value) => value).replace(/\/{2,}/g, '/'),
  }
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

function fill(parts: readonly string[], values: ReadonlyMap<string, string>, show: (value: string) => string): string {
  let text = parts[0]!
  for (let index = 1; index < parts.length; index += 2)
    text += show(values.get(parts[index]!) ?? '') + parts[index + 1]!
  return text
}

/** `//evil.com` and `/\evil.com` are addresses of another host to a browser; one slash is a path here. */
export function oneSlash(location: string): string {
  return /^[/\\]{2}|^[^/]|^$/.test(location) ? `/${location.replace(/^[/\\]+/, '')}` : location
}

/** A decoded path → the path of an address. Slashes stay slashes. */
export function encodePath(path: string): string {
  return encodeURI(path.toWellFormed()).replace(/[?#]/g, (char) => (char === '?' ? '%3F' : '%23'))
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
