/** What is said about a version beside its making: which of its links lead nowhere, and what else its publisher should know. */
import type { Manifest } from '../../../../shared/contracts/manifest.ts'
import type { Reading } from '../analysis/analyse.ts'
import { saysNothingNew, writeReport, type LinkReport, type ReportInput, type ReportNames } from '../analysis/report.ts'
import type { StoredFile } from '../manifest/manifest-builder.ts'
import type { SiteRules } from '../manifest/site-rules.ts'
import type { UploadWorkers } from '../workers/workers.ts'

/** Links that the report looks at. It is what the event loop copies to a thread in some milliseconds. */
const MAX_REPORTED_LINK_CHARS = 16_000_000
/** Links that the event loop looks for itself among the names of a version: those of some pages. */
const FEW_LINK_CHARS = 50_000
/** A report that the event loop writes itself, in a tenth of a millisecond. */
const SHORT_REPORT = { files: 8, linkChars: 2000 }

/** The links of as many pages as the report can look at, in the order of the upload. */
export function reportInput(
  files: readonly StoredFile[],
  readingOf: ReadonlyMap<string, Reading>,
  rules: SiteRules,
): ReportInput {
  let left = MAX_REPORTED_LINK_CHARS
  let isCut = false
  const reported = files.map(({ path }) => {
    const links = readingOf.get(path)?.links
    if (links === undefined) return { path }
    left -= links.length
    if (left >= 0) return { path, links }
    isCut = true
    return { path }
  })
  return { files: reported, rules, isCut }
}

/**
 * So few files and links are looked at in less time than a thread is told of them. Nothing was to be said of the version
 * that has the untouched files, so that nothing is where the others have names that it has too, and lead to such names.
 */
export async function reportOn(
  workers: UploadWorkers,
  input: ReportInput,
  untouched: Manifest['files'],
  base: Manifest | undefined,
): Promise<LinkReport> {
  const linkChars = input.files.reduce((sum, { links }) => sum + (links?.length ?? 0), 0)
  const rules = input.rules.redirects.length + input.rules.headers.length + input.rules.invalid.length
  const isShort = input.files.length <= SHORT_REPORT.files && linkChars <= SHORT_REPORT.linkChars && rules === 0
  if (untouched.length === 0) return isShort ? writeReport(input, () => false) : workers.report(input)
  if (linkChars <= FEW_LINK_CHARS && base && saysNothingNew(input, namesOf(base))) return { warnings: [] }
  return workers.report({ ...input, files: [...input.files, ...untouched.map(([path]) => ({ path }))] })
}

function namesOf({ files, unserved }: Manifest): ReportNames {
  return { files: new Set(files.map(([path]) => path)), rules: new Set(unserved.map(([path]) => path)) }
}
