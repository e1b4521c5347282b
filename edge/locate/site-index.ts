/** A manifest made ready for look-ups: once per manifest, so that a request compiles and decodes nothing. */
import type { KeptFiles, Manifest, ManifestFile, RedirectRule } from '../../shared/contracts/manifest.ts'
import { toNfc } from '../../shared/values/nfc.ts'
import { compileHeaders, headerSetOf, NO_HEADERS } from '../../shared/content/header-sets.ts'
import { compilePattern, compileDestination } from '../../shared/content/path-pattern.ts'
import { createPatternSet } from '../../shared/content/pattern-set.ts'
import type { CompiledRedirects, KeptEntry, KeptIndex, NotFoundPages, SiteIndex } from '../context.ts'

/** Instructions to the service, not content: they answer 404, whatever else a manifest says. */
export const UNSERVED_FILES: ReadonlySet<string> = new Set(['_redirects', '_headers'])

/** The page of a folder; old programs leave out the last letter. */
export const DIRECTORY_PAGES = ['index.html', 'index.htm'] as const

const NOT_FOUND = '404.html'

export function indexManifest(manifest: Manifest): SiteIndex {
  const files = indexFiles(manifest)
  return {
    files,
    longestName: longest(files.keys()),
    folders: foldersOf(files.keys()),
    notFoundPages: findNotFoundPages(files),
    redirects: compileRedirects(manifest.redirects),
    headers: compileHeaders(manifest.headers),
    kept: manifest.kept && indexKept(manifest.kept),
  }
}

function indexKept({ files, headers }: KeptFiles): KeptIndex {
  const sets = headers.map(headerSetOf)
  const index = new Map<string, KeptEntry>()
  for (const [path, { file, headers: which }] of files)
    index.set(toNfc(path), { file, custom: sets[which ?? -1] ?? NO_HEADERS })
  return { files: index, longestName: longest(index.keys()) }
}

/** Names are compared in NFC: macOS writes `é` as two code points, a link that people type has one. */
function indexFiles(manifest: Manifest): ReadonlyMap<string, ManifestFile> {
  const files = new Map<string, ManifestFile>()
  for (const [path, file] of manifest.files) {
    if (!UNSERVED_FILES.has(path)) files.set(toNfc(path), file)
  }
  return files
}

function foldersOf(names: Iterable<string>): ReadonlySet<string> {
  const folders = new Set<string>()
  for (const name of names)
    for (const page of DIRECTORY_PAGES) if (name.endsWith(`/${page}`)) folders.add(name.slice(0, -page.length - 1))
  return folders
}

function findNotFoundPages(files: ReadonlyMap<string, ManifestFile>): NotFoundPages {
  const byDirectory = new Map<string, ManifestFile>()
  for (const [name, file] of files) {
    if (name === NOT_FOUND || name.endsWith(`/${NOT_FOUND}`)) byDirectory.set(name.slice(0, -NOT_FOUND.length), file)
  }
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
