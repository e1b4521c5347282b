/** What `_headers` says about a path. Every matching rule counts, in the order of the file. */
import type { SiteIndex } from '../context.ts'

export type CustomHeaders = readonly (readonly [string, string | null])[]

const NONE: CustomHeaders = []

/** Headers with one value: the later rule wins. All others are lists and grow, as the syntax has it elsewhere. */
const SINGLE: ReadonlySet<string> = new Set(
  `cache-control cdn-cache-control content-type content-disposition expires age
   access-control-allow-origin access-control-allow-credentials access-control-max-age
   timing-allow-origin cross-origin-opener-policy cross-origin-embedder-policy
   cross-origin-resource-policy origin-agent-cluster referrer-policy x-frame-options x-xss-protection
   x-dns-prefetch-control service-worker-allowed refresh`.split(/\s+/),
)

export function customHeaders({ headers }: SiteIndex, path: string): CustomHeaders {
  let merged: Map<string, string | null> | undefined
  for (const { rule, match } of headers) {
    if (!match(path)) continue
    merged ??= new Map()
    for (const [name, value] of rule.set) {
      const before = merged.get(name)
      const grows = before != null && value !== null && !SINGLE.has(name)
      merged.set(name, grows ? `${before}, ${value}` : value)
    }
  }
  return merged ? [...merged] : NONE
}
