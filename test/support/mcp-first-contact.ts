/**
 * Other people's MCP clients, as they come from npm, each in a program of its own. They are installed beside the repository:
 * together they are larger than everything else in it, and only the deep run has them.
 */
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { installFromNpm } from './registries.ts'

const run = promisify(execFile)

/** Kept from run to run: what is installed already is not installed again. */
const FOLDER = path.join(os.tmpdir(), 'dropway-mcp-clients')
const CALL_MS = 120_000
const INSPECTOR = path.resolve(import.meta.dirname, '../../node_modules/.bin/mcp-inspector')

const PACKAGES = [
  '@ai-sdk/mcp@1.0.88',
  '@mastra/core@0.24.9',
  '@mastra/mcp@0.14.5',
  '@modelcontextprotocol/client@2.4.0',
  '@modelcontextprotocol/sdk@1.32.2',
  '@openai/agents-core@0.20.0',
  'mcp-client@1.13.1',
  'mcp-remote@0.15.1',
  'mcporter@0.9.0',
  'supergateway@4.0.0',
]

/** A bridge that speaks stdio to its own client, and HTTP to us. */
const bridge = (program: string, args: string): string => `
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js')
  const client = new Client({ name: 'bridged', version: '1' })
  const command = process.execPath
  await client.connect(new StdioClientTransport({ command, args: ['node_modules/.bin/${program}', ${args}], env: process.env, stderr: 'ignore' }))
  const { tools } = await client.listTools()
  const result = await client.callTool({ name, arguments: args })
  await client.close()
  return { tools, result }`

const ofOfficial = (mode: string): string => `
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
  const client = new Client({ name: 'official', version: '1' }, { versionNegotiation: { mode: ${mode} } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))
  const { tools } = await client.listTools()
  const result = await client.callTool({ name, arguments: args })
  await client.close()
  return { tools, result }`

/**
 * By name, the body of a function of `url`, `headers` and `token` (undefined without an account), `name` and `args`: it
 * lists the tools, calls one, and tells both as the client gave them.
 */
export const CLIENTS: Readonly<Record<string, string>> = {
  '@modelcontextprotocol/client, 2026-07-28': ofOfficial("{ pin: '2026-07-28' }"),
  '@modelcontextprotocol/client, the protocol before': ofOfficial("'legacy'"),
  '@modelcontextprotocol/sdk': `
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
  const client = new Client({ name: 'sdk-1', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))
  const { tools } = await client.listTools()
  const result = await client.callTool({ name, arguments: args })
  await client.close()
  return { tools, result }`,
  '@ai-sdk/mcp': `
  const { createMCPClient } = await import('@ai-sdk/mcp')
  const client = await createMCPClient({ transport: { type: 'http', url, headers } })
  const tools = await client.tools()
  const result = await tools[name].execute(args, { toolCallId: '1', messages: [] })
  await client.close()
  return { tools: Object.keys(tools).map((each) => ({ name: each })), result }`,
  '@openai/agents-core': `
  const { MCPServerStreamableHttp } = await import('@openai/agents-core')
  const server = new MCPServerStreamableHttp({ url, name: 'dropway', requestInit: { headers } })
  await server.connect()
  const tools = await server.listTools()
  const result = await server.callTool(name, args)
  await server.close()
  return { tools, result }`,
  'mcp-client': `
  const { MCPClient } = await import('mcp-client')
  // It knows no credentials: its user gives them to fetch.
  const { fetch } = globalThis
  globalThis.fetch = (to, init = {}) => fetch(to, { ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), ...headers } })
  const client = new MCPClient({ name: 'mcp-client', version: '1' })
  await client.connect({ type: 'httpStream', url })
  const tools = await client.getAllTools()
  const result = await client.callTool({ name, arguments: args })
  await client.close()
  return { tools, result }`,
  mcporter: `
  const { createRuntime } = await import('mcporter')
  const command = { kind: 'http', url: new URL(url), headers }
  const runtime = await createRuntime({ servers: [{ name: 'dropway', command }] })
  const tools = await runtime.listTools('dropway')
  const result = await runtime.callTool('dropway', name, { args })
  await runtime.close()
  return { tools, result }`,
  '@mastra/mcp': `
  const { MCPClient } = await import('@mastra/mcp')
  const client = new MCPClient({ servers: { dropway: { url: new URL(url), requestInit: { headers } } } })
  const tools = await client.getTools()
  const result = await tools['dropway_' + name].execute({ context: args })
  await client.disconnect()
  return { tools: Object.keys(tools).map((each) => ({ name: each.replace('dropway_', '') })), result }`,
  supergateway: bridge(
    'supergateway',
    "'--streamableHttp', url, '--logLevel', 'none', ...(token ? ['--oauth2Bearer', token] : [])",
  ),
  'mcp-remote': bridge('mcp-remote', "url, ...(token ? ['--header', 'Authorization:Bearer ' + token] : [])"),
  '@modelcontextprotocol/inspector': `
  const { execFileSync } = await import('node:child_process')
  const ask = (...more) => JSON.parse(execFileSync(process.execPath, [${JSON.stringify(INSPECTOR)}, '--cli', url, '--transport', 'http', ...(token ? ['--header', 'Authorization: Bearer ' + token] : []), ...more], { encoding: 'utf8' }))
  const { tools } = ask('--method', 'tools/list')
  const given = Object.entries(args).flatMap(([key, value]) => ['--tool-arg', key + '=' + value])
  return { tools, result: ask('--method', 'tools/call', '--tool-name', name, ...given) }`,
}

const PROGRAM = `
const { client, url, token, name, args } = JSON.parse(process.argv[2])
const headers = token ? { authorization: 'Bearer ' + token } : {}
const { default: contact } = await import('./' + client)
console.log('ANSWER ' + JSON.stringify(await contact({ url, token, headers, name, args })))
process.exit(0)
`

const fileOf = (client: string): string => `${client.replace(/[^a-z0-9]+/gi, '-')}.mjs`

export async function installClients(): Promise<void> {
  await mkdir(FOLDER, { recursive: true })
  await writeFile(path.join(FOLDER, 'package.json'), '{"type":"module","private":true}')
  await writeFile(path.join(FOLDER, 'contact.mjs'), PROGRAM)
  for (const [client, body] of Object.entries(CLIENTS))
    await writeFile(
      path.join(FOLDER, fileOf(client)),
      `export default async ({ url, token, headers, name, args }) => {${body}\n}\n`,
    )
  await installFromNpm(FOLDER, PACKAGES, ['--ignore-scripts', '--legacy-peer-deps'])
}

/** What a client says when it calls one tool: the names of all tools, and the result as text without its escapes. */
export async function contact(
  client: string,
  call: { url: string; token?: string; name: string; args: Record<string, string> },
  caFile: string,
): Promise<{ tools: string[]; said: string }> {
  const asked = JSON.stringify({ client: fileOf(client), ...call })
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: caFile, NODE_OPTIONS: '', HOME: FOLDER }
  const { stdout } = await run(process.execPath, ['contact.mjs', asked], { cwd: FOLDER, env, timeout: CALL_MS })
  const line = stdout.split('\n').find((each) => each.startsWith('ANSWER '))
  if (line === undefined) throw new Error(`${client} said nothing: ${stdout.slice(0, 500)}`)
  const { tools, result } = JSON.parse(line.slice('ANSWER '.length)) as { tools: { name: string }[]; result: unknown }
  return { tools: tools.map((tool) => tool.name), said: JSON.stringify(result).replaceAll('\\', '') }
}
