/** The REST API of the service, as far as the commands need it. */
import type { Readable } from 'node:stream'
import type { Authentication } from './authentication.ts'
import { CliError, exitCodes, notSignedIn, type ExitCode } from './failure.ts'
import { readText, type HttpClient, type HttpReply } from './http-client.ts'
import { plain } from './terminal.ts'

export interface Site {
  readonly id: string
  readonly slug: string
  readonly name: string
  readonly url: string
  readonly state: string
  readonly has_password: boolean
  readonly spa_fallback: boolean
  readonly live_version_id: string | null
  readonly updated_at: string
  readonly views_30d: number
}

export interface Warning {
  readonly code: string
  readonly message: string
  readonly path?: string
  readonly line?: number
}

export interface Version {
  readonly version_id: string
  readonly version_number: number
  readonly byte_size: number
  readonly file_count: number
  readonly message?: string
  readonly url?: string
  readonly preview_url?: string | null
  readonly report?: { readonly warnings: readonly Warning[] }
}

export interface VersionEntry extends Version {
  readonly created_at: string
  readonly live: boolean
}

export interface CallOptions {
  readonly json?: unknown
  readonly body?: Buffer | Readable
  readonly headers?: Readonly<Record<string, string>>
  /** Without credentials. */
  readonly anonymous?: boolean
}

/** The service's refusal, with its code. */
export class ApiFailure extends CliError {
  readonly status: number
  constructor(status: number, code: string, detail: string) {
    super(detail, exitCodeOf(status, code), code)
    this.status = status
  }
}

function exitCodeOf(status: number, code: string): ExitCode {
  if (status === 401) return exitCodes.notSignedIn
  if (code === 'plan_limit' || code === 'plan_feature' || code === 'upload_too_large') return exitCodes.planLimit
  return status >= 500 ? exitCodes.unreachable : exitCodes.failed
}

export type ApiClient = ReturnType<typeof createApiClient>

export function createApiClient({
  url,
  http,
  authentication,
}: {
  url: string
  http: HttpClient
  authentication: Authentication
}) {
  const root = `${url}/api/v1`

  async function attempt(
    method: string,
    path: string,
    options: CallOptions,
    token: string | undefined,
  ): Promise<HttpReply> {
    const body = options.json === undefined ? options.body : JSON.stringify(options.json)
    return http.send(root + path, {
      method,
      headers: {
        accept: 'application/json',
        ...(options.json === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...options.headers,
      },
      ...(body === undefined ? {} : { body }),
    })
  }

  /** The reply of a call that succeeded, its body unread. An expired access token is renewed once. */
  async function send(method: string, path: string, options: CallOptions = {}): Promise<HttpReply> {
    if (options.anonymous) return requireSuccess(await attempt(method, path, options, undefined))
    const token = await authentication.token()
    if (token === undefined) throw notSignedIn()
    const reply = await attempt(method, path, options, token)
    if (reply.status !== 401 || options.body !== undefined) return requireSuccess(reply)
    const renewed = await authentication.renew(token)
    return requireSuccess(renewed === undefined ? reply : await attempt(method, path, options, renewed))
  }

  async function call<Result>(method: string, path: string, options: CallOptions = {}): Promise<Result> {
    const text = await readText(await send(method, path, options))
    return (text === '' ? undefined : JSON.parse(text)) as Result
  }

  const sitePath = (id: string): string => `/sites/${encodeURIComponent(id)}`

  return {
    send,
    call,
    listSites: () => call<Site[]>('GET', '/sites'),
    readSite: (id: string) => call<Site>('GET', sitePath(id)),
    createSite: (site: { slug?: string; name?: string }) => call<Site>('POST', '/sites', { json: site }),
    changeSite: (id: string, change: Record<string, unknown>) => call<Site>('PATCH', sitePath(id), { json: change }),
    listVersions: (id: string) => call<VersionEntry[]>('GET', `${sitePath(id)}/versions`),
    promote: (id: string, versionId: string) =>
      call<Version>('POST', `${sitePath(id)}/versions/${encodeURIComponent(versionId)}/promote`),
    sitePath,
  }
}

async function requireSuccess(reply: HttpReply): Promise<HttpReply> {
  if (reply.status >= 200 && reply.status < 300) return reply
  throw toFailure(reply.status, await readText(reply).catch(() => ''))
}

export function toFailure(status: number, text: string): ApiFailure {
  const body = parseObject(text)
  const code = typeof body['error'] === 'string' ? plain(body['error']) : `http_${status}`
  const detail = typeof body['detail'] === 'string' ? plain(body['detail']) : `The service answered ${status}.`
  const id = typeof body['id'] === 'string' ? ` (${plain(body['id'])})` : ''
  const hint = status === 401 ? ' Run "dropway login", or set DROPWAY_TOKEN to a valid API token.' : ''
  return new ApiFailure(status, code, `${detail}${id}${hint}`)
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
