/**
 * Parses `_redirects` and `_headers`, in the syntax that other static hosts share. A line with a mistake is left out and
 * reported with its number and what to do; it never costs the publish.
 *
 *   _redirects      /old  /new  301!            from, to, status (301 when left out), `!` wins over a real file
 *   _headers        /assets/*                   a path pattern, then indented lines
 *                     Cache-Control: max-age=60
 *                     ! X-Frame-Options         removes a header
 *
 * Linear in the text, which is at most a megabyte.
 */
import type { BlobStore } from '../../../../shared/blobs/blob-store.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { isHeaderName, isHeaderValue, isSingleHeader, maySetHeader } from '../../../../shared/http/header-policy.ts'
import {
  MAX_CUSTOM_HEADER_BYTES,
  MAX_HEADER_RULES,
  MAX_HEADER_RULES_BYTES,
  MAX_REDIRECT_LINE_CHARS,
  MAX_REDIRECT_RULES,
} from '../../../../shared/contracts/limits.ts'
import type { HeaderRule, RedirectRule } from '../../../../shared/contracts/manifest.ts'
import { compilePattern, compileDestination } from '../../../../shared/content/path-pattern.ts'
import { shorten } from '../html/text.ts'
import { decodeText } from '../files/text-encoding.ts'

/** Larger rule files are not written by hand; each has at most a few thousand lines. */
const MAX_RULE_FILE_BYTES = 1_000_000
/** Enough to see what is wrong; a file of nothing else is not read to its end. */
const MAX_INVALID_LINES = 200

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

export interface RuleFiles {
  readonly redirects: { readonly hash: string; readonly size: number } | undefined
  readonly headers: { readonly hash: string; readonly size: number } | undefined
}

/** Runs in a worker thread. */
export async function readSiteRules(blobs: Pick<BlobStore, 'read'>, files: RuleFiles): Promise<SiteRules> {
  const text = async (name: keyof RuleFiles): Promise<string> => {
    const file = files[name]
    if (!file) return ''
    if (file.size > MAX_RULE_FILE_BYTES)
      throw errors.invalidRequest(`_${name} is larger than ${MAX_RULE_FILE_BYTES / 1_000_000} MB.`)
    return decodeText(await blobs.read(file.hash))
  }
  return parseSiteRules({ redirects: await text('redirects'), headers: await text('headers') })
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

const TOO_MANY_MISTAKES = `More than ${MAX_INVALID_LINES} lines have mistakes; this line and those after it are ignored.`

const STATUSES: readonly RedirectRule['status'][] = [200, 301, 302, 303, 307, 308, 404]

export function parseRedirects(text: string): Parsed<RedirectRule> {
  const rules: RedirectRule[] = []
  const invalid: InvalidLine[] = []
  for (const line of linesOf(text)) {
    if (invalid.length >= MAX_INVALID_LINES) {
      invalid.push({ path: '_redirects', line: line.number, message: TOO_MANY_MISTAKES })
      break
    }
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
  if (to === undefined) return 'A rule needs a path and a destination: /old /new 301.'
  const { status, force, problem } = parseStatus(rest)
  if (problem !== undefined) return problem
  const pattern = compilePattern(from)
  if ('problem' in pattern) return `${pattern.problem}.`
  const destination = compileDestination(to, pattern.names)
  if ('problem' in destination) return `${destination.problem}.`
  if (destination.isAbsolute && (status === 200 || status === 404)) {
    return `Status ${status} must name a path inside the drop; another host is never fetched for a visitor. Use 301 or 302.`
  }
  if (pointsAtItself(from, to, status, pattern.match, destination.path))
    return `"${from}" points at itself and was left out.`
  return { from, to, status, force, line: number }
}

/** ` # note` after a rule; a `#` inside an address is its fragment. */
function withoutComment(text: string): string {
  const mark = text.search(/\s#/)
  return mark < 0 ? text : text.slice(0, mark).trimEnd()
}

function parseStatus(words: readonly string[]): { status: RedirectRule['status']; force: boolean; problem?: string } {
  const none = { status: 301 as const, force: false }
  const [word, ...others] = words
  if (word === undefined) return none
  if (words.some((word) => word.includes('=')) || others.length > 0) {
    return {
      ...none,
      problem:
        'Conditions (Country=, Language=, query parameters) are not supported; keep path, destination and status.',
    }
  }
  const match = /^(\d{3})(!?)$/.exec(word)
  const status = STATUSES.find((candidate) => candidate === Number(match?.[1]))
  if (!match || status === undefined)
    return {
      ...none,
      problem: `"${words[0]}" is not a status; use one of ${STATUSES.join(', ')}, with ! to win over a file.`,
    }
  return { status, force: match[2] === '!' }
}

/**
 * A redirect whose destination matches the rule again would send a visitor round in circles. `/* /index.html 200` is a
 * rewrite, which looks for a file and does not come back to the rules.
 */
function pointsAtItself(
  from: string,
  to: string,
  status: RedirectRule['status'],
  match: (path: string) => readonly string[] | undefined,
  pathOf: (values: readonly string[]) => string,
): boolean {
  if (/^https?:/i.test(to)) return false
  if (status === 200 || status === 404) return from === to
  const example = exampleOf(from)
  const values = match(example)
  if (!values) return false
  const destination = pathOf(values)
  return destination === example || match(destination) !== undefined
}

/** A path that a pattern matches. */
function exampleOf(from: string): string {
  return from.replace(/:([A-Za-z][A-Za-z0-9_]*)/g, 'x-$1').replace('*', 'x-splat')
}

export function parseHeaders(text: string): Parsed<HeaderRule> {
  const rules: HeaderRule[] = []
  const invalid: InvalidLine[] = []
  const sizes = createHeaderSizes()
  const report = (line: number, message: string): void => void invalid.push({ path: '_headers', line, message })
  /** Undefined before the first pattern; null under a pattern that was refused, whose lines are passed over. */
  let block: HeaderBlock | null | undefined
  const close = (): void => {
    if (!block || block.set.size === 0) return
    const problem = sizes.add(block)
    if (problem === undefined) rules.push({ from: block.from, set: [...block.set], line: block.line })
    else report(block.line, problem)
  }
  for (const line of linesOf(text)) {
    if (invalid.length >= MAX_INVALID_LINES) {
      report(line.number, TOO_MANY_MISTAKES)
      break
    }
    if (line.isIndented) {
      if (block === undefined) report(line.number, 'A header must stand below the path that it is for.')
      else if (block !== null) addHeader(block, line, report)
    } else if (looksLikeHeader(line.text)) {
      // The path stays the one above: what comes after this line is not lost with it.
      report(line.number, 'A header must be indented below the path that it is for.')
    } else {
      close()
      block = null
      if (rules.length >= MAX_HEADER_RULES) {
        report(
          line.number,
          `Only the first ${MAX_HEADER_RULES} patterns count; this line and those after it are ignored.`,
        )
        break
      }
      const opened = openBlock(line)
      if (typeof opened === 'string') report(line.number, opened)
      else block = opened
    }
  }
  close()
  return { rules, invalid }
}

interface HeaderBlock {
  readonly from: string
  readonly line: number
  /** What the path starts with, up to its first variable part. */
  readonly prefix: string
  readonly isLiteral: boolean
  readonly set: Map<string, string | null>
}

function openBlock({ text, number }: Line): HeaderBlock | string {
  if (text.length > MAX_REDIRECT_LINE_CHARS) return 'The line is too long.'
  const pattern = compilePattern(text)
  if ('problem' in pattern) return `${pattern.problem}.`
  const { names, form } = pattern
  return { from: text, line: number, prefix: form.first, isLiteral: names.length === 0, set: new Map() }
}

/** Lines of one name are entries of one list, unless the header has one value only: then the last line counts. */
function addHeader({ set, from }: HeaderBlock, line: Line, report: (line: number, message: string) => void): void {
  const header = parseHeader(line.text)
  if (typeof header === 'string') return report(line.number, header)
  const [name, value] = header
  const before = set.get(name)
  const isJoined = value !== null && before != null && !isSingleHeader(name)
  if (before !== undefined && !isJoined)
    report(line.number, `${name} stands twice below ${shorten(from, 100)}; this line replaces the one above it.`)
  set.set(name, isJoined ? `${before}, ${value}` : value)
}

interface HeaderSizes {
  /** Undefined when the block fits, and is counted from now on. */
  add(block: HeaderBlock): string | undefined
}

/**
 * Bounds what any answer carries, whichever rules its path meets: all rules that match one path have prefixes that begin
 * each other, so it is enough to add up along such chains. The square of MAX_HEADER_RULES comparisons.
 */
function createHeaderSizes(): HeaderSizes {
  const chains: { block: HeaderBlock; bytes: number; total: number }[] = []
  let all = 0
  const mayMeet = (shorter: HeaderBlock, longer: HeaderBlock): boolean =>
    shorter.isLiteral ? shorter.prefix === longer.prefix : longer.prefix.startsWith(shorter.prefix)
  return {
    add(block) {
      const bytes = Array.from(block.set, ([name, value]) => name.length + (value?.length ?? 0)).reduce(
        (sum, size) => sum + size,
        0,
      )
      if (all + bytes > MAX_HEADER_RULES_BYTES)
        return `The headers of this file are larger than ${MAX_HEADER_RULES_BYTES / 1000} kB; this path is left out.`
      const total = chains.reduce((sum, other) => sum + (mayMeet(other.block, block) ? other.bytes : 0), bytes)
      const longer = chains.filter((other) => other.block.prefix !== block.prefix && mayMeet(block, other.block))
      if (Math.max(total, ...longer.map((other) => other.total + bytes)) > MAX_CUSTOM_HEADER_BYTES)
        return `An answer would have more than ${MAX_CUSTOM_HEADER_BYTES} bytes of headers, which browsers refuse; this path is left out.`
      for (const other of longer) other.total += bytes
      all += bytes
      chains.push({ block, bytes, total })
      return undefined
    },
  }
}

/** `Name: value` where a path should stand. */
function looksLikeHeader(text: string): boolean {
  return /^(?:! ?)?[A-Za-z0-9-]+:(?:\s|$)/.test(text)
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
  if (value === '') return `${name} has no value and is left out. Write ! ${name} to remove a header.`
  if (value !== null && !isHeaderValue(value)) return `The value of ${name} has a character that a header cannot hold.`
  return [name.toLowerCase(), value]
}
