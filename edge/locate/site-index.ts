/** A manifest made ready for look-ups: once per manifest, so that a request compiles and decodes nothing. */
import type { KeptFiles, Manifest, ManifestFile, ManifestFiles, RedirectRule } from '../../shared/contracts/manifest.ts'
import { toNfc } from '../../shared/values/nfc.ts'
import { compileHeaders, headerSetOf, NO_HEADERS } from '../../shared/content/header-sets.ts'
import { compilePattern, compileDestination } from '../../shared/content/path-pattern.ts'
import { createPatternSet } from '../../shared/content/pattern-set.ts'
import type { CompiledRedirects, FilesIndex, KeptEntry, KeptIndex, NotFoundPages, SiteIndex } from '../context.ts'

/** Instructions to the service, not content: they answer 404, whatever else a manifest says. */
export const UNSERVED_FILES: ReadonlySet<string> = new Set(['_redirects', '_headers'])

/** The page of a folder; old programs leave out the last letter. */
export const DIRECTORY_PAGES = ['index.html', 'index.htm'] as const

const NOT_FOUND = '404.html'

export function indexManifest(manifest: Manifest): SiteIndex {
  return indexSite(manifest, [indexFiles(manifest.files)])
}

/** `parts` are its files in their order; those of the manifest itself are not looked at. */
export function indexSite(manifest: Manifest, parts: readonly FilesIndex[]): SiteIndex {
  return {
    files: joinFiles(parts),
    longestName: parts.reduce((most, { longestName }) => Math.max(most, longestName), 0),
    folders: new Set(parts.flatMap(({ folders }) => folders)),
    notFoundPages: joinNotFoundPages(parts),
    redirects: compileRedirects(manifest.redirects),
    headers: compileHeaders(manifest.headers),
    kept: manifest.kept && indexKept(manifest.kept),
  }
}

/** Names are compared in NFC: macOS writes `é` as two code points, a link that people type has one. */
export function indexFiles(all: ManifestFiles): FilesIndex {
  const files: [string, ManifestFile][] = []
  const folders: string[] = []
  const notFoundPages: [string, ManifestFile][] = []
  let longestName = 0
  for (const entry of all) {
    const [path, file] = entry
    if (UNSERVED_FILES.has(path)) continue
    const name = toNfc(path)
    files.push(name === path ? entry : [name, file])
    longestName = Math.max(longestName, name.length)
    const folder = folderOf(name)
    if (folder !== undefined) folders.push(folder)
    if (name === NOT_FOUND || name.endsWith(`/${NOT_FOUND}`))
      notFoundPages.push([name.slice(0, -NOT_FOUND.length), file])
  }
  return { files, longestName, folders, notFoundPages }
}

function indexKept({ files, headers }: KeptFiles): KeptIndex {
  const sets = headers.map(headerSetOf)
  const index = new Map<string, KeptEntry>()
  for (const [path, { file, headers: which }] of files)
    index.set(toNfc(path), { file, custom: sets[which ?? -1] ?? NO_HEADERS })
  return { files: index, longestName: longest(index.keys()) }
}

/** The folder that has the page as its own. */
function folderOf(name: string): string | undefined {
  const page = DIRECTORY_PAGES.find((one) => name.endsWith(`/${one}`))
  return page && name.slice(0, -page.length - 1)
}

/** In the order of the manifest: of two names that are one in NFC, the last counts. */
function joinFiles(parts: readonly FilesIndex[]): ReadonlyMap<string, ManifestFile> {
  const joined = new Map<string, ManifestFile>()
  for (const { files } of parts) for (const [name, file] of files) joined.set(name, file)
  return joined
}

function joinNotFoundPages(parts: readonly FilesIndex[]): NotFoundPages {
  const byDirectory = new Map(parts.flatMap(({ notFoundPages }) => notFoundPages))
  const depths = [...byDirectory.keys()].map((directory) => directory.split('/').length - 1)
  return { byDirectory, deepest: Math.max(0, ...depths), longest: longest(byDirectory.keys()) }
}

function longest(texts: Iterable<string>): number {
  let most = 0
  for (const { length } of texts) most = Math.max(most, length)
  return most
}

/** A rule that does not compile is no rule; the publisher was told so when the version was made. */
function compileRedirects(all: readonly RedirectRule[]): CompiledRedirects {
  const compiled = all.flatMap((rule) => {
    const pattern = compilePattern(rule.from)
    if ('problem' in pattern) return []
    const destination = compileDestination(rule.to, pattern.names)
    if ('problem' in destination) return []
    // Another host is never proxied: rewriting and "404 with that page" stay inside the drop.
    if (destination.isAbsolute && (rule.status === 200 || rule.status === 404)) return []
    return [{ pattern, rule, destination, match: pattern.match }]
  })
  return {
    rules: compiled,
    patterns: createPatternSet(compiled.map(({ pattern }) => pattern)),
    hasForced: compiled.some(({ rule }) => rule.force),
  }
}
