/**
 * Routing as uWebSockets.js does it: at every segment a literal wins over `:name`, which wins over a final `*`;
 * a branch that leads nowhere is given up for the next best one.
 */
export interface Match<Handler> {
  readonly handler: Handler
  /** Raw values of the `:name` segments, in order. */
  readonly parameters: readonly string[]
}

interface Branch<Handler> {
  readonly literals: Map<string, Branch<Handler>>
  parameter: Branch<Handler> | undefined
  wildcard: Handler | undefined
  handler: Handler | undefined
}

function newBranch<Handler>(): Branch<Handler> {
  return { literals: new Map(), parameter: undefined, wildcard: undefined, handler: undefined }
}

const NO_PARAMETERS: readonly string[] = []

export class Router<Handler> {
  readonly #root = newBranch<Handler>()
  /** Segments of the longest pattern, the empty one before the first slash included. */
  #deepest = 1
  /** Most requests are for a pattern without variables: one look-up instead of a walk. */
  readonly #literal = new Map<string, Match<Handler>>()

  add(pattern: string, handler: Handler): void {
    let branch = this.#root
    const segments = pattern.split('/')
    this.#deepest = Math.max(this.#deepest, segments.length)
    for (const segment of segments.slice(1)) {
      if (segment === '*') {
        branch.wildcard ??= handler
        return
      }
      branch = segment.startsWith(':') ? (branch.parameter ??= newBranch()) : literalBranch(branch, segment)
    }
    branch.handler ??= handler
    if (!pattern.includes('/:')) this.#literal.set(pattern, { handler: branch.handler, parameters: NO_PARAMETERS })
  }

  match(path: string): Match<Handler> | undefined {
    // One segment more than the deepest pattern has tells that the path goes on.
    return this.#literal.get(path) ?? walk(this.#root, path.split('/', this.#deepest + 1), 1, [])
  }
}

function literalBranch<Handler>(branch: Branch<Handler>, segment: string): Branch<Handler> {
  let next = branch.literals.get(segment)
  if (!next) branch.literals.set(segment, (next = newBranch()))
  return next
}

function walk<Handler>(
  branch: Branch<Handler>,
  segments: readonly string[],
  index: number,
  parameters: readonly string[],
): Match<Handler> | undefined {
  const segment = segments[index]
  if (segment === undefined) return branch.handler && { handler: branch.handler, parameters }
  const literal = branch.literals.get(segment)
  const found = literal && walk(literal, segments, index + 1, parameters)
  if (found) return found
  if (branch.parameter && segment !== '') {
    const deeper = walk(branch.parameter, segments, index + 1, [...parameters, segment])
    if (deeper) return deeper
  }
  return branch.wildcard && { handler: branch.wildcard, parameters }
}
