/** Which methods a path knows: for 405 and its Allow header. */
import type { Route } from '../route.ts'

/** No pattern has as many; what comes after them need not be told apart. */
const MAX_SEGMENTS = 32

export function matchesPattern(pattern: string, path: string): boolean {
  return matches(pattern.split('/'), path.split('/', MAX_SEGMENTS))
}

function matches(wanted: readonly string[], given: readonly string[]): boolean {
  for (const [index, segment] of wanted.entries()) {
    if (segment === '*') return given.length > index
    const value = given[index]
    if (value === undefined || (segment.startsWith(':') ? value === '' : value !== segment)) return false
  }
  return wanted.length === given.length
}

/** Empty when the path is unknown. */
export function allowedMethods(routes: readonly Pick<Route, 'method' | 'path'>[], path: string): string[] {
  const methods = new Set<string>()
  // Once for all patterns: a path may have thousands of segments.
  const given = path.split('/', MAX_SEGMENTS)
  for (const route of routes) {
    if (!matches(route.path.split('/'), given)) continue
    methods.add(route.method)
    if (route.method === 'GET') methods.add('HEAD')
  }
  return [...methods].toSorted()
}
