/** A manifest made ready for look-ups: once per manifest, so that a request compiles and decodes nothing. */
import type { HeaderRule, Manifest, ManifestFile, RedirectRule } from '../../shared/manifest.ts'
import { compilePattern, compileTarget } from '../../shared/path-pattern.ts'
import type { CompiledRedirect, CompiledRule, SiteIndex } from '../context.ts'

/** Instructions to the service, not content: they answer 404, whatever else a manifest says. */
export const UNSERVED_FILES: ReadonlySet<string> = new Set(['_redirects', '_headers'])

export function indexManifest(manifest: Manifest): SiteIndex {
  const redirects = compileRedirects(manifest.redirects)
  return {
    manifest,
    files: indexFiles(manifest),
    redirects,
    hasForcedRedirect: redirects.some(({ rule }) => rule.force),
    headers: compileHeaders(manifest.headers),
  }
}

/** Names are compared in NFC: macOS writes `é` as two code points, a link that people type has one. */
function indexFiles(manifest: Manifest): ReadonlyMap<string, ManifestFile> {
  const files = new Map<string, ManifestFile>()
  for (const [path, file] of manifest.files) {
    if (!UNSERVED_FILES.has(path)) files.set(path.normalize('NFC'), file)
  }
  return files
}

/** A rule that does not compile is no rule; the publisher was told so when the version was made. */
function compileRedirects(rules: readonly RedirectRule[]): CompiledRedirect[] {
  return rules.flatMap((rule) => {
    const pattern = compilePattern(rule.from)
    if ('problem' in pattern) return []
    const target = compileTarget(rule.to, pattern.names)
    if ('problem' in target) return []
    // Another host is never proxied: rewriting and "404 with that page" stay inside the drop.
    if (target.isAbsolute && (rule.status === 200 || rule.status === 404)) return []
    return [{ rule, target, match: pattern.match }]
  })
}

function compileHeaders(rules: readonly HeaderRule[]): CompiledRule<HeaderRule>[] {
  return rules.flatMap((rule) => {
    const pattern = compilePattern(rule.from)
    return 'problem' in pattern ? [] : [{ rule, match: pattern.match }]
  })
}
