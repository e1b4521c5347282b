/** uWS.HttpRequest over node's IncomingMessage: a view of the request line and the headers. */
import type { ReceivedRequest } from '../../../shared/http/received-request.ts'

export class HttpRequest {
  readonly #message: ReceivedRequest
  readonly #path: string
  readonly #query: string
  readonly #parameters: readonly string[]

  constructor(message: ReceivedRequest, path: string, query: string, parameters: readonly string[]) {
    this.#message = message
    this.#path = path
    this.#query = query
    this.#parameters = parameters
  }

  getUrl(): string {
    return this.#path
  }

  getQuery(): string {
    return this.#query
  }

  getMethod(): string {
    return this.#message.method.toLowerCase()
  }

  getCaseSensitiveMethod(): string {
    return this.#message.method
  }

  getParameter(index: number): string | undefined {
    return this.#parameters[index]
  }

  getHeader(name: string): string {
    const value = this.#message.headers[name]
    return value === undefined ? '' : oneLine(value)
  }

  forEach(visit: (name: string, value: string) => void): void {
    const headers = this.#message.headers
    for (const name in headers) visit(name, this.getHeader(name))
  }
}

function oneLine(value: string | string[]): string {
  return typeof value === 'string' ? value : value.join(', ')
}
