/** `dropway mcp`: the hosted MCP server for clients that speak stdio; one JSON-RPC message per line both ways. */
import readline from 'node:readline'
import { toFailure } from '../api-failure.ts'
import type { Command, Context } from '../command.ts'
import { CliError, notSignedIn } from '../failure.ts'
import type { HttpReply } from '../http-client.ts'

interface Message {
  readonly id?: string | number | null
  readonly method?: string
  readonly result?: { readonly protocolVersion?: string }
}

const INTERNAL_ERROR = -32_603
const PARSE_ERROR = -32_700

export const mcp: Command = {
  kind: 'service',
  name: 'mcp',
  summary: 'Bridge the MCP server to stdio',
  usage: 'mcp',
  details: ['Takes an API token from DROPWAY_TOKEN. For MCP clients that start a program, such as desktop assistants.'],
  maxPositionals: 0,
  async run(context) {
    if (context.settings.token === undefined)
      throw notSignedIn('Set DROPWAY_TOKEN to an API token from the dashboard settings.')
    await createBridge(context, context.settings.token).run()
  },
}

function createBridge({ http, terminal, url: service }: Context, token: string) {
  const url = `${service}/mcp`
  let session: string | undefined
  let protocol: string | undefined

  function write(message: unknown): void {
    terminal.stdout.write(`${JSON.stringify(message)}\n`)
  }

  const headers = (): Record<string, string> => ({
    authorization: `Bearer ${token}`,
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    ...(session === undefined ? {} : { 'mcp-session-id': session }),
    ...(protocol === undefined ? {} : { 'mcp-protocol-version': protocol }),
  })

  /** What the handshake settled is repeated in the headers of every later call. */
  function relay(message: Message): void {
    protocol = message.result?.protocolVersion ?? protocol
    write(message)
  }

  async function forward(line: string): Promise<void> {
    const message = parse(line)
    if (message === undefined)
      return write({ jsonrpc: '2.0', id: null, error: { code: PARSE_ERROR, message: 'The line is not JSON.' } })
    try {
      const reply = await http.send(url, { method: 'POST', headers: headers(), body: line })
      const given = reply.headers['mcp-session-id']
      if (typeof given === 'string') session = given
      await relayReply(reply, relay)
    } catch (error) {
      // A notification has nobody who waits for an answer.
      if (message.id === undefined || message.id === null) terminal.stderr.write(`${describe(error)}\n`)
      else write({ jsonrpc: '2.0', id: message.id, error: { code: INTERNAL_ERROR, message: describe(error) } })
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
      if (session !== undefined) await http.send(url, { method: 'DELETE', headers: headers() }).catch(() => {})
    },
  }
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
    rest = blocks.pop()!
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
