/**
 * The web server of the control plane. Only this folder knows hyper-express: a request comes in, its route
 * handles it, and whatever was returned or thrown goes out as a reply.
 */
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { Server, type Request as ServerRequest, type Response as ServerResponse } from 'hyper-express'
import { SECOND_MS, type Clock } from '../../../../shared/running/clock.ts'
import { isEncoded } from '../../../../shared/http/content-coding.ts'
import { errors, type ApiError } from '../../../../shared/contracts/errors.ts'
import { trustedNetworks } from '../../../../shared/http/ip.ts'
import { isProgramPath } from '../../../../shared/http/program-paths.ts'
import type { Log } from '../../../../shared/running/log.ts'
import { createShares, type ShareLimits, type Shares } from '../../../../shared/running/shares.ts'
import type { Tracer } from '../../../../shared/running/traces.ts'
import { patiently } from '../../../../shared/settings/patience.ts'
import { noteLeaving, noteNetwork } from '../../database/call.ts'
import type { App } from '../../uws/app.ts'
import { CallerLeft, PACE, type Pace } from '../bodies/body.ts'
import { createBufferCollector } from './buffer-garbage.ts'
import { asPartOf } from './current-request.ts'
import { toApiError } from './failure.ts'
import { createHeldBodies } from '../bodies/held-bodies.ts'
import { isOurHost } from './host-check.ts'
import { createAllowedMethods } from './patterns.ts'
import { json } from '../reply.ts'
import { IncomingRequest, type Surroundings } from './request.ts'
import type { Reply, Request, Route } from '../route.ts'
import { send } from './send.ts'

export interface HttpServer {
  /** Resolves with the port, which the system chooses when it was 0. */
  listen(port: number, host: string): Promise<number>
  /**
   * Says at /healthz and /readyz that it is about to stop, and answers all the same for `noticeMs`, so that edges choose another
   * control; then stops accepting, lets requests under way finish for `graceMs`, and cuts them.
   */
  close(graceMs: number, noticeMs?: number): Promise<void>
}

export interface Answered {
  /** Pattern of the route; undefined for an address that there is not. */
  readonly route: string | undefined
  readonly method: string
  /** Undefined when the caller left before there was an answer. */
  readonly status: number | undefined
  readonly seconds: number
}

export interface HttpServerOptions {
  readonly routes: readonly Route[]
  readonly log: Log
  readonly clock: Clock
  /** Addresses and networks whose X-Forwarded-For is believed; loopback always is: it is our own edge. */
  readonly trustedProxies: readonly string[]
  /** The name under which the world knows the service. Undefined: any name will do, as in tests of the server alone. */
  readonly serviceHost?: string
  /** How many requests may be under way, in all and of one network. */
  readonly shares?: ShareLimits
  /** How fast a body must arrive. */
  readonly pace?: Pace
  /** Told of every request before it is handled. */
  onRequest?(what: string): void
  /** Told of every request when it is over. */
  counts?: { arrived(): void; answered(answer: Answered): void }
  /** Where traces are switched on. */
  tracer?: Tracer | undefined
  /** Wraps the work of every request; may give up on it with an error. */
  guard?<Result>(work: () => Promise<Result> | Result): Promise<Result>
  /** Why nothing can be changed now; said at /healthz. */
  trouble?(): string | undefined
  /** Answers an unknown path outside the API. */
  notFound?(request: Request): Promise<Reply> | Reply
  /** Shows an error to a person, outside the API. */
  errorPage?(request: Request, error: ApiError): Promise<Reply> | Reply
}

/** Requests under way: more than edges send from one network, fewer than would take all of Postgres or the memory. */
const REQUEST_SHARES: ShareLimits = {
  places: 512,
  placesPerCaller: 128,
  waiting: 2048,
  waitingPerCaller: 256,
  waitMs: patiently(4000),
}

/** What a request is answered by: a route, or what stands in for one at an unknown path. */
type Answering = Pick<Route, 'handle' | 'worksWithoutDatabase' | 'refuse'> & { readonly path?: string }

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const surroundings: Surroundings = {
    trusted: trustedNetworks(options.trustedProxies),
    heldBodies: createHeldBodies(),
    pace: options.pace ?? PACE,
    onBodyBytes: createBufferCollector(),
  }
  const shares = createShares(options.shares ?? REQUEST_SHARES)
  // Caps on bodies are the routes' business: they depend on the plan.
  const server = new Server({ auto_close: false, max_body_length: Number.MAX_SAFE_INTEGER })
  const allowedAt = createAllowedMethods(options.routes)
  let closing = false

  function serve(route: Answering) {
    const pattern = route.path
    return (request: ServerRequest, response: ServerResponse): Promise<void> => {
      const { method, path } = request
      options.onRequest?.(`${method} ${path}`)
      const stay: Stay = { leave: undefined, request: undefined, errorId: undefined }
      const began = performance.now()
      let status: number | undefined
      options.counts?.arrived()
      const span = options.tracer?.begin(`${method} ${pattern ?? 'none'}`, request.headers['traceparent'])
      return asPartOf({ method, path }, async () => {
        try {
          const reply = await answer(options, stay, { request, response, surroundings, route, shares })
          status = reply?.status
          if (reply) await send(request, response, reply, { closing })
        } catch (error) {
          // The reply had begun, or could not be written: nothing is left to tell the caller.
          if (!response.completed) response.close()
          if (!(error instanceof CallerLeft)) options.log.error({ err: error, path }, 'reply failed')
        } finally {
          stay.leave?.()
          stay.request?.end()
          span?.note({
            'http.request.method': method,
            'http.route': pattern,
            'http.response.status_code': status,
            'dropway.error_id': stay.errorId,
          })
          span?.end(status !== undefined && status >= 500)
          options.counts?.answered({ route: pattern, method, status, seconds: (performance.now() - began) / SECOND_MS })
        }
      })
    }
  }

  function health() {
    const trouble = options.trouble?.()
    if (closing) return { status: 'closing' }
    return trouble === undefined
      ? { status: 'ok' }
      : { status: 'degraded', detail: `${trouble}: nothing can be changed` }
  }
  // Alive. Edges choose another control by the status alone, and what troubles this one troubles all of them.
  server.get('/healthz', (_request, response) => void response.status(closing ? 503 : 200).json(health()))
  // Can do its work: for balancers, which have other controls to send a caller to.
  server.get('/readyz', (_request, response) => {
    const said = health()
    response.status(said.status === 'ok' ? 200 : 503).json(said)
  })
  for (const route of options.routes) register(server, route, serve(route))
  server.any('/*', serve({ handle: (request) => unknownPath(options, allowedAt(request.path), request) }))

  return {
    async listen(port, host) {
      await server.listen(port, host)
      return server.port
    },
    async close(graceMs, noticeMs = 0) {
      closing = true
      await sleep(noticeMs)
      // What came while this process stood still is read first.
      await setImmediate()
      const timer = setTimeout(() => server.force_close(), graceMs)
      try {
        await server.shutdown()
        await ended(server)
      } finally {
        clearTimeout(timer)
        server.force_close()
      }
    },
  }
}

/** An answer that was given may not have left: a large one to a slow caller. */
async function ended({ uws_instance: app }: Server): Promise<void> {
  // The native server says nothing of it.
  await (app as Partial<Pick<App, 'ended'>>).ended?.()
}

function register(
  server: Server,
  route: Route,
  handler: (request: ServerRequest, response: ServerResponse) => Promise<void>,
): void {
  switch (route.method) {
    case 'GET':
      server.get(route.path, handler)
      server.head(route.path, handler)
      return
    case 'POST':
      server.post(route.path, handler)
      return
    case 'PUT':
      server.put(route.path, handler)
      return
    case 'PATCH':
      server.patch(route.path, handler)
      return
    case 'DELETE':
      server.delete(route.path, handler)
      return
    case 'OPTIONS':
      server.options(route.path, handler)
      return
    default:
      route.method satisfies never
  }
}

/** What a request holds until its reply has gone out. */
interface Stay {
  leave: (() => void) | undefined
  request: IncomingRequest | undefined
  /** What the caller can quote of a fault of ours. */
  errorId: string | undefined
}

interface Arrival {
  readonly request: ServerRequest
  readonly response: ServerResponse
  readonly surroundings: Surroundings
  readonly route: Answering
  readonly shares: Shares
}

/** Undefined when the caller has gone. */
async function answer(options: HttpServerOptions, stay: Stay, arrival: Arrival): Promise<Reply | undefined> {
  const { request: serverRequest, response, surroundings, route, shares } = arrival
  try {
    if (!isOurHost(serverRequest, options.serviceHost)) throw errors.misdirected()
    const request = new IncomingRequest(serverRequest, response, surroundings, route.path ?? '/')
    stay.request = request
    const { network } = request
    if (isEncoded(request.header('content-encoding'))) throw errors.unsupportedEncoding()
    await enter(shares, network, stay)
    if (response.completed) return undefined
    if (!options.guard || route.worksWithoutDatabase) return await route.handle(request)
    return await options.guard(() => {
      noteNetwork(network)
      noteLeaving(() => request.signal)
      return route.handle(request)
    })
  } catch (error) {
    if (response.completed || error instanceof CallerLeft) return undefined
    const about = { method: serverRequest.method, path: serverRequest.path, now: options.clock.now() }
    const problem = toApiError(error, options.log, about)
    const { id } = problem.fields
    if (typeof id === 'string') stay.errorId = id
    return route.refuse?.(problem) ?? explain(options, stay.request, problem)
  }
}

/** Resolves when the network has a place among the requests under way. */
function enter(shares: Shares, network: string, stay: Stay): Promise<void> {
  return new Promise((resolve, reject) => {
    stay.leave = shares.enter(network, resolve, (status) =>
      reject(
        status === 429
          ? errors.rateLimited(2, 'Too many requests at once. Wait for the answers, then go on.')
          : errors.unavailable('Many requests are under way right now. Try again in a moment.'),
      ),
    )
  })
}

/** A page for people, JSON for programs and for when the page itself fails. */
async function explain(options: HttpServerOptions, request: Request | undefined, problem: ApiError): Promise<Reply> {
  if (request && options.errorPage && !isProgramPath(request.path)) {
    try {
      return await options.errorPage(request, problem)
    } catch (error) {
      options.log.error({ err: error, path: request.path }, 'error page failed')
    }
  }
  return json(problem.status, problem.toBody(), problem.headers)
}

function unknownPath(options: HttpServerOptions, allowed: readonly string[], request: Request): Promise<Reply> | Reply {
  if (allowed.length > 0) throw errors.methodNotAllowed(allowed.join(', '))
  if (options.notFound && !isProgramPath(request.path)) return options.notFound(request)
  throw errors.notFound('address')
}
