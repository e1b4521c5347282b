/**
 * How patterns were matched before they were compiled: one expression per rule, tried in turn. Slow on hostile paths, and
 * easy to believe: the tests hold the compiled form against it.
 */
const PLACEHOLDER = /^:([A-Za-z][A-Za-z0-9_]*)$/

export type Match = (path: string) => ReadonlyMap<string, string> | undefined

/** `from` must be a pattern that `compilePattern` accepts, decoded. */
export function naiveMatch(from: string): Match {
  const names = from
    .split('/')
    .flatMap((segment) => PLACEHOLDER.exec(segment)?.[1] ?? (segment.includes('*') ? ['splat'] : []))
  return names.length === 0 ? literal(from) : dynamic(from, names)
}

function literal(path: string): Match {
  const bare = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
  const slashed = bare === '/' ? bare : `${bare}/`
  return (candidate) => (candidate === bare || candidate === slashed ? new Map() : undefined)
}

function dynamic(path: string, names: readonly string[]): Match {
  const expression = patternExpression(path)
  return (candidate) => {
    const found = expression.exec(candidate)
    return found ? new Map(names.map((name, index) => [name, found[index + 1] ?? ''])) : undefined
  }
}

function patternExpression(path: string): RegExp {
  if (path === '/*') return /^\/(.*)$/s
  const tail = path.endsWith('/*') ? '(?:/(.*))?' : path.endsWith('*') ? '' : '/?'
  const body = path.endsWith('/*') ? path.slice(0, -2) : path.endsWith('/') ? path.slice(0, -1) : path
  const source = body
    .split('/')
    .map((segment) => (PLACEHOLDER.test(segment) ? '([^/]+)' : segment.split('*').map(escapeExpression).join('(.*)')))
    .join('/')
  return new RegExp(`^${source}${tail}$`, 's')
}

function escapeExpression(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}
