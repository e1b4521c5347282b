/** A caller of the API who keeps the connection from call to call, as the command line, assistants and browsers do. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import type { Account, OwnStack } from '../../test/support/stack.ts'

export interface Caller {
  /** The answer's JSON; throws when it is a refusal. */
  call<Value = unknown>(method: string, path: string, body?: string | Uint8Array): Promise<Value>
  close(): void
}

export function openCaller(
  { httpsPort, ca }: Pick<OwnStack, 'httpsPort' | 'ca'>,
  { token }: Pick<Account, 'token'>,
): Caller {
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 })
  return {
    async call<Value>(method: string, path: string, body?: string | Uint8Array) {
      const request = https.request({
        host: '127.0.0.1',
        port: httpsPort,
        servername: 'localhost',
        ca,
        agent,
        method,
        path,
        headers: {
          host: `localhost:${httpsPort}`,
          authorization: `Bearer ${token}`,
          ...(typeof body === 'string' && { 'content-type': 'application/json' }),
        },
      })
      request.end(body)
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      const text = Buffer.concat(await response.toArray()).toString()
      if (response.statusCode! >= 300) throw new Error(`${method} ${path}: ${response.statusCode} ${text}`)
      return (text === '' ? undefined : JSON.parse(text)) as Value
    },
    close: () => agent.destroy(),
  }
}
