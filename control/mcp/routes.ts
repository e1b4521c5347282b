/** The MCP endpoint: streamable HTTP, both protocol eras, bearer tokens only. */
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { ApiError, errors } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { API_TOKEN_PREFIX, type Access } from '../accounts/access.ts'
import type { Actor } from '../accounts/actor.ts'
import { requireJsonShape, type JsonBounds } from '../http/json-shape.ts'
import { json } from '../http/reply.ts'
import type { Method, Reply, Request, Route } from '../http/route.ts'
import type { OAuth } from '../oauth/oauth.ts'
import { corsHeaders, createOriginCheck, PREFLIGHT_HEADERS } from './origins.ts'
import { createToolServer, type ToolServices } from './tools.ts'

const SCOPE = 'mcp'
/** Addresses are typed and pasted: a slash at the end is not another place. */
const PATHS = ['/mcp', '/mcp/']
const METHODS = ['GET', 'POST', 'DELETE'] satisfies Method[]
/** A page of 10 MB as JSON text, and some. */
const MAX_BODY_BYTES = 16_000_000
/** The largest call has 500 files of three fields; the protocol around it has a few dozen. */
const BODY_BOUNDS: JsonBounds = { maxDepth: 32, maxValues: 5000 }

interface McpDeps {
  services: ToolServices
  access: Pick<Access, 'tokenActor'>
  oauth: Pick<OAuth, 'actorOf'>
  baseUrl: string
  log: Log
}

export function mcpRoutes({ services, access, oauth, baseUrl, log }: McpDeps): Route[] {
  const resource = `${baseUrl}/mcp`
  const mayCall = createOriginCheck(baseUrl)
  const handler = createMcpHandler(({ authInfo }) => createToolServer(authInfo!.extra!['actor'] as Actor, services), {
    maxRequestBodySize: MAX_BODY_BYTES,
    onerror: (error) => log.debug({ err: error }, 'mcp'),
  })

  async function actorOf(request: Request): Promise<Actor | undefined> {
    const token = /^bearer +(\S+)$/i.exec(request.header('authorization') ?? '')?.[1]
    if (token === undefined) return undefined
    return token.startsWith(API_TOKEN_PREFIX)
      ? access.tokenActor(token, request.ip)
      : oauth.actorOf(token, resource, request.ip)
  }

  /** RFC 6750 §3 and RFC 9728 §5.1: what is wrong, and where to ask for a token. */
  function challenge(error: ApiError, problem?: { code: string; description: string }): Reply {
    const parameters = [
      ...(problem ? [`error="${problem.code}"`, `error_description="${problem.description}"`] : []),
      `resource_metadata="${baseUrl}/.well-known/oauth-protected-resource/mcp"`,
      `scope="${SCOPE}"`,
    ]
    return json(error.status, error.toBody(), { 'www-authenticate': `Bearer ${parameters.join(', ')}` })
  }

  function unauthorized(request: Request): Reply {
    const error = errors.unauthorized('Connect with OAuth, or send an API token as a bearer token.')
    if (request.header('authorization') === undefined) return challenge(error)
    return challenge(error, { code: 'invalid_token', description: 'The token is not valid here.' })
  }

  async function answer(request: Request): Promise<Reply> {
    const actor = await actorOf(request)
    if (!actor) return unauthorized(request)
    if (actor.via.kind === 'oauth' && !actor.via.scopes.includes(SCOPE))
      return challenge(errors.forbidden(`This token lacks the scope ${SCOPE}.`), {
        code: 'insufficient_scope',
        description: `The scope ${SCOPE} is needed.`,
      })
    if (!actor.emailVerified) throw errors.emailNotVerified()
    const response = await handler.fetch(await toWebRequest(request, baseUrl), {
      authInfo: { token: '', clientId: '', scopes: [SCOPE], extra: { actor } },
    })
    return toReply(response)
  }

  /** A page that may call hears everything, refusals too: without these headers a browser hides the answer from it. */
  function forOrigin(handle: (request: Request) => Promise<Reply>) {
    return async (request: Request): Promise<Reply> => {
      const origin = request.header('origin')
      if (origin === undefined) return handle(request)
      if (!mayCall(origin)) throw errors.forbidden('Browsers may not call this address from another origin.')
      const reply = await handle(request).catch((error: unknown) => {
        if (!(error instanceof ApiError)) throw error
        return json(error.status, error.toBody(), error.headers)
      })
      return { ...reply, headers: { ...reply.headers, ...corsHeaders(origin) } }
    }
  }

  const preflight = forOrigin(async () => ({ status: 204, headers: PREFLIGHT_HEADERS }))
  return PATHS.flatMap((path): Route[] => [
    ...METHODS.map((method) => ({ method, path, handle: forOrigin(answer) })),
    { method: 'OPTIONS', path, handle: preflight },
  ])
}

async function toWebRequest(request: Request, baseUrl: string): Promise<globalThis.Request> {
  const headers = new Headers()
  for (const name of [
    'content-type',
    'accept',
    'mcp-protocol-version',
    'mcp-session-id',
    'mcp-method',
    'mcp-name',
    'last-event-id',
  ]) {
    const value = request.header(name)
    if (value !== undefined) headers.set(name, value)
  }
  // `*/*` and silence take both kinds of answer; the SDK wants to read their names.
  if (/^$|\*\/\*/.test(request.header('accept') ?? '')) headers.set('accept', 'application/json, text/event-stream')
  const body = request.method === 'POST' ? new Uint8Array(await readCall(request)) : null
  return new globalThis.Request(`${baseUrl}/mcp`, { method: request.method, headers, body, signal: request.signal })
}

async function readCall(request: Request): Promise<Buffer> {
  const bytes = await request.bytes(MAX_BODY_BYTES)
  requireJsonShape(bytes, BODY_BOUNDS)
  return bytes
}

function toReply(response: Response): Reply {
  const headers = { 'cache-control': 'no-store', ...Object.fromEntries(response.headers) }
  return {
    status: response.status,
    headers,
    ...(response.body ? { body: Readable.fromWeb(response.body as ReadableStream) } : {}),
  }
}
