/** What agents read before they call: who this is, where its endpoints are, how to sign in. Pure. */
import type { Look } from '../../../shared/pages/look.ts'

export interface FoundFacts {
  readonly baseUrl: string
  readonly look: Pick<Look, 'name'>
  /** Is `/mcp/anonymous` there? */
  readonly mcpAnonymous: boolean
  readonly guides: readonly { readonly name: string; readonly title: string; readonly text: string }[]
}

const ABOUT =
  'Publishes pages, Markdown, folders and zips at public HTTPS addresses and keeps every upload as a version. Static files only; passwords, named viewers, custom domains and rollbacks.'

/** `/.well-known/mcp/server-card.json`: what a client may know before it connects. */
export function serverCard({ baseUrl, look, mcpAnonymous }: FoundFacts, serverName: string): Record<string, unknown> {
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/mcp-server-card/v1.json',
    version: '1.0',
    protocolVersion: '2025-11-25',
    serverInfo: { name: serverName, title: look.name, version: '1.0.0' },
    description: ABOUT,
    documentationUrl: `${baseUrl}/docs/assistants`,
    transport: { type: 'streamable-http', endpoint: `${baseUrl}/mcp` },
    ...(mcpAnonymous ? { remotes: [`${baseUrl}/mcp`, `${baseUrl}/mcp/anonymous`] } : {}),
    capabilities: { tools: {}, resources: {} },
    authentication: { required: true, schemes: ['oauth2', 'bearer'] },
    tools: ['dynamic'],
  }
}

/** llmstxt.org. */
export function serviceLlmsTxt(facts: FoundFacts): string {
  const { baseUrl, look, guides } = facts
  return [
    `# ${look.name}`,
    '',
    `> ${ABOUT}`,
    '',
    '## For agents',
    '',
    ...agentLines(facts),
    '',
    '## Guides',
    '',
    ...guides.map(({ name, title, text }) => `- [${title}](${baseUrl}/docs/${name})${aboutOf(text)}`),
    '',
    '## Optional',
    '',
    `- [Everything in one file](${baseUrl}/llms-full.txt)`,
    '',
  ].join('\n')
}

function agentLines({ baseUrl, mcpAnonymous }: FoundFacts): string[] {
  return [
    ...(mcpAnonymous
      ? [
          `- [MCP without an account](${baseUrl}/mcp/anonymous): one tool, service_publish_page, publishes a page for a while and says how to keep it.`,
        ]
      : []),
    `- [MCP](${baseUrl}/mcp): all tools; sign in with OAuth, or send an API token.`,
    `- [How to sign in](${baseUrl}/auth.md): OAuth, device login, API tokens, workflows.`,
    `- [API](${baseUrl}/api/v1/openapi.json): the whole REST API as an OpenAPI document.`,
    `- [Server card](${baseUrl}/.well-known/mcp/server-card.json): the MCP server as a document.`,
  ]
}

/** The first sentence of a guide. */
function aboutOf(text: string): string {
  const paragraph = text.split('\n\n').find((part, place) => place > 0 && /^[A-Z]/.test(part))
  const sentence = paragraph?.replaceAll('\n', ' ').split(/(?<=\.) /, 1)[0]
  return sentence === undefined ? '' : `: ${sentence}`
}

export function serviceLlmsFull(facts: FoundFacts): string {
  return [serviceLlmsTxt(facts), authGuide(facts), ...facts.guides.map(({ text }) => text.trim())].join('\n\n---\n\n')
}

export function authGuide({ baseUrl, look, mcpAnonymous }: FoundFacts): string {
  return `# How agents sign in to ${look.name}

${
  mcpAnonymous
    ? `## Without an account

\`${baseUrl}/mcp/anonymous\` needs no token. \`POST ${baseUrl}/api/v1/drops\` with one file does the same. The page lives for a while; a person keeps it with the \`claim_url\` of the answer.

`
    : ''
}## OAuth 2.1, for MCP clients and apps

1. \`POST ${baseUrl}/mcp\` without a token answers 401; its \`WWW-Authenticate\` header names the metadata.
2. \`${baseUrl}/.well-known/oauth-protected-resource/mcp\` names the authorization server, \`${baseUrl}/.well-known/oauth-authorization-server\` its endpoints.
3. Register with \`POST ${baseUrl}/oauth/register\` (RFC 7591), or use the address of a client metadata document as your \`client_id\`. Clients are public: no secret, PKCE with S256.
4. Send the person to the authorization endpoint with \`resource=${baseUrl}/mcp\` and a scope: \`mcp\` for everything, or \`read\`, \`publish\`, \`manage\`.
5. Exchange the code at the token endpoint, and send the token as \`Authorization: Bearer\`. Refresh it when it ends; a used refresh token ends the grant.

## Without a browser

The device grant (RFC 8628): \`POST ${baseUrl}/oauth/device_authorization\`, show the person the code, ask for the token until it is there.

## API tokens, for scripts and CI

A person makes one at ${baseUrl}/account/tokens, for one scope and some drops if they wish. Send it as \`Authorization: Bearer dw_…\` to \`${baseUrl}/api/v1\` or \`${baseUrl}/mcp\`.

## Workflows of a forge

A drop can trust a workflow: its own identity token is exchanged at \`${baseUrl}/oauth/token\` (RFC 8693). No secret is stored.

Access is taken back at ${baseUrl}/account/apps and ${baseUrl}/account/tokens.
`
}
