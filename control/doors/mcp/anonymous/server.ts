/** The MCP server of those who have not signed in: one tool, which publishes a page for a while. */
import { INVALID_PARAMS, ProtocolError, Server, type CallToolResult } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { errors } from '../../../../shared/contracts/errors.ts'
import { MAX_TITLE_CHARS } from '../../../../shared/contracts/limits.ts'
import { HOUR_MS, SECOND_MS, type Clock } from '../../../../shared/running/clock.ts'
import { programNameOf } from '../../../../shared/pages/look.ts'
import type { Log } from '../../../../shared/running/log.ts'
import { randomSecret } from '../../../../shared/secrets/secrets.ts'
import type { Anonymous, Publisher } from '../../../drops/anonymous/anonymous.ts'
import { filenameOfText } from '../../../drops/publishing/files/pasted-text.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import type { RateLimiter } from '../../../ground/http/limits/rate-limit.ts'
import { toApiError } from '../../../ground/http/server/failure.ts'
import { readArguments } from '../arguments.ts'
import { briefSchemaOf, outlineOf } from '../tool.ts'
import { keepText, ownedArgument, refusalText } from './rules.ts'

const TOOL = 'service_publish_page'

const input = z.strictObject({
  content: z.string().min(1).describe('The whole page'),
  format: z.enum(['html', 'markdown']).optional(),
  title: z.string().max(MAX_TITLE_CHARS).optional(),
})
const output = z.object({ url: z.string(), claim_url: z.string(), expires_at: z.string(), keep: z.string() })

export interface AnonymousServerDependencies {
  readonly anonymous: Pick<Anonymous, 'admit' | 'publishText'>
  readonly limiter: Pick<RateLimiter, 'consume'>
  readonly config: Pick<ControlConfig, 'mcpAnonymousPerHour' | 'baseUrl' | 'anonymousLifetimeMs' | 'look'>
  readonly clock: Clock
  readonly log: Log
}

/** Who calls; each call is a browser of its own, since assistants carry no cookie from one to the next. */
export type Caller = Omit<Publisher, 'anonymousId'>

export function createAnonymousServer(caller: Caller, deps: AnonymousServerDependencies): Server {
  const signIn = `${deps.config.baseUrl}/mcp`
  const listed = listedTool(deps.config)
  const server = new Server(
    {
      name: `${programNameOf(deps.config.look)}-anonymous`,
      title: `${deps.config.look.name}, without an account`,
      version: '1.0.0',
    },
    { instructions: instructionsOf(signIn), capabilities: { tools: {} } },
  )
  server.setRequestHandler('tools/list', () => ({ tools: [listed] }))
  server.setRequestHandler('tools/call', ({ params }) => {
    if (params.name !== TOOL)
      throw new ProtocolError(
        INVALID_PARAMS,
        `There is no tool "${params.name}" without an account; there is ${TOOL}. Sign in at ${signIn} for all others.`,
      )
    return publishPage(params.arguments, caller, deps)
  })
  return server
}

function instructionsOf(signIn: string): string {
  return `${TOOL} publishes one page without an account, for a while. Tell the person its address, claim_url and when it ends. Updating, sites of several files, passwords and lists need an account: ${signIn}.`
}

function listedTool({ anonymousLifetimeMs }: AnonymousServerDependencies['config']) {
  const days = Math.max(1, Math.round(anonymousLifetimeMs / (24 * HOUR_MS)))
  return {
    name: TOOL,
    title: 'Publish a page',
    description: `Publish one HTML or Markdown page at a public address for ${days} day${days === 1 ? '' : 's'}, without an account. claim_url keeps it: give it to the person.`,
    inputSchema: briefSchemaOf(input),
    outputSchema: outlineOf(output),
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
  }
}

async function publishPage(
  args: unknown,
  caller: Caller,
  { anonymous, limiter, config, clock, log }: AnonymousServerDependencies,
): Promise<CallToolResult> {
  const signIn = `${config.baseUrl}/mcp`
  try {
    const owned = ownedArgument(args, signIn)
    if (owned !== undefined) throw errors.invalidRequest(owned)
    const { content, format, title } = readArguments(input, args)
    const publisher = { ...caller, anonymousId: randomSecret(16) }
    await anonymous.admit(publisher)
    // Counted after the network's own share: one network must not use up what is there for all.
    const limit = { points: config.mcpAnonymousPerHour, windowSeconds: HOUR_MS / SECOND_MS }
    await limiter.consume('mcp-anonymous', 'all', limit)
    const { value } = await anonymous.publishText(publisher, {
      filename: filenameOfText(content, format),
      content,
      title,
    })
    const { url, claim_url, expires_at, report } = value
    const warnings = report.warnings.map(({ message }) => message)
    const facts = {
      url,
      claim_url,
      expires_at,
      keep: keepText(claim_url, expires_at, signIn),
      ...(warnings.length > 0 ? { warnings } : {}),
    }
    return { content: [{ type: 'text', text: JSON.stringify(facts) }], structuredContent: facts }
  } catch (error) {
    const problem = toApiError(error, log, { method: 'POST', path: '/mcp/anonymous', now: clock.now() })
    return { isError: true, content: [{ type: 'text', text: refusalText(problem, { now: clock.now(), signIn }) }] }
  }
}
