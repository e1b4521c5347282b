/** Small manifests for the tests of the edge's decisions. */
import { createHash } from 'node:crypto'
import type { Manifest, ManifestFile } from '../../shared/contracts/manifest.ts'
import type { SiteRoute } from '../../shared/contracts/route-record.ts'

export function fileOf(path: string, extra: Partial<ManifestFile> = {}): ManifestFile {
  const type = path.endsWith('.html') ? 'text/html; charset=utf-8' : 'application/octet-stream'
  const injection = path.endsWith('.html') ? { head: 0, body: 0 } : undefined
  return { hash: createHash('sha256').update(path).digest('hex'), size: path.length, type, injection, ...extra }
}

export interface Rules {
  /** `from to status[!]` lines. */
  readonly redirects?: readonly string[]
  readonly headers?: readonly (readonly [from: string, set: readonly (readonly [string, string | null])[]])[]
}

export function manifestOf(paths: readonly string[], rules: Rules = {}): Manifest {
  return {
    v: 1,
    files: paths.map((path) => [path, fileOf(path)]),
    redirects: (rules.redirects ?? []).map((text, index) => {
      const [from = '', to = '', status = '301'] = text.split(' ')
      return {
        from,
        to,
        status: Number(status.replace('!', '')) as Manifest['redirects'][number]['status'],
        force: status.endsWith('!'),
        line: index + 1,
      }
    }),
    headers: (rules.headers ?? []).map(([from, set], index) => ({
      from,
      set: set.map(([name, value]) => [name, value]),
      line: index + 1,
    })),
    unserved: [],
  }
}

export function routeOf(changes: Partial<SiteRoute> = {}): SiteRoute {
  return {
    v: 1,
    kind: 'site',
    host: 'demo.dropway.test',
    revision: 1,
    site_id: 'st_demo',
    state: 'live',
    manifest: 'a'.repeat(64),
    version_number: 3,
    versions: [],
    expires_at: null,
    password: null,
    spa_fallback: false,
    badge: false,
    analytics: null,
    ...changes,
  }
}
