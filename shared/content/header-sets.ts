/**
 * What `_headers` says about a path. Every matching rule counts, in the order of the file. Few sets of rules ever meet
 * (`/*`, `/assets/*` with it, …), and thousands of files share one: what a set says is put together once and kept.
 */
import { createHash } from 'node:crypto'
import { isReplacedByLaterRule } from '../http/header-policy.ts'
import { MAX_CUSTOM_HEADER_BYTES } from '../contracts/limits.ts'
import type { HeaderRule } from '../contracts/manifest.ts'
import { compilePattern } from './path-pattern.ts'
import { createPatternSet } from './pattern-set.ts'

/** Combinations that are kept of one version; with MAX_CUSTOM_HEADER_BYTES each, 2 MB. */
const MAX_KEPT_SETS = 64

export interface CompiledHeaders {
  /** What `_headers` says about a decoded path; the same set of rules gives the same object. */
  for(path: string): HeaderSet
}

/** What a set of `_headers` rules says together. */
export interface HeaderSet {
  /** The same for the same list, and for no other. */
  readonly id: string
  /** Lower-case names; null removes. */
  readonly list: readonly (readonly [string, string | null])[]
}

/** 96 bits of a hash. */
const ID_CHARS = 16

export const NO_HEADERS: HeaderSet = { id: '', list: [] }

/** A rule that does not compile is no rule; the publisher was told so when the version was made. */
export function compileHeaders(all: readonly HeaderRule[]): CompiledHeaders {
  const compiled = all.flatMap((rule) => {
    const pattern = compilePattern(rule.from)
    return 'problem' in pattern ? [] : [{ set: rule.set, bytes: bytesOf(rule), pattern }]
  })
  if (compiled.length === 0) return { for: () => NO_HEADERS }
  const patterns = createPatternSet(compiled.map(({ pattern }) => pattern))
  const kept = new Map<string, HeaderSet | Error>()
  return {
    for(path) {
      const matching = patterns.matching(path)
      if (matching.length === 0) return NO_HEADERS
      const key = matching.join()
      let set = kept.get(key)
      if (set === undefined) {
        if (kept.size >= MAX_KEPT_SETS) kept.clear()
        kept.set(key, (set = merge(matching.flatMap((position) => compiled[position] ?? []))))
      }
      if (set instanceof Error) throw set
      return set
    },
  }
}

interface SizedRule extends Pick<HeaderRule, 'set'> {
  readonly bytes: number
}

function bytesOf({ set }: HeaderRule): number {
  return set.reduce((sum, [name, value]) => sum + name.length + (value?.length ?? 0), 0)
}

/** An error when clients would refuse the headers: an answer that says so is better than none. */
function merge(rules: readonly SizedRule[]): HeaderSet | Error {
  const bytes = rules.reduce((sum, rule) => sum + rule.bytes, 0)
  if (bytes > MAX_CUSTOM_HEADER_BYTES)
    return new Error(`_headers sets ${bytes} bytes of headers for one path; ${MAX_CUSTOM_HEADER_BYTES} can be sent`)
  const merged = new Map<string, string | null>()
  for (const [name, value] of rules.flatMap(({ set }) => set)) {
    const before = merged.get(name)
    const grows = before != null && value !== null && !isReplacedByLaterRule(name)
    merged.set(name, grows ? `${before}, ${value}` : value)
  }
  return headerSetOf([...merged])
}

export function headerSetOf(list: HeaderSet['list']): HeaderSet {
  return { id: createHash('sha256').update(JSON.stringify(list)).digest('base64url').slice(0, ID_CHARS), list }
}
