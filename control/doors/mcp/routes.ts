/** The MCP endpoint: streamable HTTP, both protocol eras, bearer tokens only. */
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { ApiError, errors } from '../../../shared/contracts/errors.ts'
import type { Log } from '../../../shared/running/log.ts'
import { API_TOKEN_PREFIX, type Access } from '../../people/access/access.ts'
import { bearerTokenOf } from '../../people/access/bearer.ts'
import type { Actor } from '../../ground/actor.ts'
import { requireJsonShape, type JsonBounds } from '../../ground/http/bodies/json-shape.ts'
import { json } from '../../ground/http/reply.ts'
import type { Method, Reply, Request, Route } from '../../ground/http/route.ts'
import type { OAuth } from '../oauth/oauth.ts'
import { corsHeaders, createOriginCheck, PREFLIGHT_HEADERS } from './origins.ts'
import { readBody, type Body, type MessageLimits } from './oversize.ts'
import { createMcpServer } from './server.ts'
import type { ToolServices } from './tool.ts'

const SCOPE = 'mcp'
const API_SCOPE = 'cli'
/** Addresses are typed and pasted: a slash at the end is not another place. */
const PATHS = ['/mcp', '/mcp/']
/** The same server as a part of the REST API, for what signed in there: the command line bridges it to stdio. */
const API_PATH = '/api/v1/mcp'
const METHODS = ['GET', 'POST', 'DELETE'] satisfies Method[]
/** A message is kept whole in memory, and again as what it says: larger content is sent ahead. */
const MAX_MESSAGE_BYTES = 32_000_000
/** A larger one is read past, because most clients put the id of their call at its end; no model writes this much. */
const MAX_DRAINED_BYTES = 256_000_000
const MESSAGE_LIMITS: MessageLimits = { maxBytes: MAX_MESSAGE_BYTES, maxDrainedBytes: MAX_DRAINED_BYTES }
/** The largest call has 500 files of four fields; the protocol around it has a few dozen. */
const BODY_BOUNDS: JsonBounds = { maxDepth: 32, maxValues: 5000 }

interface McpDependencies {
  services: ToolServices
  access: Pick<Access, 'tokenActor'>
  oauth: Pick<OAuth, 'actorOf'>
  baseUrl: string
  log: Log
}

export function mcpRoutes({ services, access, oauth, baseUrl, log }: McpDependencies): Route[] {
  const resource = `${baseUrl}/mcp`
  const mayCall = createOriginCheck(baseUrl)
  const handler = createMcpHandler(({ authInfo }) => createMcpServer(authInfo?.extra?.['actor'] as Actor, services), {
    maxRequestBodySize: MAX_MESSAGE_BYTES,
    onerror: (error) => log.debug({ err: error }, 'mcp'),
  })

  async function actorOf(request: Request): Promise<Actor | undefined> {
    const token = bearerTokenOf(request.header('authorization'))
    if (token === undefined) return undefined
    if (token.startsWith(API_TOKEN_PREFIX)) return access.tokenActor(token, request.ip)
    const audience = request.path === API_PATH ? `${baseUrl}/api/v1` : resource
    return oauth.actorOf(token, audience, request.ip)
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
    const scope = request.path === API_PATH ? API_SCOPE : SCOPE
    const isWhole = actor.reach.scope === 'everything'
    if (actor.via.kind === 'oauth' && isWhole && !actor.via.scopes.includes(scope))
      return challenge(errors.forbidden(`This token lacks the scope ${SCOPE}.`), {
        code: 'insufficient_scope',
        description: `The scope ${SCOPE} is needed.`,
      })
    if (!actor.emailVerified) throw errors.emailNotVerified()
    const body = request.method === 'POST' ? await readMessage(request) : undefined
    if (body?.kind === 'oversize') return json(200, tooLarge(body.id))
    if (body) requireJsonShape(body.bytes, BODY_BOUNDS)
    const response = await handler.fetch(toWebRequest(request, baseUrl, body?.bytes), {
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
  return [...PATHS, API_PATH].flatMap((path): Route[] => [
    ...METHODS.map((method) => ({ method, path, handle: forOrigin(answer) })),
    { method: 'OPTIONS', path, handle: preflight },
  ])
}

const readMessage = (request: Request): Promise<Body> =>
  readBody(request.stream(), request.header('content-length'), MESSAGE_LIMITS, (size) => request.hold(size))

/** What a tool would answer, from in front of it. */
function tooLarge(id: string | number): unknown {
  const text = `message_too_large: A message holds ${MAX_MESSAGE_BYTES / 1_000_000} MB. Get an address with service_upload, PUT the file there (curl -T file "put_url"), then publish it by its upload id. The command line does it in one step: dropway deploy <folder>.`
  // Asked for by the protocol of 2026, and unknown to the ones before.
  const result = { resultType: 'complete', isError: true, content: [{ type: 'text', text }] }
  return { jsonrpc: '2.0', id, result }
}

function toWebRequest(request: Request, baseUrl: string, bytes: Buffer | undefined): globalThis.Request {
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
  const body = bytes === undefined ? null : new Uint8Array(bytes)
  return new globalThis.Request(`${baseUrl}/mcp`, { method: request.method, headers, body, signal: request.signal })
}

function toReply(response: Response): Reply {
  const headers = { 'cache-control': 'no-store', ...Object.fromEntries(response.headers) }
  return {
    status: response.status,
    headers,
    ...(response.body ? { body: Readable.fromWeb(response.body as ReadableStream) } : {}),
  }
}
