/** What is to be loaded: where to connect, and what to ask for there. */
import { readFileSync, statSync } from 'node:fs'
import { lookup } from 'node:dns/promises'
import net, { isIP } from 'node:net'
import path from 'node:path'
import { isLoopback, isLoopbackName } from '../../shared/http/ip.ts'
import type { BenchValues } from '../benches.ts'

export interface Target {
  readonly isHttp2: boolean
  readonly isSecure: boolean
  /** Where connections go, looked up once: what was agreed to is what is loaded. */
  readonly ip: string
  readonly port: number
  /** The name in TLS; undefined for a bare address, which has none. */
  readonly servername: string | undefined
  /** What is asked for, the most popular first. */
  readonly pages: readonly Page[]
  readonly isInsecure: boolean
}

export interface Page {
  readonly host: string
  readonly path: string
}

/** An argument that cannot be meant: a sentence for the person who gave it. */
export class UsageError extends Error {}

/** A list with more lines is no list of one edge's pages. */
const MAX_LIST_BYTES = 100_000_000

export async function targetOf(values: BenchValues<'load'>): Promise<Target> {
  const url = URL.parse(values.url)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError(`--url wants an address like https://my.edge/, not “${values.url}”.`)
  if (values.http2 && url.protocol !== 'https:') throw new UsageError('--http2 needs an address with https.')
  if (values.streams > 1 && !values.http2) throw new UsageError('--streams is about HTTP/2: add --http2.')
  if (values.report !== undefined) checkReport(values.report)
  const host = values.host ?? url.host
  if (URL.parse(`https://${host}/`)?.host !== host.toLowerCase().replace(/:443$/, ''))
    throw new UsageError(`--host wants a name like my-drop.example.com, not “${host}”.`)
  const own: Page = { host, path: `${url.pathname}${url.search}` }
  const name = hostnameOf(host)
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
  return {
    isHttp2: values.http2,
    isSecure: url.protocol === 'https:',
    ip: await addressOf(hostnameOf(url.host), port),
    port,
    servername: isIP(name) === 0 ? name : undefined,
    pages: values.zipf === undefined ? [own] : readPages(values.zipf, own),
    isInsecure: values.insecure,
  }
}

/** Without the port and the brackets of IPv6. */
function hostnameOf(host: string): string {
  return (URL.parse(`https://${host}/`)?.hostname ?? host).replace(/^\[(.*)\]$/, '$1')
}

/** Addresses at which the machine itself may be reached; it may lack one of them. */
const OWN_ADDRESSES = ['127.0.0.1', '::1'] as const
const CONNECT_MS = 2000

async function addressOf(hostname: string, port: number): Promise<string> {
  if (isIP(hostname) !== 0) return hostname
  if (isLoopbackName(hostname)) return ownAddress(port)
  const found = await lookup(hostname).catch(() => undefined)
  if (found === undefined) throw new Error(`${hostname} cannot be found: no address is known for this name.`)
  return found.address
}

/**
 * ownAddress is where the machine itself answers, for `localhost` and the names below it: resolvers know one of the two
 * addresses, or neither of such a name. Where nothing answers, the first request says so.
 */
async function ownAddress(port: number): Promise<string> {
  for (const address of OWN_ADDRESSES) if (await isAnswered(address, port)) return address
  return OWN_ADDRESSES[0]
}

function isAnswered(host: string, port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = net.connect({ host, port, timeout: CONNECT_MS })
  socket.on('connect', () => resolve(true))
  socket.on('error', () => resolve(false))
  socket.on('timeout', () => resolve(false))
  return promise.finally(() => socket.destroy())
}

export function isOnThisMachine({ ip }: Pick<Target, 'ip'>): boolean {
  return isLoopback(ip)
}

/** Before anything is measured: a report that cannot be written would be lost at the end. */
function checkReport(file: string): void {
  if (path.extname(file) !== '.html') throw new UsageError(`--report wants a file that ends in .html, not “${file}”.`)
  const folder = path.dirname(path.resolve(file))
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new UsageError(`--report: there is no folder ${folder}.`)
  if (statSync(file, { throwIfNoEntry: false })?.isFile() === false)
    throw new UsageError(`--report: “${file}” is there already, and is not a file.`)
}

function readPages(file: string, own: Page): Page[] {
  const facts = statSync(file, { throwIfNoEntry: false })
  if (facts?.isFile() !== true) throw new UsageError(`--zipf: there is no file “${file}”.`)
  if (facts.size > MAX_LIST_BYTES) throw new UsageError(`--zipf: “${file}” is larger than 100 MB.`)
  const pages = pagesOf(readFileSync(file, 'utf8'), own)
  if ('wrong' in pages) throw new UsageError(`--zipf: ${file}, ${pages.wrong}.`)
  if (pages.length === 0) throw new UsageError(`--zipf: “${file}” names nothing.`)
  return pages
}

/** A path or an address per line, the most popular first; empty lines and those that begin with # are none. */
export function pagesOf(text: string, own: Page): Page[] | { readonly wrong: string } {
  const pages: Page[] = []
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const entry = line.trim()
    if (entry === '' || entry.startsWith('#')) continue
    const url = entry.startsWith('/') ? URL.parse(`https://${own.host}${entry}`) : URL.parse(entry)
    if (url === null || !/^https?:$/.test(url.protocol))
      return { wrong: `line ${index + 1}: “${entry.slice(0, 60)}” is neither a path that begins with / nor an address` }
    pages.push({ host: entry.startsWith('/') ? own.host : url.host, path: `${url.pathname}${url.search}` })
  }
  return pages
}
