/**
 * Proxies that the environment names: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, in capitals or not, as curl
 * reads them. Both http and https travel through a tunnel (CONNECT, RFC 9110 §9.3.6), so that a proxy learns a name and
 * no token. Node has proxies of its own since 22.21 and 24.5; the client runs on Node 20 too, and is the same everywhere.
 */
import type { Agent } from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import { nodeHttp } from '../../shared/http/node-http.ts'
import { isTrusted, trustedNetworks } from '../../shared/http/ip.ts'
import { CliError, exitCodes, usageError } from '../terminal/failure.ts'

type Env = Readonly<Record<string, string | undefined>>

/** The tunnel did not come to be. */
export class ProxyTrouble extends Error {
  /** No one listens there, or there is no such name. */
  readonly refused: boolean
  constructor(message: string, refused: boolean) {
    super(message)
    this.refused = refused
  }
}

/** The proxy that a request to this address goes through; none is undefined. No address is exempt by itself. */
export function proxyFor(target: URL, env: Env): URL | undefined {
  const name = target.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const value = valueOf(env, name) ?? valueOf(env, 'ALL_PROXY')
  if (value === undefined || isExempt(target, valueOf(env, 'NO_PROXY') ?? '')) return undefined
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`
  const proxy = URL.canParse(address) ? new URL(address) : undefined
  if (proxy === undefined || !/^https?:$/.test(proxy.protocol))
    throw usageError(`${name} must be the address of an HTTP proxy, such as http://proxy.example:3128.`)
  return proxy
}

function valueOf(env: Env, name: string): string | undefined {
  return env[name.toLowerCase()] || env[name] || undefined
}

/** `*`, a name with all that is below it, an address, a network; each with a port of its own or with any. */
function isExempt(target: URL, list: string): boolean {
  const host = target.hostname.replace(/^\[|\]$/g, '')
  const port = target.port || (target.protocol === 'https:' ? '443' : '80')
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => {
      if (entry === '*') return true
      const [, bracketed, name = entry, entryPort] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(entry) ?? []
      if (entryPort !== undefined && entryPort !== port) return false
      const wanted = (bracketed ?? name).replace(/^\*?\./, '')
      return (
        wanted !== '' && (host === wanted || host.endsWith(`.${wanted}`) || isTrusted(host, trustedNetworks([wanted])))
      )
    })
}

/** An agent whose connections to the service lead through the proxy. */
export function createTunnelAgent(
  proxy: URL,
  isSecure: boolean,
  options: https.AgentOptions,
  timeoutMs: number,
): Agent {
  const agent = isSecure ? new https.Agent(options) : new nodeHttp.Agent(options)
  const connect = agent.createConnection.bind(agent)
  agent.createConnection = (wanted, connected) => {
    const host = wanted.host?.includes(':') ? `[${wanted.host}]` : wanted.host
    openTunnel(proxy, `${host}:${wanted.port}`, timeoutMs).then(
      (socket) => connected?.(null, (isSecure && connect({ ...wanted, socket } as https.RequestOptions)) || socket),
      (error: Error) => (connected as ((failure: Error) => void) | undefined)?.(error),
    )
    return undefined
  }
  return agent
}

function openTunnel(proxy: URL, target: string, timeoutMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { username, password } = proxy
    const login = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')
    const request = (proxy.protocol === 'https:' ? https : nodeHttp).request({
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
      method: 'CONNECT',
      path: target,
      agent: false,
      timeout: timeoutMs,
      headers: { host: target, ...(username === '' ? {} : { 'proxy-authorization': `Basic ${login}` }) },
    })
    request.once('connect', (reply, socket: Socket) => {
      if (reply.statusCode === 200) return resolve(socket.setTimeout(0))
      socket.destroy()
      reject(refusal(proxy, reply.statusCode ?? 0))
    })
    request.once('response', (reply) => {
      reply.destroy()
      reject(refusal(proxy, reply.statusCode ?? 0))
    })
    request.once('timeout', () => request.destroy(new Error('it does not answer')))
    request.once('error', (error: NodeJS.ErrnoException) => reject(absence(proxy, error)))
    request.end()
  })
}

/** A refusal of the caller is final; a proxy that cannot reach the service may reach it later. */
function refusal({ origin }: URL, status: number): Error {
  const message = `The proxy ${origin} answered ${status}.`
  if (status >= 500) return new ProxyTrouble(message, false)
  const hint = 'Check HTTPS_PROXY, or name the service in NO_PROXY.'
  return new CliError(`${message} ${hint}`, exitCodes.unreachable, 'proxy_refused')
}

function absence({ origin }: URL, { code, message }: NodeJS.ErrnoException): ProxyTrouble {
  const isRefused = code === 'ECONNREFUSED' || code === 'ENOTFOUND'
  return new ProxyTrouble(`The proxy ${origin} cannot be reached (${code ?? message}). Check HTTPS_PROXY.`, isRefused)
}
