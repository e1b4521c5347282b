/** Which methods a path knows: for 405 and its Allow header. */
import { Router } from '../../uws/router.ts'
import type { Route } from '../route.ts'

/** Matches as the web server does, and finds nothing for a path that is unknown. */
export function createAllowedMethods(
  routes: readonly Pick<Route, 'method' | 'path'>[],
): (path: string) => readonly string[] {
  const routers = new Map<string, Router<true>>()
  const add = (method: string, path: string): void => {
    const router = routers.get(method) ?? new Router<true>()
    router.add(path, true)
    routers.set(method, router)
  }
  for (const { method, path } of routes) {
    add(method, path)
    if (method === 'GET') add('HEAD', path)
  }
  return (path) => [...routers.keys()].filter((method) => routers.get(method)?.match(path)).toSorted()
}
