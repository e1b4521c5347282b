/**
 * Which answer a path has: pure, from the index of a version and two settings. In this order:
 *
 * 1. a malformed target is 400; what belongs to the service or to no drop is missing
 * 2. a forced `_redirects` rule, if it is the first that matches
 * 3. a real file: at its path, as a directory page, as a clean URL, or the canonical form of one of them
 * 4. the first `_redirects` rule that matches, if it redirects
 * 5. a file that a former version had, for tabs that were open when it was replaced
 * 6. the first `_redirects` rule that matches, if it shows a page in place
 * 7. the single-page fallback, unless the browser asks for something that cannot be a page
 * 8. the nearest 404.html up the tree, else the branded page
 */
import { isPage, type ManifestFile } from '../../shared/contracts/manifest.ts'
import { encodePath, encodeUnsafe, oneSlash } from '../../shared/content/path-pattern.ts'
import type { CompiledRedirect, Intent, SiteIndex } from '../context.ts'
import { readPath } from './request-path.ts'
import { DIRECTORY_PAGES, UNSERVED_FILES } from './site-index.ts'

export interface LocateRequest {
  /** Request target in origin form, undecoded. */
  readonly target: string
  readonly spaFallback: boolean
  /** Value of `sec-fetch-dest`. */
  readonly fetchDest: string | undefined
}

/** Twice a request target: what a rule makes of one. Longer ones are refused by browsers and proxies alike. */
const MAX_LOCATION_CHARS = 16_384

const MISSING: Intent = { kind: 'missing' }
const MALFORMED: Intent = { kind: 'malformed' }

/** Never content of a drop: ACME challenges, and the service's own paths at every drop. */
const SERVICE_PATHS = ['/.well-known/acme-challenge/', '/.dropway/'] as const

/** HTML is never fed to these: a script tag that gets a page fails in a way that is hard to understand. */
const NEVER_PAGES: ReadonlySet<string> = new Set(
  `script style image font audio video track manifest json xslt worker sharedworker serviceworker
   audioworklet paintworklet`.split(/\s+/),
)

export function locate(index: SiteIndex, request: LocateRequest): Intent {
  const asked = readPath(request.target)
  if (asked.kind === 'malformed') return MALFORMED
  if (asked.kind === 'unreachable' || isServicePath(asked.path)) return notFound(index, asked.path)
  const { path, query } = asked

  const matched = index.redirects.hasForced ? firstRule(index, path) : undefined
  if (matched?.rule.force) return follow(index, matched, path, query, request) ?? fallback(index, path, request)

  const found = resolve(index, path)
  if (found?.kind === 'file') return asset(index, path, found.name, found.file, 200)
  if (found?.kind === 'canonical')
    return { kind: 'redirect', status: 301, location: withQuery(oneSlash(encodePath(found.path)), query) }

  const late = matched ?? firstRule(index, path)
  const former = late && isRedirect(late) ? undefined : keptAt(index, path)
  if (former) return former
  return (late && follow(index, late, path, query, request)) ?? fallback(index, path, request)
}

function isServicePath(path: string): boolean {
  // Most paths are told apart by their second character.
  if (path.charCodeAt(1) === 0x2e)
    return SERVICE_PATHS.some((prefix) => path.startsWith(prefix) || path === prefix.slice(0, -1))
  return path.charCodeAt(1) === 0x5f && UNSERVED_FILES.has(path.slice(1))
}

type Resolved =
  | { readonly kind: 'file'; readonly name: string; readonly file: ManifestFile }
  /** The page exists under another path. */
  | { readonly kind: 'canonical'; readonly path: string }

/** Clean URLs. The order of the look-ups is the decision table. */
function resolve({ files, longestName, folders }: SiteIndex, path: string): Resolved | undefined {
  // A slash in front, and perhaps one too many at the end: nothing is built and hashed for what cannot be a file.
  if (path.length > longestName + 2) return undefined
  const name = path.slice(1)
  if (name === '' || name.endsWith('/')) {
    for (const index of DIRECTORY_PAGES) {
      const page = files.get(name + index)
      if (page) return { kind: 'file', name: name + index, file: page }
    }
    const bare = name.slice(0, -1)
    return bare !== '' && files.has(`${bare}.html`) ? { kind: 'canonical', path: `/${bare}` } : undefined
  }
  const exact = files.get(name)
  if (exact) return { kind: 'file', name, file: exact }
  if (folders.has(name)) return { kind: 'canonical', path: `${path}/` }
  const page = files.get(`${name}.html`)
  return page && { kind: 'file', name: `${name}.html`, file: page }
}

interface MatchedRule extends Pick<CompiledRedirect, 'rule' | 'destination'> {
  readonly values: readonly string[]
}

/** The first rule that matches and does not lead to where the visitor already is. */
function firstRule({ redirects }: SiteIndex, path: string): MatchedRule | undefined {
  for (const position of redirects.patterns.matching(path)) {
    const candidate = redirects.rules[position]
    const values = candidate?.match(path)
    if (candidate && values && (candidate.destination.isAbsolute || !candidate.destination.leadsTo(path, values)))
      return { rule: candidate.rule, destination: candidate.destination, values }
  }
  return undefined
}

function isRedirect({ rule }: MatchedRule): boolean {
  return rule.status !== 200 && rule.status !== 404
}

/** What a former version had at exactly this path: the live one has nothing there, and leads nowhere else. */
function keptAt({ kept }: SiteIndex, path: string): Intent | undefined {
  if (kept === undefined || path.length > kept.longestName + 1) return undefined
  const name = path.slice(1)
  const found = kept.files.get(name)
  return found && { kind: 'asset', path: name, file: found.file, status: 200, custom: found.custom }
}

/** What a matching rule does; undefined when it names a page that the drop does not have, or that cannot be used. */
function follow(
  index: SiteIndex,
  { rule, destination, values }: MatchedRule,
  path: string,
  query: string,
  request: LocateRequest,
): Intent | undefined {
  if (rule.status !== 200 && rule.status !== 404) {
    const location = withQuery(destination.location(values), query)
    return location.length > MAX_LOCATION_CHARS ? MALFORMED : { kind: 'redirect', status: rule.status, location }
  }
  const page = pageAt(index, destination.path(values))
  if (page && (rule.status === 404 || !isPage(page.file) || mayBePage(request))) {
    return asset(index, path, page.name, page.file, rule.status)
  }
  return rule.status === 404 ? notFound(index, path) : undefined
}

/** The file behind a path that a rule names. A rewrite does not redirect, so the canonical form is taken at once. */
function pageAt(index: SiteIndex, path: string): { name: string; file: ManifestFile } | undefined {
  const found = resolve(index, path)
  if (found?.kind !== 'canonical') return found
  const canonical = resolve(index, found.path)
  return canonical?.kind === 'file' ? canonical : undefined
}

function fallback(index: SiteIndex, path: string, request: LocateRequest): Intent {
  const page = request.spaFallback && mayBePage(request) ? index.files.get('index.html') : undefined
  return page ? asset(index, path, 'index.html', page, 200) : notFound(index, path)
}

function mayBePage({ fetchDest }: LocateRequest): boolean {
  return fetchDest === undefined || !NEVER_PAGES.has(fetchDest)
}

/** `/a/b/c` asks for a/b/404.html, a/404.html, 404.html; only as deep as the site has such pages. */
function notFound(index: SiteIndex, path: string): Intent {
  const { byDirectory, deepest, longest } = index.notFoundPages
  let found: { directory: string; file: ManifestFile } | undefined
  let depth = 0
  for (let end = 0; end >= 0 && end <= longest && depth <= deepest; end = path.indexOf('/', end + 1), depth++) {
    const directory = path.slice(1, end + 1)
    const file = byDirectory.get(directory)
    if (file) found = { directory, file }
  }
  return found ? asset(index, path, `${found.directory}404.html`, found.file, 404) : MISSING
}

function asset(index: SiteIndex, path: string, name: string, file: ManifestFile, status: 200 | 404): Intent {
  return { kind: 'asset', path: name, file, status, custom: index.headers.for(path) }
}

/** Keeps the visitor's query: after the rule's own, before its fragment. */
function withQuery(location: string, query: string): string {
  if (query.length <= 1) return location
  const hash = location.indexOf('#')
  const [address, fragment] = hash < 0 ? [location, ''] : [location.slice(0, hash), location.slice(hash)]
  return address + (address.includes('?') ? `&${encodeUnsafe(query.slice(1))}` : encodeUnsafe(query)) + fragment
}
