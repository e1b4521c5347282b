/** Which methods a path knows: for 405 and its Allow header. */
import type { Route } from '../route.ts'

export function matchesPattern(pattern: string, path: string): boolean {
  const wanted = pattern.split('/')
  const given = path.split('/')
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
  for (const route of routes) {
    if (!matchesPattern(route.path, path)) continue
    methods.add(route.method)
    if (route.method === 'GET') methods.add('HEAD')
  }
  return [...methods].toSorted()
}
