/** The HTTP server of the control plane alone, with the routes of a test. */
import { onTestFinished } from 'vitest'
import { json } from '../../control/ground/http/reply.ts'
import type { Route } from '../../control/ground/http/route.ts'
import { createHttpServer, type HttpServer, type HttpServerOptions } from '../../control/ground/http/server/server.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { silentLog } from '../../shared/running/log.ts'

/** Lives as long as the test that calls it. */
export async function startServer(
  routes: Route[],
  options: Partial<HttpServerOptions> = {},
): Promise<{ url: string; port: number; server: HttpServer }> {
  const server = createHttpServer({ routes, log: silentLog, clock: systemClock, trustedProxies: [], ...options })
  const port = await server.listen(0, '127.0.0.1')
  onTestFinished(() => server.close(0))
  return { url: `http://127.0.0.1:${port}`, port, server }
}

export const jsonEcho: Route = {
  method: 'POST',
  path: '/api/v1/echo',
  handle: async (request) => json(200, await request.json()),
}

export const hello: Route = { method: 'GET', path: '/hello', handle: () => json(200, { hello: true }) }
