/** Which methods a path knows: for 405 and its Allow header. */
import { Router } from '../../uws/router.ts'
import type { Route } from '../route.ts'

/** Answers with the methods of every route that matches a path, as the web server matches; none for an unknown path. */
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
