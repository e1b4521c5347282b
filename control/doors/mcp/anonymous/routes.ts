/** The MCP endpoint of first contact: no token, one tool. `/mcp` beside it asks everyone to sign in. */
import { createMcpHandler } from '@modelcontextprotocol/server'
import { errors } from '../../../../shared/contracts/errors.ts'
import { plans } from '../../../ground/terms/plans.ts'
import type { Actor } from '../../../ground/actor.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import type { JsonBounds } from '../../../ground/http/bodies/json-shape.ts'
import { json } from '../../../ground/http/reply.ts'
import type { Method, Reply, Request, Route } from '../../../ground/http/route.ts'
import { signalsOf } from '../../../drops/anonymous/signals.ts'
import type { MessageLimits } from '../http/oversize.ts'
import { createBrowserDoor, receiveCall, toReply, toWebRequest } from '../http/transport.ts'
import { createAnonymousServer, type AnonymousServerDependencies, type Caller } from './server.ts'

const PATHS = ['/mcp/anonymous', '/mcp/anonymous/']
const METHODS = ['GET', 'POST', 'DELETE'] satisfies Method[]
/** JSON may write a byte of the page as six (`\\u0001`), and the protocol around it takes a little. */
const MAX_MESSAGE_BYTES = plans.anonymous.uploadBytes * 6 + 100_000
const MESSAGE_LIMITS: MessageLimits = { maxBytes: MAX_MESSAGE_BYTES, maxDrainedBytes: 2 * MAX_MESSAGE_BYTES }
/** A call has three fields. */
const BODY_BOUNDS: JsonBounds = { maxDepth: 32, maxValues: 1000 }

export interface AnonymousMcpDependencies extends AnonymousServerDependencies {
  readonly config: AnonymousServerDependencies['config'] & Pick<ControlConfig, 'mcpAnonymous'>
  /** Whose token a request carries; undefined without a valid one. */
  actorOf(request: Request): Promise<Actor | undefined>
}

export function anonymousMcpRoutes(deps: AnonymousMcpDependencies): Route[] {
  const { config, log, actorOf } = deps
  const signIn = `${config.baseUrl}/mcp`
  const door = createBrowserDoor(config.baseUrl)
  const handler = createMcpHandler(
    ({ authInfo }) => createAnonymousServer(authInfo?.extra?.['caller'] as Caller, deps),
    { maxRequestBodySize: MAX_MESSAGE_BYTES, onerror: (error) => log.debug({ err: error }, 'mcp') },
  )
  const tooLarge = `message_too_large: A page without an account holds ${plans.anonymous.uploadBytes / 1_000_000} MB. Make it smaller, or sign in at ${signIn}.`

  async function answer(request: Request): Promise<Reply> {
    if (!config.mcpAnonymous) throw errors.anonymousOff(`Sign in at ${signIn}.`)
    if (request.header('authorization') !== undefined && !(await actorOf(request))) return wrongToken(signIn)
    if (request.method !== 'POST')
      throw errors
        .methodNotAllowed('POST')
        .saying(`This address answers POST with one JSON-RPC message; it keeps no sessions and opens no streams.`)
    const message = await receiveCall(request, { limits: MESSAGE_LIMITS, bounds: BODY_BOUNDS, tooLarge })
    if ('refused' in message) return message.refused
    const caller: Caller = { ip: request.ip, signals: signalsOf(request, config.baseUrl) }
    const response = await handler.fetch(toWebRequest(request, `${signIn}/anonymous`, message.bytes), {
      authInfo: { token: '', clientId: '', scopes: [], extra: { caller } },
    })
    return toReply(response)
  }

  return PATHS.flatMap((path): Route[] => [
    ...METHODS.map((method) => ({ method, path, handle: door.forOrigin(answer) })),
    door.preflight(path),
  ])
}

/** RFC 6750 §3. It names no place to sign in: this address needs no token at all. */
function wrongToken(signIn: string): Reply {
  const error = errors.unauthorized(
    `The token is not valid. Leave it out to publish without an account, or sign in at ${signIn}.`,
  )
  return json(401, error.toBody(), { 'www-authenticate': 'Bearer error="invalid_token"' })
}
