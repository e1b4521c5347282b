/**
 * The publish report: what a publisher would otherwise find out from a visitor. Pure. Nothing in it stops the publish;
 * every message says where and what to do. (Files that were kept back are listed by withhold.ts.)
 */
import { MAX_INJECTED_BYTES } from '../../shared/limits.ts'
import { compilePattern } from '../../shared/path-pattern.ts'
import { secretFiles } from '../../shared/secret-files.ts'
import type { PublishReport, Warning } from './contract.ts'
import { storable } from './html-text.ts'
import type { LocalLink, PageLinks } from './links.ts'
import { isRuleFile, type StoredFile } from './manifest-builder.ts'
import { quotePath } from './paths.ts'
import type { SiteRules } from './site-rules.ts'
import { isHtmlType, mediaTypeOf } from './types.ts'

/** What somebody reads; the last one says how many more there are. */
export const MAX_WARNINGS = 100
/** Per kind, so that a hundred broken links do not hide a published key. */
const MAX_WARNINGS_PER_KIND = 20
/** An address in a message. */
const MAX_URL_CHARS = 120

export interface ReportInput {
  readonly files: readonly StoredFile[]
  linksOf(file: StoredFile): PageLinks | undefined
  readonly rules: SiteRules
}

export function writeReport({ files, linksOf, rules }: ReportInput): Pick<PublishReport, 'warnings'> {
  const warnings = [
    ...secretWarnings(files),
    ...ruleWarnings(rules),
    ...layoutWarnings(files),
    ...sizeWarnings(files),
    ...linkWarnings(files, linksOf, rules),
  ]
  return { warnings: bounded(warnings) }
}

function bounded(warnings: readonly Warning[]): Warning[] {
  const counts = new Map<string, number>()
  const kept: Warning[] = []
  for (const warning of warnings) {
    const count = (counts.get(warning.code) ?? 0) + 1
    counts.set(warning.code, count)
    if (count <= MAX_WARNINGS_PER_KIND && kept.length < MAX_WARNINGS - 1)
      kept.push({ ...warning, message: storable(warning.message) })
  }
  const left = warnings.length - kept.length
  if (left > 0) kept.push({ code: 'more_warnings', message: `There are ${left} more warnings like these.` })
  return kept
}

function secretWarnings(files: readonly StoredFile[]): Warning[] {
  return secretFiles(files).map(({ path, what }) => ({
    code: 'public_secret',
    path,
    message: `${quotePath(path)} looks like ${what}, and everyone can read it now. Publish again without it, and replace what it holds.`,
  }))
}

function ruleWarnings(rules: SiteRules): Warning[] {
  return rules.invalid.map(({ path, line, message }) => ({ code: 'invalid_rule', path, line, message }))
}

/** A whole project was uploaded instead of its output. */
function layoutWarnings(files: readonly StoredFile[]): Warning[] {
  const paths = new Set(files.map((file) => file.path))
  if (!paths.has('package.json') && !files.some((file) => file.path.startsWith('node_modules/'))) return []
  const output = ['dist', 'build', 'out', 'public', '_site'].find((folder) => paths.has(`${folder}/index.html`))
  if (!output) return []
  return [
    {
      code: 'nested_index',
      path: `${output}/index.html`,
      message: `This looks like a project, not its output. Upload the folder ${output}/ instead.`,
    },
  ]
}

function sizeWarnings(files: readonly StoredFile[]): Warning[] {
  return files
    .filter(({ path, size }) => size > MAX_INJECTED_BYTES && isHtmlType(mediaTypeOf(path)))
    .map(({ path }) => ({
      code: 'large_page',
      path,
      message: `${quotePath(path)} is larger than ${MAX_INJECTED_BYTES / 1_000_000} MB and is shown without badge and analytics. Split it, or load its data from another file.`,
    }))
}

function linkWarnings(files: readonly StoredFile[], linksOf: ReportInput['linksOf'], rules: SiteRules): Warning[] {
  const targets = createTargets(files, rules)
  const warnings: Warning[] = []
  for (const file of files) {
    const links = linksOf(file)
    if (!links) continue
    for (const url of links.machineLocal) {
      warnings.push({
        code: 'local_reference',
        path: file.path,
        message: `${short(url)} exists on your machine only. Use a relative address.`,
      })
    }
    for (const url of links.insecure) {
      warnings.push({
        code: 'insecure_reference',
        path: file.path,
        message: `${short(url)} is loaded over http; browsers block it on an https page. Use https://.`,
      })
    }
    for (const link of links.local) {
      const warning = targets.check(link)
      if (warning) warnings.push({ ...warning, path: file.path })
    }
  }
  return warnings
}

interface Targets {
  check(link: LocalLink): Pick<Warning, 'code' | 'message'> | undefined
}

/** Which addresses of the drop answer with a file, and which with a rule. */
function createTargets(files: readonly StoredFile[], rules: SiteRules): Targets {
  const served = files.filter((file) => !isRuleFile(file.path)).map((file) => file.path.normalize('NFC'))
  const exact = new Set(served)
  const byLowerCase = new Map(served.map((path) => [path.toLowerCase(), path]))
  const patterns = rules.redirects.map((rule) => compilePattern(rule.from)).filter((pattern) => 'match' in pattern)

  const find = (target: string, has: (candidate: string) => string | undefined): string | undefined =>
    candidatesOf(target)
      .map(has)
      .find((path) => path !== undefined)

  return {
    check({ target, isPage }) {
      const path = target.normalize('NFC')
      if (find(path, (candidate) => (exact.has(candidate) ? candidate : undefined)) !== undefined) return undefined
      if (patterns.some((pattern) => pattern.match(`/${path}`))) return undefined
      const otherCase = find(path.toLowerCase(), (candidate) => byLowerCase.get(candidate))
      if (otherCase !== undefined) {
        return {
          code: 'wrong_case',
          message: `${short(`/${target}`)} is written ${short(`/${otherCase}`)} in the upload; upper and lower case matter.`,
        }
      }
      return isPage
        ? {
            code: 'missing_page',
            message: `The link to ${short(`/${target}`)} leads nowhere: there is no such page in the upload.`,
          }
        : { code: 'missing_file', message: `${short(`/${target}`)} is needed here but not in the upload.` }
    },
  }
}

/** The files that may answer an address, as the edge looks for them. */
function candidatesOf(target: string): string[] {
  if (target === '') return ['index.html']
  if (target.endsWith('/')) return [`${target}index.html`, `${target.slice(0, -1)}.html`]
  return [target, `${target}/index.html`, `${target}.html`]
}

function short(url: string): string {
  return url.length <= MAX_URL_CHARS ? url : `${url.slice(0, MAX_URL_CHARS - 1)}…`
}
