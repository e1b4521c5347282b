/**
 * The publish report: what a publisher would otherwise find out from a visitor. Nothing in it stops the publish; every
 * message says where and what to do. (Files that were kept back are listed by withhold.ts.)
 *
 * It runs in a worker thread. Its work grows with files + links; when its time is over it says that it was cut.
 */
import { toNfc } from '../../../../shared/values/nfc.ts'
import { compilePattern } from '../../../../shared/content/path-pattern.ts'
import { createPatternSet } from '../../../../shared/content/pattern-set.ts'
import type { SecretFile } from '../../../../shared/content/secret-files.ts'
import { unservedKindOf } from '../../../../shared/content/upload-kind.ts'
import type { PublishReport, Warning } from '../contract.ts'
import { storable } from '../html/text.ts'
import type { LinkUse } from '../html/scan.ts'
import { decodeLinks, type EncodedLinks } from './links.ts'
import { isRuleFile } from '../manifest/manifest-builder.ts'
import { quotePath } from '../../../../shared/values/quoted-path.ts'
import type { SiteRules } from '../manifest/site-rules.ts'

/** As many as a person reads; the last one says how many more there are. */
export const MAX_WARNINGS = 100
/** Per kind, so that a hundred broken links do not hide a published key. */
const MAX_WARNINGS_PER_KIND = 20
/** An address in a message. */
const MAX_URL_CHARS = 120

export interface ReportedFile {
  readonly path: string
  readonly links?: EncodedLinks | undefined
}

/** The files of a report as a thread is told of them: one long text is copied in no time, many objects are not. */
export interface PackedFiles {
  /** One on each line, which no path has the end of. */
  readonly paths: string
  /** By the place of their file. */
  readonly links: ReadonlyMap<number, EncodedLinks>
}

export function packFiles(files: readonly ReportedFile[]): PackedFiles {
  const links = new Map<number, EncodedLinks>()
  for (const [place, file] of files.entries()) if (file.links !== undefined) links.set(place, file.links)
  return { paths: files.map(({ path }) => path).join('\n'), links }
}

export function unpackFiles({ paths, links }: PackedFiles): ReportedFile[] {
  return paths.split('\n').map((path, place) => ({ path, links: links.get(place) }))
}

/** What is told without stopping the publish. */
export type LinkReport = Pick<PublishReport, 'warnings'>

export interface ReportInput {
  readonly files: readonly ReportedFile[]
  /** Files that look like secrets and are public, because the publisher said so. */
  readonly secrets?: readonly SecretFile[]
  /** Paths of the upload that no visitor can ask for, and that are not part of the version. */
  readonly unserved?: readonly string[]
  readonly rules: SiteRules
  /** Not all links were handed over. */
  readonly isCut?: boolean
}

/** `isOver`: the time for looking at links is used up. */
export function writeReport(input: ReportInput, isOver: () => boolean): LinkReport {
  const { files, rules, secrets = [], unserved = [], isCut = false } = input
  const list = createWarningList()
  secretWarnings(list, secrets)
  for (const { path, line, message } of rules.invalid)
    list.add('invalid_rule', `${path}:${line}`, () => ({ path, line, message }))
  hostFileWarnings(list, rules.hostFiles)
  unservedWarnings(list, unserved)
  layoutWarnings(list, files)
  const isComplete = linkWarnings(list, files, rules, isOver)
  return { warnings: isComplete && !isCut ? list.warnings() : [...list.warnings(), CUT_WARNING] }
}

/** The names of a version: those of its files, and those of files that steer the edge. */
export interface ReportNames {
  readonly files: ReadonlySet<string>
  readonly rules: ReadonlySet<string>
}

/**
 * Whether these files of a version have nothing to be told, beside others that have nothing either: their names are among
 * `names`, as are all that they lead to. False says nothing. Takes what the files and their links take, whatever is beside them.
 */
export function saysNothingNew(input: ReportInput, names: ReportNames): boolean {
  const { files, rules, secrets = [], unserved = [], isCut = false } = input
  const told = secrets.length + rules.invalid.length + rules.hostFiles.length + unserved.length
  if (told > 0 || isCut) return false
  return files.every(({ path, links: encoded }) => {
    if (!names.files.has(path) && !names.rules.has(path)) return false
    if (encoded === undefined) return true
    const links = decodeLinks(encoded)
    if (links.machineLocal.length + links.insecure.length > 0) return false
    return links.local.every(({ target }) =>
      candidatesOf(toNfc(target)).some((candidate) => names.files.has(candidate)),
    )
  })
}

const CUT_WARNING: Warning = {
  code: 'report_cut',
  count: 1,
  message: 'The site has more links than this report looks at, so some of them were not checked.',
}

/** The report of a site whose links could not be looked at at all. */
export const CUT_REPORT: LinkReport = { warnings: [CUT_WARNING] }

interface WarningList {
  /** `describe` is called for the first of each code and target, if it will be shown; the others are counted. */
  add(code: string, target: string, describe: () => Omit<Warning, 'code' | 'count'>): void
  warnings(): Warning[]
}

interface Counted {
  /** Undefined when it will not be shown. */
  readonly warning: Omit<Warning, 'count'> | undefined
  count: number
}

function createWarningList(): WarningList {
  const targetsOf = new Map<string, Map<string, Counted>>()
  const kept: Counted[] = []
  let left = 0
  return {
    add(code, target, describe) {
      const targets = targetsOf.get(code) ?? new Map<string, Counted>()
      targetsOf.set(code, targets)
      const known = targets.get(target)
      if (known) return void known.count++
      const isShown = targets.size < MAX_WARNINGS_PER_KIND && kept.length < MAX_WARNINGS - 2
      const entry: Counted = { warning: isShown ? described(code, describe()) : undefined, count: 1 }
      targets.set(target, entry)
      if (isShown) kept.push(entry)
      else left++
    },
    warnings() {
      const shown = kept.flatMap(({ warning, count }) => (warning ? [{ ...warning, count }] : []))
      const more = { code: 'more_warnings', message: `There are ${left} more warnings like these.`, count: left }
      return left === 0 ? shown : [...shown, more]
    },
  }
}

function described(code: string, { message, ...place }: Omit<Warning, 'code' | 'count'>): Omit<Warning, 'count'> {
  return { code, ...place, message: storable(message) }
}

function secretWarnings(list: WarningList, secrets: readonly SecretFile[]): void {
  for (const { path, what } of secrets)
    list.add('public_secret', path, () => ({
      path,
      message: `${quotePath(path)} looks like ${what}, and everyone can read it now. Publish again without it and with purge, which removes older versions and what open tabs still find of them, and replace what it holds.`,
    }))
}

/** Files of other hosts: what was taken from each of them, and what does nothing here. */
function hostFileWarnings(list: WarningList, hostFiles: SiteRules['hostFiles']): void {
  for (const { path, redirects, headers, ignored } of hostFiles) {
    const taken = [counted(redirects, 'redirect'), counted(headers, 'header rule')].filter((part) => part !== '')
    const what = taken.length === 0 ? 'nothing' : taken.join(' and ')
    list.add('other_host', path, () => ({
      path,
      message: `${quotePath(path)} is for another host and is not published. Taken over from it: ${what}.`,
    }))
    for (const message of ignored) list.add('ignored_rule', `${path} ${message}`, () => ({ path, message }))
  }
}

function counted(count: number, noun: string): string {
  return count === 0 ? '' : `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** What operating systems leave in folders, and what lies at addresses of the service: each kind is told once. */
function unservedWarnings(list: WarningList, unserved: readonly string[]): void {
  for (const path of unserved) {
    const kind = unservedKindOf(path) ?? path
    list.add('never_served', kind, () => ({
      path,
      message: `${quotePath(kind)} is never served and is not part of the version.`,
    }))
  }
}

/** A whole project was uploaded instead of its output. */
function layoutWarnings(list: WarningList, files: readonly ReportedFile[]): void {
  const isProject = files.some(({ path }) => path === 'package.json' || path.startsWith('node_modules/'))
  if (!isProject) return
  const paths = new Set(files.map((file) => file.path))
  const output = ['dist', 'build', 'out', 'public', '_site'].find((folder) => paths.has(`${folder}/index.html`))
  if (!output) return
  list.add('nested_index', output, () => ({
    path: `${output}/index.html`,
    message: `This looks like a project, not its output. Upload the folder ${output}/ instead.`,
  }))
}

/** False when time was over before the last link. */
function linkWarnings(
  list: WarningList,
  files: readonly ReportedFile[],
  rules: SiteRules,
  isOver: () => boolean,
): boolean {
  const linkCheck = createLinkCheck(files, rules, isOver)
  for (const { path, links: encoded } of files) {
    if (encoded === undefined) continue
    const links = decodeLinks(encoded)
    for (const url of links.machineLocal)
      list.add('local_reference', url, () => ({
        path,
        message: `${short(url)} exists on your machine only. Use a relative address.`,
      }))
    for (const url of links.insecure)
      list.add('insecure_reference', url, () => ({
        path,
        message: `${short(url)} is loaded over http; browsers block it on an https page. Use https://.`,
      }))
    for (const { target, use } of links.local) {
      const answer = linkCheck.find(target)
      if (answer.kind === 'unknown') return false
      const warning = missingWarning(target, use, answer)
      if (warning) list.add(warning.code, target, () => ({ path, message: warning.message() }))
    }
  }
  return true
}

/** What answers an address of the drop. */
type Answer =
  /** A file, or a rule. */
  | { readonly kind: 'found' }
  | { readonly kind: 'other case'; readonly path: string }
  | { readonly kind: 'missing' }
  /** Time was over before it could be found out. */
  | { readonly kind: 'unknown' }

const FOUND: Answer = { kind: 'found' }
const MISSING: Answer = { kind: 'missing' }
const UNKNOWN: Answer = { kind: 'unknown' }

function missingWarning(
  target: string,
  use: LinkUse,
  answer: Answer,
): { readonly code: string; message(): string } | undefined {
  switch (answer.kind) {
    case 'found':
    case 'unknown':
      return undefined
    case 'other case':
      return {
        code: 'wrong_case',
        message: () =>
          `${short(`/${target}`)} is written ${short(`/${answer.path}`)} in the upload; upper and lower case matter.`,
      }
    case 'missing':
      return use === 'page'
        ? {
            code: 'missing_page',
            message: () => `The link to ${short(`/${target}`)} leads nowhere: there is no such page in the upload.`,
          }
        : { code: 'missing_file', message: () => `${short(`/${target}`)} is needed here but not in the upload.` }
    default:
      return answer satisfies never
  }
}

/** Addresses whose answer is remembered: the pages of a site mostly link to the same ones. */
const MAX_REMEMBERED_LINKS = 100_000

/** Which addresses of the drop answer with a file, and which with a rule. */
function createLinkCheck(
  files: readonly ReportedFile[],
  rules: SiteRules,
  isOver: () => boolean,
): { find(target: string): Answer } {
  // A large site has many names: they are prepared once a link, or one that leads nowhere, asks for them.
  let exactNames: ReadonlySet<string> | undefined
  let lowerCaseNames: ReadonlyMap<string, string> | undefined
  const exact = () =>
    (exactNames ??= new Set(files.filter((file) => !isRuleFile(file.path)).map((file) => toNfc(file.path))))
  const byLowerCase = () =>
    (lowerCaseNames ??= new Map(Array.from(exact(), (path) => [path.toLowerCase(), path] as const)))
  const patterns = createPatternSet(
    rules.redirects.map((rule) => compilePattern(rule.from)).filter((pattern) => 'match' in pattern),
  )
  const remembered = new Map<string, Answer>()

  function lookUp(target: string): Answer {
    const path = toNfc(target)
    const candidates = candidatesOf(path)
    if (candidates.some((candidate) => exact().has(candidate))) return FOUND
    if (patterns.matching(`/${path}`).length > 0) return FOUND
    const otherCase = candidates.map((candidate) => byLowerCase().get(candidate.toLowerCase()))
    const written = otherCase.find((candidate) => candidate !== undefined)
    return written === undefined ? MISSING : { kind: 'other case', path: written }
  }

  return {
    find(target) {
      const known = remembered.get(target)
      if (known) return known
      if (isOver()) return UNKNOWN
      const answer = lookUp(target)
      if (remembered.size < MAX_REMEMBERED_LINKS) remembered.set(target, answer)
      return answer
    },
  }
}

/** The files that may answer an address, as the edge looks for them. */
function candidatesOf(target: string): string[] {
  if (target === '') return ['index.html']
  if (target.endsWith('/')) return [`${target}index.html`, `${target}index.htm`, `${target.slice(0, -1)}.html`]
  return [target, `${target}/index.html`, `${target}/index.htm`, `${target}.html`]
}

function short(url: string): string {
  return url.length <= MAX_URL_CHARS ? url : `${url.slice(0, MAX_URL_CHARS - 1)}…`
}
