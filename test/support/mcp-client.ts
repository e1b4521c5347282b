/** The official MCP client against the real stack. */
import {
  Client,
  type ClientOptions,
  StreamableHTTPClientTransport,
  type StreamableHTTPClientTransportOptions,
} from '@modelcontextprotocol/client'
import { webFetch } from './oauth-client.ts'
import type { Stack } from './stack.ts'

/** `legacy` speaks the revisions up to 2025-11-25, `modern` is pinned to 2026-07-28. */
export type Era = 'legacy' | 'modern'

export function newClient(era: Era, options: Pick<ClientOptions, 'capabilities'> = {}): Client {
  const mode = era === 'legacy' ? ('legacy' as const) : { pin: '2026-07-28' }
  return new Client({ name: 'test', version: '1' }, { ...options, versionNegotiation: { mode } })
}

export function newTransport(
  stack: Stack,
  options: Pick<StreamableHTTPClientTransportOptions, 'authProvider'>,
): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(new URL(`${stack.baseUrl}/mcp`), { ...options, fetch: webFetch(stack) })
}

export async function connectWithToken(stack: Stack, token: string, era: Era): Promise<Client> {
  const client = newClient(era)
  await client.connect(newTransport(stack, { authProvider: { token: async () => token } }))
  return client
}
