/**
 * Parses `_redirects` and `_headers`, in the syntax that other static hosts share, and puts rules from other hosts' own
 * files behind them (other-hosts/). A line with a mistake is left out and reported with its number and what to do; it
 * never costs the publish.
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
import { isRuleFile, type StoredFile } from './manifest-builder.ts'
import {
  isTranslatedFile,
  TRANSLATED_FILES,
  type PageLayout,
  type TranslatedHeaders,
  type TranslatedRedirect,
  type Translation,
} from './other-hosts/host-file.ts'
import { MAX_HOST_FILE_BYTES, tooLarge, translateHostFile } from './other-hosts/translate.ts'

/** Larger rule files are not written by hand; each has at most a few thousand lines. */
const MAX_RULE_FILE_BYTES = 1_000_000
/** Files of other hosts that are named: `.htaccess` may lie in every folder. */
const MAX_HOST_FILES = 50
/** Enough to see what is wrong; a file of nothing else is not read to its end. */
const MAX_INVALID_LINES = 200

export interface InvalidLine {
  readonly path: '_redirects' | '_headers'
  readonly line: number
  readonly message: string
}

/** A file of another host: what was taken from it, and what does nothing here. */
export interface HostFileReport {
  readonly path: string
  readonly redirects: number
  readonly headers: number
  readonly ignored: readonly string[]
}

export interface SiteRules {
  readonly redirects: readonly RedirectRule[]
  readonly headers: readonly HeaderRule[]
  readonly invalid: readonly InvalidLine[]
  readonly hostFiles: readonly HostFileReport[]
}

interface RuleFile {
  readonly hash: string
  readonly size: number
}

export interface RuleFiles {
  readonly redirects: RuleFile | undefined
  readonly headers: RuleFile | undefined
  /** Files of other hosts, in the order in which they count. */
  readonly hostFiles: readonly (RuleFile & { readonly path: string })[]
  readonly layout: PageLayout
}

/** Those of an upload. Pure. */
export function ruleFilesOf(files: readonly StoredFile[]): RuleFiles {
  const byPath = new Map(files.filter(({ path }) => isRuleFile(path)).map((file) => [file.path, file]))
  const known = ['_redirects', '_headers', ...TRANSLATED_FILES]
  // Those that are translated count in their own order; the others are only told.
  const hostFiles = [
    ...TRANSLATED_FILES.flatMap((name) => byPath.get(name) ?? []),
    ...[...byPath.values()].filter(({ path }) => !known.includes(path)),
  ]
  const pages = files.map(({ path }) => path).filter((path) => path.endsWith('.html') && !path.endsWith('404.html'))
  return {
    redirects: pickBlob(byPath.get('_redirects')),
    headers: pickBlob(byPath.get('_headers')),
    hostFiles: hostFiles.slice(0, MAX_HOST_FILES).map(({ path, hash, size }) => ({ path, hash, size })),
    layout: {
      hasFlatPages: pages.some((path) => !path.endsWith('index.html')),
      hasFolderPages: pages.some((path) => path.endsWith('/index.html')),
    },
  }
}

function pickBlob(file: StoredFile | undefined): RuleFiles['redirects'] {
  return file && { hash: file.hash, size: file.size }
}

/** Runs in a worker thread. */
export async function readSiteRules(blobs: Pick<BlobStore, 'read'>, files: RuleFiles): Promise<SiteRules> {
  const text = async (name: 'redirects' | 'headers'): Promise<string> => {
    const file = files[name]
    if (!file) return ''
    if (file.size > MAX_RULE_FILE_BYTES)
      throw errors.invalidRequest(`_${name} is larger than ${MAX_RULE_FILE_BYTES / 1_000_000} MB.`)
    return decodeText(await blobs.read(file.hash))
  }
  const translated: TranslatedHostFile[] = []
  for (const { path, hash, size } of files.hostFiles) {
    if (!isTranslatedFile(path)) translated.push({ path, ...NOTHING_TRANSLATED })
    else if (size > MAX_HOST_FILE_BYTES) translated.push({ path, ...tooLarge() })
    else translated.push({ path, ...translateHostFile(path, decodeText(await blobs.read(hash)), files.layout) })
  }
  return parseSiteRules({ redirects: await text('redirects'), headers: await text('headers') }, translated)
}

export interface TranslatedHostFile extends Translation {
  readonly path: string
}

const NOTHING_TRANSLATED: Translation = {
  redirects: [],
  headers: [],
  ignored: ['It does nothing here. Write what it says about addresses and headers into _redirects and _headers.'],
}

/** Our own files win: of redirects the first that matches counts, and headers are set anew behind the others'. */
export function parseSiteRules(
  texts: { redirects: string; headers: string },
  hostFiles: readonly TranslatedHostFile[] = [],
): SiteRules {
  const redirects = parseRedirects(texts.redirects)
  const sizes = createHeaderSizes()
  const headers = parseHeaders(texts.headers, sizes)
  const room = {
    redirects: MAX_REDIRECT_RULES - redirects.rules.length,
    headers: MAX_HEADER_RULES - headers.rules.length,
  }
  const taken = hostFiles.map((file) => {
    const found = {
      path: file.path,
      redirects: takeRedirects(file.redirects, room.redirects),
      headers: takeHeaders(file.headers, room.headers, sizes),
      ignored: file.ignored,
    }
    room.redirects -= found.redirects.rules.length
    room.headers -= found.headers.rules.length
    return found
  })
  const foreign = taken.flatMap((file) => file.headers.rules)
  return {
    redirects: [...redirects.rules, ...taken.flatMap((file) => file.redirects.rules)],
    headers: [...foreign, ...resetsFor(headers.rules, foreign), ...headers.rules],
    invalid: [...redirects.invalid, ...headers.invalid],
    hostFiles: taken.map((file) => ({
      path: file.path,
      redirects: file.redirects.rules.length,
      headers: file.headers.rules.length,
      ignored: [...file.ignored, ...file.redirects.ignored, ...file.headers.ignored],
    })),
  }
}

interface Taken<Rule> {
  readonly rules: Rule[]
  readonly ignored: string[]
}

function takeRedirects(translated: readonly TranslatedRedirect[], room: number): Taken<RedirectRule> {
  const rules: RedirectRule[] = []
  const ignored: string[] = []
  for (const [index, { at, ...rule }] of translated.entries()) {
    if (rules.length >= room || ignored.length >= MAX_INVALID_LINES) {
      ignored.push(`${at}: only ${MAX_REDIRECT_RULES} rules count, so this one and those after it were left out.`)
      break
    }
    const checked = checkRedirect({ ...rule, line: index + 1 })
    if (typeof checked === 'string') ignored.push(`${at}: ${checked}`)
    else rules.push(checked)
  }
  return { rules, ignored }
}

function takeHeaders(translated: readonly TranslatedHeaders[], room: number, sizes: HeaderSizes): Taken<HeaderRule> {
  const rules: HeaderRule[] = []
  const ignored: string[] = []
  for (const [index, { at, from, set }] of translated.entries()) {
    if (rules.length >= room || ignored.length >= MAX_INVALID_LINES) {
      ignored.push(`${at}: only ${MAX_HEADER_RULES} patterns count, so this one and those after it were left out.`)
      break
    }
    const block = openBlock(from, index + 1)
    if (typeof block === 'string') {
      ignored.push(`${at}: ${block}`)
      continue
    }
    for (const [name, value] of set)
      addHeader(block, checkHeader(name, value), (message) => ignored.push(`${at}: ${message}`))
    const problem = block.set.size === 0 ? undefined : sizes.add(block)
    if (problem !== undefined) ignored.push(`${at}: ${problem}`)
    else if (block.set.size > 0) rules.push(ruleOf(block))
  }
  return { rules, ignored }
}

/** Headers of one name from several rules are joined. What our own file sets stands alone, so what came before goes. */
function resetsFor(own: readonly HeaderRule[], foreign: readonly HeaderRule[]): HeaderRule[] {
  const names = new Set(foreign.flatMap(({ set }) => set.map(([name]) => name)))
  return own.flatMap(({ from, set, line }) => {
    const reset = set.filter(([name]) => names.has(name)).map(([name]): [string, null] => [name, null])
    return reset.length === 0 ? [] : [{ from, set: reset, line }]
  })
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

const TOO_LONG = `The line is longer than ${MAX_REDIRECT_LINE_CHARS} characters.`

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
  if (text.length > MAX_REDIRECT_LINE_CHARS) return TOO_LONG
  const [from = '', to, ...rest] = withoutComment(text).split(/\s+/)
  if (to === undefined) return 'A rule needs a path and a destination: /old /new 301.'
  const { status, force, problem } = parseStatus(rest)
  return problem ?? checkRedirect({ from, to, status, force, line: number })
}

/** A rule from whichever file, or what to do about it. */
function checkRedirect(rule: Omit<RedirectRule, 'status'> & { status: number }): RedirectRule | string {
  const { from, to, force, line } = rule
  if (from.length + to.length > MAX_REDIRECT_LINE_CHARS) return TOO_LONG
  const status = STATUSES.find((candidate) => candidate === rule.status)
  if (status === undefined) return `${rule.status} is not a status; use one of ${STATUSES.join(', ')}.`
  const pattern = compilePattern(from)
  if ('problem' in pattern) return `${pattern.problem}.`
  const destination = compileDestination(to, pattern.names)
  if ('problem' in destination) return `${destination.problem}.`
  if (destination.isAbsolute && (status === 200 || status === 404)) {
    return `Status ${status} must name a path inside the drop; another host is never fetched for a visitor. Use 301 or 302.`
  }
  if (pointsAtItself(from, to, status, pattern.match, destination.path))
    return `"${from}" points at itself and was left out.`
  return { from, to, status, force, line }
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

export function parseHeaders(text: string, sizes = createHeaderSizes()): Parsed<HeaderRule> {
  const rules: HeaderRule[] = []
  const invalid: InvalidLine[] = []
  const report = (line: number, message: string): void => void invalid.push({ path: '_headers', line, message })
  /** Undefined before the first pattern; null under a pattern that was refused, whose lines are passed over. */
  let block: HeaderBlock | null | undefined
  const close = (): void => {
    if (!block || block.set.size === 0) return
    const problem = sizes.add(block)
    if (problem === undefined) rules.push(ruleOf(block))
    else report(block.line, problem)
  }
  for (const line of linesOf(text)) {
    if (invalid.length >= MAX_INVALID_LINES) {
      report(line.number, TOO_MANY_MISTAKES)
      break
    }
    if (line.isIndented) {
      if (block === undefined) report(line.number, 'A header must stand below the path that it is for.')
      else if (block !== null) addHeader(block, parseHeader(line.text), (message) => report(line.number, message))
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
      const opened = openBlock(line.text, line.number)
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

function ruleOf({ from, set, line }: HeaderBlock): HeaderRule {
  return { from, set: [...set], line }
}

function openBlock(from: string, line: number): HeaderBlock | string {
  if (from.length > MAX_REDIRECT_LINE_CHARS) return 'The line is too long.'
  const pattern = compilePattern(from)
  if ('problem' in pattern) return `${pattern.problem}.`
  const { names, form } = pattern
  return { from, line, prefix: form.first, isLiteral: names.length === 0, set: new Map() }
}

/** Lines of one name are entries of one list, unless the header has one value only: then the last line counts. */
function addHeader(
  { set, from }: HeaderBlock,
  header: [string, string | null] | string,
  report: (message: string) => void,
): void {
  if (typeof header === 'string') return report(header)
  const [name, value] = header
  const before = set.get(name)
  const isJoined = value !== null && before != null && !isSingleHeader(name)
  if (before !== undefined && !isJoined)
    report(`${name} stands twice below ${shorten(from, 100)}; this line replaces the one above it.`)
  set.set(name, isJoined ? `${before}, ${value}` : value)
}

interface HeaderSizes {
  /** Undefined when the block fits, and is counted from now on. */
  add(block: HeaderBlock): string | undefined
}

/**
 * Bounds what any answer carries, whichever rules its path meets: all rules that match one path have prefixes that begin
 * each other, so it is enough to add up along such chains. A path without variable parts meets those of the same path, which
 * are looked up, and those with variable parts: at most the square of MAX_HEADER_RULES comparisons with these.
 */
function createHeaderSizes(): HeaderSizes {
  interface Counted {
    readonly prefix: string
    readonly bytes: number
    total: number
  }
  const variable: Counted[] = []
  const literal: Counted[] = []
  const ofLiteral = new Map<string, number>()
  let all = 0

  /** What there is whose prefix goes on where this one ends: its answers have the headers of both. */
  function longerThan({ prefix, isLiteral }: HeaderBlock): Counted[] {
    if (isLiteral) return []
    const isLonger = (other: Counted): boolean => other.prefix !== prefix && other.prefix.startsWith(prefix)
    return [...variable.filter(isLonger), ...literal.filter(isLonger)]
  }

  return {
    add(block) {
      const { prefix, isLiteral } = block
      let bytes = 0
      for (const [name, value] of block.set) bytes += name.length + (value?.length ?? 0)
      if (all + bytes > MAX_HEADER_RULES_BYTES)
        return `The headers of this file are larger than ${MAX_HEADER_RULES_BYTES / 1000} kB; this path is left out.`
      let total = bytes + (ofLiteral.get(prefix) ?? 0)
      for (const other of variable) if (prefix.startsWith(other.prefix)) total += other.bytes
      const longer = longerThan(block)
      if (longer.some((other) => other.total + bytes > MAX_CUSTOM_HEADER_BYTES) || total > MAX_CUSTOM_HEADER_BYTES)
        return `An answer would have more than ${MAX_CUSTOM_HEADER_BYTES} bytes of headers, which browsers refuse; this path is left out.`
      for (const other of longer) other.total += bytes
      all += bytes
      if (isLiteral) ofLiteral.set(prefix, (ofLiteral.get(prefix) ?? 0) + bytes)
      const counted = { prefix, bytes, total }
      ;(isLiteral ? literal : variable).push(counted)
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
  if (text.length > MAX_REDIRECT_LINE_CHARS) return TOO_LONG
  const isRemoval = text.startsWith('!')
  const colon = text.indexOf(':')
  if (!isRemoval && colon < 0) return 'A header needs a name and a value: Cache-Control: max-age=60.'
  const name = (isRemoval ? text.slice(1) : text.slice(0, colon)).trim()
  return checkHeader(name, isRemoval ? null : text.slice(colon + 1).trim())
}

/** A header from whichever file; null removes it. */
function checkHeader(name: string, value: string | null): [string, string | null] | string {
  if (name.length + (value?.length ?? 0) > MAX_REDIRECT_LINE_CHARS) return TOO_LONG
  if (!isHeaderName(name)) return `"${name}" is not a header name.`
  if (!maySetHeader(name.toLowerCase())) return `${name} is set by the service and cannot be changed.`
  if (value === '') return `${name} has no value and is left out. Write ! ${name} to remove a header.`
  if (value !== null && !isHeaderValue(value)) return `The value of ${name} has a character that a header cannot hold.`
  return [name.toLowerCase(), value]
}
