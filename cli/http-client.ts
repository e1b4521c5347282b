/** HTTP over node:http(s): streams both ways, trusts an extra certificate authority, reuses connections. */
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import type { Readable } from 'node:stream'
import { rootCertificates } from 'node:tls'
import { CliError, exitCodes, usageError } from './failure.ts'

/** No byte in either direction for this long: the line is dead. */
const IDLE_TIMEOUT_MS = 120_000

export interface HttpRequest {
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer | Readable
}

export interface HttpReply {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly body: http.IncomingMessage
}

export interface HttpClient {
  send(url: string, request: HttpRequest): Promise<HttpReply>
  close(): void
}

export function createHttpClient({ caFile, userAgent }: { caFile: string | undefined; userAgent: string }): HttpClient {
  const ca = caFile === undefined ? undefined : [...rootCertificates, readCa(caFile)]
  const agents = {
    'http:': new http.Agent({ keepAlive: true }),
    'https:': new https.Agent({ keepAlive: true, ...(ca ? { ca } : {}) }),
  }
  return {
    send(url, { method, headers = {}, body }) {
      const target = new URL(url)
      const secure = target.protocol === 'https:'
      return new Promise((resolve, reject) => {
        const options = {
          method,
          headers: { 'user-agent': userAgent, ...lengthOf(body), ...headers },
          agent: agents[secure ? 'https:' : 'http:'],
        }
        const request = (secure ? https : http).request(target, options, (reply) => {
          resolve({ status: reply.statusCode!, headers: reply.headers, body: reply })
        })
        request.setTimeout(IDLE_TIMEOUT_MS, () => request.destroy(new Error('the connection went silent')))
        request.on('error', (error) => reject(unreachable(target, error)))
        sendBody(request, body)
      })
    },
    close() {
      agents['http:'].destroy()
      agents['https:'].destroy()
    },
  }
}

function sendBody(request: http.ClientRequest, body: HttpRequest['body']): void {
  if (body === undefined || typeof body === 'string' || Buffer.isBuffer(body)) {
    request.end(body)
    return
  }
  body.on('error', (error) => request.destroy(error))
  // A reply that comes before the body is sent (413) ends the sending.
  request.on('close', () => body.destroy())
  body.pipe(request)
}

function lengthOf(body: HttpRequest['body']): Record<string, string> {
  if (typeof body === 'string') return { 'content-length': String(Buffer.byteLength(body)) }
  return Buffer.isBuffer(body) ? { 'content-length': String(body.byteLength) } : {}
}

function readCa(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    throw usageError(`DROPWAY_CA_FILE names "${file}", which cannot be read.`)
  }
}

const CERTIFICATE_ERRORS = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/

function unreachable(target: URL, error: NodeJS.ErrnoException): CliError {
  if (error instanceof CliError) return error
  if (CERTIFICATE_ERRORS.test(error.code ?? '')) {
    const message = `The certificate of ${target.host} is not trusted (${error.code}). For a service with its own certificate authority, set DROPWAY_CA_FILE to its PEM file.`
    return new CliError(message, exitCodes.unreachable, 'untrusted_certificate')
  }
  const message = `${target.origin} cannot be reached (${error.code ?? error.message}). Check the connection and DROPWAY_URL.`
  return new CliError(message, exitCodes.unreachable, 'unreachable')
}

export async function readText(reply: HttpReply): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of reply.body as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
