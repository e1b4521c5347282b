/** `dropway mcp`: the hosted MCP server for clients that speak stdio; one JSON-RPC message per line both ways. */
import { stat } from 'node:fs/promises'
import path from 'node:path'
import readline from 'node:readline'
import type { Readable } from 'node:stream'
import { toFailure } from '../../service/api-failure.ts'
import type { Command, Context } from '../../terminal/command.ts'
import { CliError, notSignedIn, usageError } from '../../terminal/failure.ts'
import type { HttpReply } from '../../service/http-client.ts'
import { createLocalContent, LOCAL_CONTENT } from '../../content/local-content.ts'

interface Message {
  readonly id?: string | number | null
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: { readonly protocolVersion?: string; readonly tools?: Record<string, unknown>[] }
}

const INTERNAL_ERROR = -32_603
const PARSE_ERROR = -32_700
const UNAUTHORIZED = 401

export const mcp: Command = {
  kind: 'service',
  name: 'mcp',
  summary: 'Bridge the MCP server to stdio',
  usage: 'mcp [folder]',
  details: [
    'For MCP clients that start a program, such as desktop assistants. Uses the login, or DROPWAY_TOKEN.',
    'Assistants can publish files of the folder (this one, if none is named) by their path, and read nothing outside of it.',
  ],
  maxPositionals: 1,
  async run(context, args) {
    const folder = path.resolve(context.cwd, args.positionals[0] ?? '.')
    const isFolder = await stat(folder).then(
      (stats) => stats.isDirectory(),
      () => false,
    )
    if (!isFolder) throw usageError(`"${args.positionals[0] ?? folder}" is not a folder.`)
    if ((await context.authentication.token()) === undefined)
      throw notSignedIn('Sign in with "dropway login", or set DROPWAY_TOKEN to an API token.')
    await createBridge(context, folder).run()
  },
}

function createBridge({ http, terminal, url: service, authentication }: Context, root: string) {
  // This address takes the tokens of the login, which are made for the API.
  const url = `${service}/api/v1/mcp`
  const local = createLocalContent(root, sendAhead)
  let session: string | undefined
  let protocol: string | undefined

  function write(message: unknown): void {
    terminal.stdout.write(`${JSON.stringify(message)}\n`)
  }

  const headers = (token: string): Record<string, string> => ({
    authorization: `Bearer ${token}`,
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    ...(session === undefined ? {} : { 'mcp-session-id': session }),
    ...(protocol === undefined ? {} : { 'mcp-protocol-version': protocol }),
  })

  /** Sends with the token of the moment, and once more with a new one when it was refused. */
  async function send(method: string, body?: string): Promise<HttpReply> {
    const token = (await authentication.token()) ?? ''
    const request = (bearer: string) =>
      http.send(url, { method, headers: headers(bearer), ...(body === undefined ? {} : { body }) })
    const reply = await request(token)
    if (reply.status !== UNAUTHORIZED) return reply
    const renewed = await authentication.renew(token)
    if (renewed === undefined) return reply
    await reply.text()
    return request(renewed)
  }

  /** A call of our own, beside those of the client. */
  async function sendAhead(name: string, body: () => Readable, size: number): Promise<string> {
    const call = { name: 'service_upload', arguments: { name } }
    const reply = await send('POST', JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'tools/call', params: call }))
    let answered: UploadAnswer | undefined
    await relayReply(reply, (message) => void (answered = message as UploadAnswer))
    const { upload, put_url: address } = answered?.result?.structuredContent ?? {}
    if (upload === undefined || address === undefined) throw new Error(`The service gave no address for "${name}".`)
    const sent = await http.send(address, { method: 'PUT', headers: { 'content-length': String(size) }, body })
    const text = await sent.text()
    if (sent.status >= 300) throw toFailure(sent.status, text)
    return upload
  }

  /** What the handshake settled is repeated in the headers of every later call; tools gain what this machine adds. */
  function relay(message: Message): void {
    protocol = message.result?.protocolVersion ?? protocol
    const tools = message.result?.tools
    write(tools === undefined ? message : { ...message, result: { ...message.result, tools: local.describe(tools) } })
  }

  async function withLocalContent(message: Message, line: string): Promise<string> {
    const { params } = message
    const args = params?.['arguments']
    if (message.method !== 'tools/call' || params === undefined || typeof args !== 'object' || args === null)
      return line
    const call = await local.resolve({ name: String(params['name']), arguments: args as Record<string, unknown> })
    return JSON.stringify({ ...message, params: { ...params, ...call } })
  }

  async function forward(line: string): Promise<void> {
    const message = parse(line)
    if (message === undefined)
      return write({ jsonrpc: '2.0', id: null, error: { code: PARSE_ERROR, message: 'The line is not JSON.' } })
    try {
      const reply = await send('POST', await withLocalContent(message, line))
      const given = reply.headers['mcp-session-id']
      if (typeof given === 'string') session = given
      await relayReply(reply, relay)
    } catch (error) {
      // No one waits for an answer to a notification.
      if (message.id === undefined || message.id === null) terminal.stderr.write(`${describe(error)}\n`)
      else write({ jsonrpc: '2.0', id: message.id, ...failureOf(message, error) })
    }
  }

  return {
    async run(): Promise<void> {
      const pending = new Set<Promise<void>>()
      for await (const line of readline.createInterface({ input: terminal.stdin })) {
        if (line.trim() === '') continue
        const work = forward(line).finally(() => pending.delete(work))
        pending.add(work)
        // Nothing may overtake the handshake; later calls run side by side.
        if (parse(line)?.method === 'initialize') await work
      }
      await Promise.all(pending)
      if (session !== undefined) await send('DELETE').catch(() => {})
    },
  }
}

interface UploadAnswer {
  readonly result?: { readonly structuredContent?: { readonly upload?: string; readonly put_url?: string } }
}

/** What is wrong with a call's arguments is for the model to read; everything else is an error of the protocol. */
function failureOf(message: Message, error: unknown): Record<string, unknown> {
  if (message.method === 'tools/call' && error instanceof CliError && error.code === LOCAL_CONTENT)
    return { result: { isError: true, content: [{ type: 'text', text: error.message }] } }
  return { error: { code: INTERNAL_ERROR, message: describe(error) } }
}

async function relayReply(reply: HttpReply, relay: (message: Message) => void): Promise<void> {
  if ((reply.headers['content-type'] ?? '').includes('text/event-stream')) {
    for await (const data of events(reply.body)) relay(JSON.parse(data) as Message)
    return
  }
  const text = await reply.text()
  const message = parse(text)
  // JSON-RPC errors come with an error status too and are passed on as they are.
  if (message !== undefined && 'jsonrpc' in message) relay(message)
  else if (Array.isArray(message)) for (const one of message as Message[]) relay(one)
  else if (reply.status >= 300) throw toFailure(reply.status, text)
}

/** The data of each server-sent event. */
async function* events(body: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true })
    const blocks = rest.split(/\r?\n\r?\n/)
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const data = block
        .split(/\r?\n/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).replace(/^ /, ''))
      if (data.join('') !== '') yield data.join('\n')
    }
  }
}

function parse(text: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

function describe(error: unknown): string {
  return error instanceof CliError || error instanceof Error ? error.message : String(error)
}
