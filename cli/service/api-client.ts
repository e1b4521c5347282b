/** The REST API of the service, as far as the commands need it. */
import { toFailure } from './api-failure.ts'
import type { Authentication } from './sign-in/authentication.ts'
import { notSignedIn } from '../terminal/failure.ts'
import type { Body, HttpClient, HttpReply } from './http-client.ts'
import type { Site, Version, VersionEntry } from '../terminal/json-output.ts'
import type { Retry } from './retry.ts'

export interface CallOptions {
  readonly json?: unknown
  readonly body?: Body
  readonly headers?: Readonly<Record<string, string>>
  /** The call carries no credentials. */
  readonly anonymous?: boolean
  /** Doing it twice does no harm, although its method is POST. */
  readonly repeatable?: boolean
  /** The caller is patient itself, see `patiently`. */
  readonly once?: boolean
  readonly timeoutMs?: number
  /** How long an answer is waited for that stays away, where that may take longer than a broken line. */
  readonly patienceMs?: number
}

export interface ApiClient {
  /** Work of several calls that is done again from its beginning when a line breaks. */
  patiently<Result>(work: () => Promise<Result>): Promise<Result>
  /** The answer as data; undefined when it is empty. Broken lines are waited out as far as the command is patient. */
  call<Result>(method: string, path: string, options?: CallOptions): Promise<Result>
  /** The reply of a call that succeeded; the caller reads its body to the end. */
  stream(method: string, path: string, options?: CallOptions): Promise<HttpReply>
  /** All, or those that have all of these words. */
  listSites(words?: string): Promise<Site[]>
  readSite(id: string): Promise<Site>
  createSite(site: { slug?: string; name?: string }): Promise<Site>
  changeSite(id: string, change: Readonly<Record<string, unknown>>): Promise<Site>
  listVersions(id: string): Promise<VersionEntry[]>
  promote(id: string, versionId: string): Promise<Version>
}

export function sitePath(id: string): string {
  return `/sites/${encodeURIComponent(id)}`
}

const REPEATABLE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE'])

interface ApiClientDependencies {
  readonly url: string
  readonly http: HttpClient
  readonly authentication: Authentication
  readonly retry: Retry
}

export function createApiClient({ url, http, authentication, retry }: ApiClientDependencies): ApiClient {
  const root = `${url}/api/v1`

  async function attempt(
    method: string,
    path: string,
    { json, body = json === undefined ? undefined : JSON.stringify(json), headers, timeoutMs }: CallOptions,
    token: string | undefined,
  ): Promise<HttpReply> {
    return http.send(root + path, {
      method,
      headers: {
        accept: 'application/json',
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    })
  }

  /** An access token that is refused is renewed once. */
  async function send(method: string, path: string, options: CallOptions): Promise<HttpReply> {
    if (options.anonymous) return requireSuccess(await attempt(method, path, options, undefined))
    const token = await authentication.token()
    if (token === undefined) throw notSignedIn()
    const reply = await attempt(method, path, options, token)
    if (reply.status !== 401) return requireSuccess(reply)
    const refusal = await requireSuccess(reply).catch((error: unknown) => error)
    const renewed = await authentication.renew(token)
    if (renewed === undefined) throw refusal
    return requireSuccess(await attempt(method, path, options, renewed))
  }

  function patient<Result>(method: string, options: CallOptions, work: () => Promise<Result>): Promise<Result> {
    if (options.once) return work()
    const { repeatable = REPEATABLE_METHODS.has(method), patienceMs } = options
    return retry.run(work, { repeatable, ...(patienceMs === undefined ? {} : { patienceMs }) })
  }

  function call<Result>(method: string, path: string, options: CallOptions = {}): Promise<Result> {
    return patient(method, options, async () => {
      const text = await (await send(method, path, options)).text()
      return (text === '' ? undefined : JSON.parse(text)) as Result
    })
  }

  return {
    patiently: (work) => retry.run(work, { repeatable: true }),
    call,
    stream: (method, path, options = {}) => patient(method, options, () => send(method, path, options)),
    listSites: (words = '') => call('GET', words === '' ? '/sites' : `/sites?q=${encodeURIComponent(words)}`),
    readSite: (id) => call('GET', sitePath(id)),
    createSite: (site) => call('POST', '/sites', { json: site }),
    changeSite: (id, change) => call('PATCH', sitePath(id), { json: change, repeatable: true }),
    listVersions: (id) => call('GET', `${sitePath(id)}/versions`),
    promote: (id, versionId) =>
      call('POST', `${sitePath(id)}/versions/${encodeURIComponent(versionId)}/promote`, { repeatable: true }),
  }
}

async function requireSuccess(reply: HttpReply): Promise<HttpReply> {
  if (reply.status >= 200 && reply.status < 300) return reply
  throw toFailure(reply.status, await reply.text().catch(() => ''), reply.headers['retry-after'])
}
