/**
 * A REST route as a sentence: who may call it, what it takes, what it gives.
 * Input and output are validated by the schemas that also write /api/v1/openapi.json.
 */
import type { z } from 'zod'
import { suffices, type Actor } from '../actor.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { json, noContent } from './reply.ts'
import { describeOperation, type Access, type OperationSpec } from './operations/operation.ts'
import { paramsOf, type Method, type PathParams, type Reply, type Request, type Route } from './route.ts'

/** Resolves credentials to an actor; throws 401 for wrong ones. */
export type Authenticate = (request: Request) => Promise<Actor | undefined>

interface ApiCall<Path extends string, Body extends z.ZodType, Query extends z.ZodType, Who extends Access, Admitted> {
  request: Request
  params: PathParams<Path>
  actor: Who extends 'public' ? undefined : Actor
  body: z.output<Body>
  query: z.output<Query>
  admitted: Admitted
}

interface ApiRouteSpec<
  Path extends string,
  Body extends z.ZodType,
  Query extends z.ZodType,
  Output extends z.ZodType | undefined,
  Who extends Access,
  Admitted,
> extends OperationSpec {
  method: Method
  path: Path
  access: Who
  /** Called before the body is read; throws to refuse. `run` gets what it gives. */
  admit?(request: Request): Promise<Admitted>
  body?: Body
  /** When a JSON body may be larger than MAX_JSON_BYTES. */
  maxBodyBytes?: number
  query?: Query
  output: Output
  run(
    call: ApiCall<Path, Body, Query, Who, Admitted>,
  ): Promise<Output extends z.ZodType ? ApiResult<z.input<Output>> : WithHeaders<undefined> | undefined | void>
}

/** Plain output, or output with headers (and, rarely, another status or a raw reply). */
export type ApiResult<Output> = Output | WithHeaders<Output>

export class WithHeaders<Output> {
  readonly output: Output
  readonly headers: Record<string, string | string[]>
  constructor(output: Output, headers: Record<string, string | string[]>) {
    this.output = output
    this.headers = headers
  }
}

/** Makes a route of its description. */
export type ApiRouteFactory = <
  Path extends string,
  Body extends z.ZodType = z.ZodUndefined,
  Query extends z.ZodType = z.ZodUndefined,
  Output extends z.ZodType | undefined = undefined,
  Who extends Access = Access,
  Admitted = undefined,
>(
  spec: ApiRouteSpec<Path, Body, Query, Output, Who, Admitted>,
) => Route

export function createApiRoutes(authenticate: Authenticate): ApiRouteFactory {
  return function apiRoute<
    Path extends string,
    Body extends z.ZodType,
    Query extends z.ZodType,
    Output extends z.ZodType | undefined,
    Who extends Access,
    Admitted,
  >(spec: ApiRouteSpec<Path, Body, Query, Output, Who, Admitted>): Route {
    return {
      method: spec.method,
      path: spec.path,
      operation: describeOperation(spec),
      async handle(request): Promise<Reply> {
        const actor = spec.access === 'public' ? undefined : await requireActor(authenticate, request, spec)
        const admitted = await spec.admit?.(request)
        const body = spec.body ? parse(spec.body, await readBody(request, spec.body, spec.maxBodyBytes)) : undefined
        const query = spec.query ? parse(spec.query, Object.fromEntries(request.query)) : undefined
        const params = paramsOf(spec.path, request)
        // What is absent here is undefined in the route's types too.
        const call = { request, params, actor, admitted, body, query } as ApiCall<Path, Body, Query, Who, Admitted>
        const result = await spec.run(call)
        const output = result instanceof WithHeaders ? result.output : result
        const headers = result instanceof WithHeaders ? result.headers : {}
        return spec.output ? json(spec.status, spec.output.parse(output), headers) : noContent(headers)
      },
    }
  }
}

/** Who may go on: signed in, verified where that is asked for, and with a credential that reaches this far. */
export async function requireActor(
  authenticate: Authenticate,
  request: Request,
  { access, needs, isOfPreview }: Pick<OperationSpec, 'access' | 'needs' | 'isOfPreview'>,
): Promise<Actor> {
  const actor = await authenticate(request)
  if (!actor) throw errors.unauthorized()
  if (access === 'verified' && !actor.emailVerified) throw errors.emailNotVerified()
  if (suffices(actor, needs, isOfPreview)) return actor
  // No scope is missing where there is none: the way in is the wrong one.
  if (actor.reach.scope === 'everything' && needs === 'session')
    throw errors.forbidden('Only a session of the dashboard may do this, not a token.')
  throw errors.insufficientScope(needs, actor.reach.scope)
}

/** zod's first complaint as one sentence: `slug: must be …`. */
export function parse<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw errors.invalidRequest(
    result.error.issues
      .slice(0, 3)
      .map((issue) => (issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message))
      .join('; '),
  )
}

/** An empty body counts as `{}` where every field is optional; a change that says nothing is a mistake. */
async function readBody(request: Request, schema: z.ZodType, maxBytes: number | undefined): Promise<unknown> {
  const hasBody =
    request.header('content-length') !== '0' &&
    (request.header('content-length') !== undefined || request.header('transfer-encoding') !== undefined)
  if (!hasBody && request.method !== 'PATCH' && schema.safeParse({}).success) return {}
  return request.json(maxBytes)
}
