/** What the edge bench measures: one row each, and the share of what another server spends that it may cost at most. */
import os from 'node:os'

export type Protocol = 'h1' | 'h2' | 'handshake' | 'hybrid' | 'resumption'

/** A drop without snippets: its files are sent as they are. */
export const HOST = 'bench.localhost'
/** A free drop as most are: badge, analytics, consent banner. */
export const SNIPPETS_HOST = 'snippets.localhost'
export const LOCKED_HOST = 'locked.localhost'
export const SERVICE_HOST = 'localhost'
export const MANY_FILES = 10_000

export const SERVER_NAMES = ['edge', 'bare', 'nginx', 'caddy'] as const
export type ServerName = (typeof SERVER_NAMES)[number]

export interface Row {
  readonly name: string
  readonly protocol: Protocol
  readonly host: string
  /** At the edge; the others have one host, and may have it elsewhere. */
  readonly path: string
  readonly pathOfOthers?: string
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sends the tag that the server gives the page. */
  readonly isConditional?: true
  /** Asks for each of the many files in turn. */
  readonly isMany?: true
  readonly hasBare?: true
  /** Servers that take part; all of them when it is not said. */
  readonly servers?: readonly ServerName[]
  /** Comes back with the ticket of another edge, which has ended since. */
  readonly hasForeignTicket?: true
  /** Highest share of what the other server spends. */
  readonly bars?: Readonly<Partial<Record<ServerName, number>>>
  /** Highest share of what the edge itself spends on another row. */
  readonly ownBar?: { readonly row: string; readonly share: number }
}

/** What a browser sends with a page; views are counted. */
const BROWSER = {
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'accept-language': 'de-DE,de;q=0.8,en;q=0.5',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
}

const file = { host: HOST, status: 200 } as const
/** HTTP/1.1 costs Go less on arm64. */
const H1_BAR = os.arch() === 'arm64' ? 0.6 : 0.5
const PLAIN_PAGE = 'h2 plain page'

export const rows: readonly Row[] = [
  { name: 'h1 4 kB', protocol: 'h1', path: '/4.html', ...file, hasBare: true, bars: { caddy: H1_BAR } },
  { name: 'h1 32 kB', protocol: 'h1', path: '/32.html', ...file, bars: { caddy: H1_BAR } },
  { name: 'h1 200 kB', protocol: 'h1', path: '/200.html', ...file },
  { name: 'h2 4 kB', protocol: 'h2', path: '/4.html', ...file, hasBare: true, bars: { caddy: 0.33, nginx: 2 } },
  { name: 'h2 32 kB', protocol: 'h2', path: '/32.html', ...file, bars: { caddy: 0.36 } },
  { name: 'h2 200 kB', protocol: 'h2', path: '/200.html', ...file, bars: { caddy: 0.4, nginx: 0.8 } },
  { name: PLAIN_PAGE, protocol: 'h2', path: '/page.html', ...file, headers: BROWSER },
  {
    name: 'h2 page with snippets',
    protocol: 'h2',
    host: SNIPPETS_HOST,
    path: '/page.html',
    status: 200,
    headers: BROWSER,
    ownBar: { row: PLAIN_PAGE, share: 1.1 },
  },
  {
    name: 'h2 page with password',
    protocol: 'h2',
    host: LOCKED_HOST,
    path: '/4.html',
    pathOfOthers: '/locked/4.html',
    status: 200,
    headers: BROWSER,
  },
  { name: 'h2 304', protocol: 'h2', path: '/4.html', host: HOST, status: 304, isConditional: true },
  { name: 'h2 404', protocol: 'h2', path: '/nothing', host: HOST, status: 404 },
  { name: 'h2 redirect', protocol: 'h2', path: '/old', host: HOST, status: 301 },
  { name: 'h2 br 32 kB', protocol: 'h2', path: '/words.html', ...file, headers: { 'accept-encoding': 'br' } },
  { name: 'h2 many files', protocol: 'h2', path: '/many', ...file, isMany: true },
  {
    name: 'h2 proxied API',
    protocol: 'h2',
    host: SERVICE_HOST,
    path: '/api/v1/bench',
    status: 200,
    bars: { caddy: 1 },
  },
  {
    name: 'h1 closed',
    protocol: 'h1',
    path: '/4.html',
    ...file,
    headers: { connection: 'close' },
    bars: { caddy: 1.3 },
  },
  { name: 'handshake', protocol: 'handshake', path: '/', ...file, hasBare: true, bars: { caddy: 1.15, bare: 1.1 } },
  // Peers of some age do not know this key.
  {
    name: 'hybrid handshake',
    protocol: 'hybrid',
    path: '/',
    ...file,
    hasBare: true,
    servers: ['edge', 'bare'],
    bars: { bare: 1.1 },
  },
  { name: 'resumed', protocol: 'resumption', path: '/', ...file },
  {
    name: 'resumed elsewhere',
    protocol: 'resumption',
    path: '/',
    ...file,
    servers: ['edge'],
    hasForeignTicket: true,
    ownBar: { row: 'resumed', share: 1.1 },
  },
]

/** A new connection for each request. */
export function isConnecting({ protocol, headers }: Row): boolean {
  return protocol === 'h1' ? headers?.['connection'] === 'close' : protocol !== 'h2'
}

export const ROW_NAMES: readonly string[] = rows.map(({ name }) => name)
