/**
 * The border between the web server and the service: routes and services see only these types.
 * Only control/ground/http knows hyper-express.
 */
import type { Readable } from 'node:stream'
import type { ApiError } from '../../../shared/contracts/errors.ts'
import type { Operation } from './operations/operation.ts'

/** Names of the `:name` parts of a path. */
type ParamName<Path extends string> = Path extends `${string}:${infer Rest}`
  ? Rest extends `${infer Name}/${infer More}`
    ? Name | ParamName<More>
    : Rest
  : never

/** The values of the `:name` parts, typed by the path itself. */
export type PathParams<Path extends string> = Readonly<Record<ParamName<Path>, string>>

/** What the server found at the `:name` parts of the path under which it called. */
export function paramsOf<Path extends string>(_path: Path, request: Pick<Request, 'params'>): PathParams<Path> {
  return request.params
}

export interface Request {
  readonly method: string
  /** Path as sent, without query. */
  readonly path: string
  readonly query: URLSearchParams
  /** Values of the `:name` parts of the route's path, decoded once. */
  readonly params: Readonly<Record<string, string>>
  header(name: string): string | undefined
  cookie(name: string): string | undefined
  /** The visitor's address: the socket's, or what a trusted proxy says. */
  readonly ip: string
  /** Aborted when the caller goes away. */
  readonly signal: AbortSignal
  /** Body as parsed JSON; throws invalid_json / invalid_request (content type) / upload_too_large. */
  json(maxBytes?: number): Promise<unknown>
  /**
   * Body of an HTML form (application/x-www-form-urlencoded); throws upload_too_large above `maxBytes`, by default
   * MAX_FORM_BYTES, and invalid_request above MAX_FORM_PAIRS.
   */
  form(maxBytes?: number): Promise<URLSearchParams>
  text(maxBytes: number): Promise<string>
  bytes(maxBytes: number): Promise<Buffer>
  /** The raw body, with back-pressure. */
  stream(): Readable
  /**
   * Walks a multipart/form-data body in order, one part at a time, streaming. `onPart` must consume
   * `part.stream` before it resolves. Rejects with invalid_request on a malformed or truncated body.
   */
  multipart(onPart: (part: Part) => Promise<void>, options?: MultipartOptions): Promise<void>
  /**
   * Counts bytes that a reader of `stream` keeps against what the caller's network may hold, until the reply; a negative
   * number gives back.
   */
  hold(bytes: number): void
}

export interface MultipartOptions {
  /** Name of a text field that carries content, and comes as a stream; other fields are names and paths. */
  readonly contentField?: string
}

export type Part =
  | { readonly kind: 'field'; readonly name: string; readonly value: string }
  | { readonly kind: 'content'; readonly name: string; readonly stream: Readable }
  | {
      readonly kind: 'file'
      readonly name: string
      readonly filename: string
      readonly type: string
      readonly stream: Readable
    }

export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string | Uint8Array | Readable
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'

export interface Route {
  readonly method: Method
  /** `/api/v1/sites/:id`; a final `*` matches the rest. HEAD is answered by GET. */
  readonly path: string
  handle(request: Request): Promise<Reply> | Reply
  /** Answered also while Postgres is away: the handler asks it nothing, or limits how long it waits. */
  readonly worksWithoutDatabase?: boolean
  /**
   * Says a refusal of the route in its own way, instead of as a page or as JSON: also one that came before its handler, or
   * because an engine is away. Asks no one.
   */
  readonly refuse?: ((problem: ApiError) => Reply) | undefined
  /** What /api/v1/openapi.json says about it; set by `apiRoute`. */
  readonly operation?: () => Operation
}
