/** Which variant of a file a client gets: Accept-Encoding (RFC 9110 §12.5.3), and whether it wants Markdown: Accept (§12.5.1). */
import { encodings } from '../../shared/contracts/manifest.ts'
import type { Encoding, ManifestFile } from '../../shared/contracts/manifest.ts'

export type Available = ManifestFile['encodings']

/** Longer headers are not written by browsers; identity is always right. */
const MAX_HEADER_CHARS = 500

/**
 * The variant with the highest weight; on ties the one that is usually smallest: br, zstd, gzip, identity.
 * When a client refuses everything that there is, it gets identity: that serves it better than 406.
 */
export function chooseEncoding(acceptEncoding: string | undefined, available: Available): Encoding | 'identity' {
  if (!available || acceptEncoding === undefined || acceptEncoding.length > MAX_HEADER_CHARS) return 'identity'
  // What browsers send needs no parsing.
  if (available.br && BROWSER_HEADERS.has(acceptEncoding)) return 'br'
  return chooseByWeight(parseWeights(acceptEncoding), available)
}

const BROWSER_HEADERS: ReadonlySet<string> = new Set([
  'gzip, deflate, br, zstd',
  'gzip, deflate, br',
  'br',
  'br, gzip',
  'gzip, br',
])

const BEST_LAST = encodings.toReversed()

function chooseByWeight(
  weights: ReadonlyMap<string, number>,
  available: NonNullable<Available>,
): Encoding | 'identity' {
  const others = weights.get('*')
  let best: Encoding | 'identity' = 'identity'
  // Without a word about it, identity is the last choice.
  let bestWeight = weights.get('identity') ?? 0
  for (const encoding of BEST_LAST) {
    const weight = available[encoding] ? (weights.get(encoding) ?? others ?? 0) : 0
    if (weight > 0 && weight >= bestWeight) [best, bestWeight] = [encoding, weight]
  }
  return best
}

/** `gzip;q=0.5, br` → gzip 0.5, br 1. */
function parseWeights(header: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>()
  for (const entry of header.toLowerCase().split(',')) {
    const [name = '', parameter] = entry.split(';', 2)
    const coding = name.trim()
    weights.set(coding === 'x-gzip' ? 'gzip' : coding, parameter === undefined ? 1 : weightOf(parameter))
  }
  return weights
}

/** A weight that cannot be read counts as refused: identity is right for every visitor. */
function weightOf(parameter: string): number {
  const weight = /^\s*q\s*=\s*(\d(?:\.\d{0,3})?)\s*$/.exec(parameter)?.[1]
  return weight === undefined ? 0 : Math.min(1, Number(weight))
}

/**
 * Is Markdown wished for at least as much as HTML? Only by its own name: a wildcard says what else will do, and so counts
 * for HTML alone. Linear; for all who do not name it one look at the header.
 */
export function prefersMarkdown(accept: string | undefined): boolean {
  if (accept === undefined || !/markdown/i.test(accept) || accept.length > MAX_HEADER_CHARS) return false
  const weights = new Map<string, number>()
  for (const entry of accept.toLowerCase().split(',')) {
    const [name = '', ...parameters] = entry.split(';')
    const weight = parameters.find((parameter) => /^\s*q\s*=/.test(parameter))
    weights.set(name.trim(), weight === undefined ? 1 : weightOf(weight))
  }
  const wished = weights.get('text/markdown') ?? 0
  return wished > 0 && wished >= (weights.get('text/html') ?? weights.get('text/*') ?? weights.get('*/*') ?? 0)
}
