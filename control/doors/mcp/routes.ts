/** The MCP endpoint of those who signed in: streamable HTTP, both protocol eras, bearer tokens only. */
import { createMcpHandler } from '@modelcontextprotocol/server'
import { errors, type ApiError } from '../../../shared/contracts/errors.ts'
import type { Log } from '../../../shared/running/log.ts'
import { API_TOKEN_PREFIX, type Access } from '../../people/access/access.ts'
import { bearerTokenOf } from '../../people/access/bearer.ts'
import type { Actor } from '../../ground/actor.ts'
import type { JsonBounds } from '../../ground/http/bodies/json-shape.ts'
import { json } from '../../ground/http/reply.ts'
import type { Method, Reply, Request, Route } from '../../ground/http/route.ts'
import type { OAuth } from '../oauth/oauth.ts'
import { anonymousMcpRoutes, type AnonymousMcpDependencies } from './anonymous/routes.ts'
import type { MessageLimits } from './http/oversize.ts'
import { createBrowserDoor, receiveCall, toReply, toWebRequest } from './http/transport.ts'
import { createMcpServer } from './server.ts'
import type { ToolServices } from './tool.ts'

const SCOPE = 'mcp'
const API_SCOPE = 'cli'
/** Addresses are typed and pasted: a slash at the end is not another place. */
const PATHS = ['/mcp', '/mcp/']
/** Where clients of the protocol of 2024 look for a stream of events, which this server does not open. */
const SSE_PATHS = ['/sse', '/mcp/sse']
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

/** What a tool would answer to a message over the limit. */
const TOO_LARGE = `message_too_large: A message holds ${MAX_MESSAGE_BYTES / 1_000_000} MB. Get an address with service_upload, PUT the file there (curl -T file "put_url"), then publish it by its upload id. The command line does it in one step: dropway deploy <folder>.`

interface McpDependencies extends Omit<AnonymousMcpDependencies, 'actorOf'> {
  services: ToolServices
  access: Pick<Access, 'tokenActor'>
  oauth: Pick<OAuth, 'actorOf'>
  baseUrl: string
  log: Log
}

export function mcpRoutes(deps: McpDependencies): Route[] {
  const { services, access, oauth, baseUrl, log } = deps
  const resource = `${baseUrl}/mcp`
  const door = createBrowserDoor(baseUrl)
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
    if (request.method === 'GET') throw noStreams(baseUrl)
    const message = await receiveCall(request, { limits: MESSAGE_LIMITS, bounds: BODY_BOUNDS, tooLarge: TOO_LARGE })
    if ('refused' in message) return message.refused
    const response = await handler.fetch(toWebRequest(request, resource, message.bytes), {
      authInfo: { token: '', clientId: '', scopes: [SCOPE], extra: { actor } },
    })
    return toReply(response)
  }

  return [
    ...[...PATHS, API_PATH].flatMap((path): Route[] => [
      ...METHODS.map((method) => ({ method, path, handle: door.forOrigin(answer) })),
      door.preflight(path),
    ]),
    ...SSE_PATHS.map((path): Route => ({ method: 'GET', path, handle: () => inJson(noStreams(baseUrl)) })),
    ...anonymousMcpRoutes({ ...deps, actorOf }),
  ]
}

/** Each call is answered by itself: there is no session, and nothing to listen to between calls. */
function noStreams(baseUrl: string): ApiError {
  return errors
    .methodNotAllowed('POST')
    .saying(
      `This server speaks streamable HTTP (MCP of 2025-03-26 and later) and opens no stream of events (HTTP+SSE of 2024-11-05). Send each message with POST ${baseUrl}/mcp; update the client if it cannot.`,
    )
}

/** Also at a path where people would get a page: only programs come here. */
function inJson(error: ApiError): Reply {
  return json(error.status, error.toBody(), error.headers)
}
