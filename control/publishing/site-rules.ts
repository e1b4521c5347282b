/**
 * Parses `_redirects` and `_headers`, in the syntax that other static hosts share. A line with a mistake is left out and
 * reported with its number and what to do; it never costs the publish.
 *
 *   _redirects      /old  /new  301!            from, to, status (301 when left out), `!` wins over a real file
 *   _headers        /assets/*                   a path pattern, then indented lines
 *                     Cache-Control: max-age=60
 *                     ! X-Frame-Options         removes a header
 */
import { isHeaderName, isHeaderValue, maySetHeader } from '../../shared/header-policy.ts'
import { MAX_HEADER_RULES, MAX_REDIRECT_LINE_CHARS, MAX_REDIRECT_RULES } from '../../shared/limits.ts'
import type { HeaderRule, RedirectRule } from '../../shared/manifest.ts'
import { compilePattern, compileTarget } from '../../shared/path-pattern.ts'

export interface InvalidLine {
  readonly path: '_redirects' | '_headers'
  readonly line: number
  readonly message: string
}

export interface SiteRules {
  readonly redirects: readonly RedirectRule[]
  readonly headers: readonly HeaderRule[]
  readonly invalid: readonly InvalidLine[]
}

export function parseSiteRules(texts: { redirects: string; headers: string }): SiteRules {
  const redirects = parseRedirects(texts.redirects)
  const headers = parseHeaders(texts.headers)
  return { redirects: redirects.rules, headers: headers.rules, invalid: [...redirects.invalid, ...headers.invalid] }
}

interface Line {
  readonly number: number
  readonly text: string
  readonly isIndented: boolean
}

/** Lines with content; a `#` at the start of a line makes it a comment. */
function* linesOf(text: string): Generator<Line> {
  const lines = text.replace(/^\ufeff/, '').split(/\r\n|\n|\r/)
  for (const [index, raw] of lines.entries()) {
    const trimmed = raw.trim()
    if (trimmed !== '' && !trimmed.startsWith('#'))
      yield { number: index + 1, text: trimmed, isIndented: /^\s/.test(raw) }
  }
}

interface Parsed<Rule> {
  readonly rules: Rule[]
  readonly invalid: InvalidLine[]
}

const STATUSES: readonly RedirectRule['status'][] = [200, 301, 302, 303, 307, 308, 404]

export function parseRedirects(text: string): Parsed<RedirectRule> {
  const rules: RedirectRule[] = []
  const invalid: InvalidLine[] = []
  for (const line of linesOf(text)) {
    if (rules.length >= MAX_REDIRECT_RULES) {
      invalid.push({
        path: '_redirects',
        line: line.number,
        message: `Only the first ${MAX_REDIRECT_RULES} rules count; this line and those after it are ignored.`,
      })
      break
    }
    const parsed = parseRedirect(line)
    if (typeof parsed === 'string') invalid.push({ path: '_redirects', line: line.number, message: parsed })
    else rules.push(parsed)
  }
  return { rules, invalid }
}

/** A rule, or what to do about the line. */
function parseRedirect({ text, number }: Line): RedirectRule | string {
  if (text.length > MAX_REDIRECT_LINE_CHARS) return `The line is longer than ${MAX_REDIRECT_LINE_CHARS} characters.`
  const [from = '', to, ...rest] = withoutComment(text).split(/\s+/)
  if (to === undefined) return 'A rule needs a path and a target: /old /new 301.'
  const { status, force, problem } = parseStatus(rest)
  if (problem !== undefined) return problem
  const pattern = compilePattern(from)
  if ('problem' in pattern) return `${pattern.problem}.`
  const target = compileTarget(to, pattern.names)
  if ('problem' in target) return `${target.problem}.`
  if (target.isAbsolute && (status === 200 || status === 404)) {
    return `Status ${status} must name a path inside the drop; another host is never fetched for a visitor. Use 301 or 302.`
  }
  if (pointsAtItself(from, to, status, pattern.match, target.path))
    return `"${from}" points at itself and was left out.`
  return { from, to, status, force, line: number }
}

/** ` # note` after a rule; a `#` inside an address is its fragment. */
function withoutComment(text: string): string {
  return text.replace(/\s+#.*$/, '')
}

function parseStatus(words: readonly string[]): { status: RedirectRule['status']; force: boolean; problem?: string } {
  const none = { status: 301 as const, force: false }
  if (words.length === 0) return none
  if (words.some((word) => word.includes('=')) || words.length > 1) {
    return {
      ...none,
      problem: 'Conditions (Country=, Language=, query parameters) are not supported; keep path, target and status.',
    }
  }
  const match = /^(\d{3})(!?)$/.exec(words[0]!)
  const status = STATUSES.find((candidate) => candidate === Number(match?.[1]))
  if (!match || status === undefined)
    return {
      ...none,
      problem: `"${words[0]}" is not a status; use one of ${STATUSES.join(', ')}, with ! to win over a file.`,
    }
  return { status, force: match[2] === '!' }
}

/**
 * A redirect whose target matches the rule again would send a visitor round in circles. `/* /index.html 200` is a
 * rewrite, which looks for a file and does not come back to the rules.
 */
function pointsAtItself(
  from: string,
  to: string,
  status: RedirectRule['status'],
  match: (path: string) => ReadonlyMap<string, string> | undefined,
  pathOf: (values: ReadonlyMap<string, string>) => string,
): boolean {
  if (/^https?:/i.test(to)) return false
  if (status === 200 || status === 404) return from === to
  const example = exampleOf(from)
  const values = match(example)
  if (!values) return false
  const target = pathOf(values)
  return target === example || match(target) !== undefined
}

/** A path that a pattern matches. */
function exampleOf(from: string): string {
  return from.replace(/:([A-Za-z][A-Za-z0-9_]*)/g, 'x-$1').replace('*', 'x-splat')
}

export function parseHeaders(text: string): Parsed<HeaderRule> {
  const rules: HeaderRule[] = []
  const invalid: InvalidLine[] = []
  const report = (line: Line, message: string): void =>
    void invalid.push({ path: '_headers', line: line.number, message })
  /** Undefined before the first pattern; null under a pattern that was refused, whose lines are passed over. */
  let current: HeaderRule | null | undefined
  for (const line of linesOf(text)) {
    if (!line.isIndented) {
      if (rules.length >= MAX_HEADER_RULES) {
        report(line, `Only the first ${MAX_HEADER_RULES} patterns count; this line and those after it are ignored.`)
        break
      }
      const problem = line.text.length > MAX_REDIRECT_LINE_CHARS ? 'The line is too long.' : patternProblem(line.text)
      if (problem === undefined) rules.push((current = { from: line.text, set: [], line: line.number }))
      else {
        current = null
        report(line, problem)
      }
      continue
    }
    if (current === null) continue
    const header = current === undefined ? 'A header must stand below the path that it is for.' : parseHeader(line.text)
    if (typeof header === 'string') report(line, header)
    else current!.set.push(header)
  }
  return { rules: rules.filter((rule) => rule.set.length > 0), invalid }
}

function patternProblem(text: string): string | undefined {
  if (/^[A-Za-z0-9-]+:\s/.test(text)) return 'A header must be indented below the path that it is for.'
  const pattern = compilePattern(text)
  return 'problem' in pattern ? `${pattern.problem}.` : undefined
}

/** `Name: value`, or `! Name` to remove it. */
function parseHeader(text: string): [string, string | null] | string {
  if (text.length > MAX_REDIRECT_LINE_CHARS) return `The line is longer than ${MAX_REDIRECT_LINE_CHARS} characters.`
  const isRemoval = text.startsWith('!')
  const colon = text.indexOf(':')
  if (!isRemoval && colon < 0) return 'A header needs a name and a value: Cache-Control: max-age=60.'
  const name = (isRemoval ? text.slice(1) : text.slice(0, colon)).trim()
  const value = isRemoval ? null : text.slice(colon + 1).trim()
  if (!isHeaderName(name)) return `"${name}" is not a header name.`
  if (!maySetHeader(name.toLowerCase())) return `${name} is set by the service and cannot be changed.`
  if (value !== null && !isHeaderValue(value)) return `The value of ${name} has a character that a header cannot hold.`
  return [name.toLowerCase(), value]
}
