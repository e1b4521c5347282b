/** Every bench: what it asks, how long it takes, what it may be told and what must be installed for it. */
import type { Options, ValuesOf } from '../test/support/arguments.ts'
import { ROW_NAMES, SERVER_NAMES } from './edge/rows.ts'

/** Programs that benches start, by the Debian package that holds them. */
export const PACKAGE_OF = {
  caddy: 'caddy',
  git: 'git',
  h2load: 'nghttp2-client',
  nginx: 'nginx',
  openssl: 'openssl',
  taskset: 'util-linux',
  unzip: 'unzip',
  wrk: 'wrk',
} as const

export type Program = keyof typeof PACKAGE_OF

export interface Bench {
  readonly asks: string
  readonly lasts: string
  readonly options: Options
  /** Arguments of a run that only shows that it works. */
  readonly quick: readonly string[]
  /** It does not begin without them. */
  readonly needs: readonly Program[]
  /** Without them it measures less, and says so. */
  readonly uses: readonly Program[]
  /** Whether it writes figures, which `--keep` puts into the repository. */
  readonly hasResults: boolean
  /** It makes a control group. */
  readonly isForRoot?: true
}

const perRun = (value: number, most = 3600) => ({ kind: 'number', least: 0.1, most, default: value }) as const
const count = (value: number, most: number, least = 1) => ({ kind: 'whole', least, most, default: value }) as const

export const benches = {
  edge: {
    asks: 'What a request costs, beside nginx and Caddy',
    lasts: '6 minutes',
    options: {
      seconds: { ...perRun(1), about: 'seconds per row, server and round' },
      rounds: { ...count(3, 100), about: 'rounds; the median counts' },
      only: { kind: 'list', of: SERVER_NAMES, about: 'servers to measure; the edge is always there' },
      rows: { kind: 'list', of: ROW_NAMES, about: 'rows to measure' },
    },
    quick: ['--seconds', '1', '--rounds', '1'],
    needs: ['taskset'],
    uses: ['nginx', 'caddy', 'h2load', 'openssl', 'wrk'],
    hasResults: true,
  },
  walk: {
    asks: 'What the edge itself adds to a request, without sockets',
    lasts: 'half a minute',
    options: { rounds: { ...count(9, 1000), about: 'rounds of 20,000 requests; the median counts' } },
    quick: ['--rounds', '3'],
    needs: [],
    uses: [],
    hasResults: true,
  },
  connections: {
    asks: 'What a connection that waits costs, and what a second worker brings',
    lasts: '3 minutes',
    options: {
      idle: { ...count(2000, 100_000), about: 'connections that wait, for their memory' },
      kept: { ...count(10_000, 100_000, 100), about: 'connections that are kept while one in a hundred asks' },
      seconds: { ...perRun(3), about: 'seconds per measurement' },
    },
    quick: ['--idle', '200', '--kept', '500', '--seconds', '1'],
    needs: ['taskset'],
    uses: ['nginx', 'caddy', 'wrk'],
    hasResults: true,
  },
  'edge-outage': {
    asks: 'What visitors notice while Redis is frozen or killed',
    lasts: '6 minutes',
    options: {
      seconds: { ...perRun(30), about: 'seconds of calm and of each outage' },
      rate: { ...count(400, 100_000), about: 'requests per second' },
      rounds: { ...count(3, 100), about: 'rounds; the median counts' },
    },
    quick: ['--seconds', '2', '--rounds', '1'],
    needs: [],
    uses: [],
    hasResults: true,
  },
  routes: {
    asks: 'A routing table of a million hosts: loading, memory, look-ups, time until a publish is seen',
    lasts: '1.5 minutes',
    options: {
      routes: { ...count(1_000_000, 20_000_000, 1000), about: 'hosts in the table' },
      publishes: { ...count(200, 100_000), about: 'publishes whose way to two edges is timed' },
    },
    quick: ['--routes', '50000', '--publishes', '20'],
    needs: [],
    uses: [],
    hasResults: true,
  },
  handshake: {
    asks: 'TLS handshakes with one and with ten thousand certificates',
    lasts: '1 minute',
    options: { seconds: { ...perRun(5), about: 'seconds per measurement' } },
    quick: ['--seconds', '1'],
    needs: [],
    uses: ['caddy'],
    hasResults: true,
  },
  publish: {
    asks: 'From the first byte of an upload to the 201',
    lasts: '6 minutes',
    options: {
      rounds: { ...count(5, 100), about: 'rounds; the median counts' },
      parallel: { ...count(10, 100), about: 'uploads of 200 MB at once' },
      only: {
        kind: 'list',
        of: ['zip', 'redeploy', 'parallel', 'list', 'small', 'large', 'many', 'beside', 'huge'],
        about: 'parts to measure',
      },
    },
    quick: ['--rounds', '1', '--parallel', '2'],
    needs: ['unzip'],
    uses: [],
    hasResults: true,
  },
  mixed: {
    asks: 'Visitors of 10,000 drops by Zipf’s law while others publish',
    lasts: '3 minutes',
    options: {
      drops: { ...count(10_000, 1_000_000), about: 'drops that are published first' },
      seconds: { ...perRun(20), about: 'seconds of load' },
      clients: { ...count(32, 10_000), about: 'visitors and publishers at once' },
      publishes: { kind: 'number', least: 0, most: 1, default: 0.05, about: 'share of the calls that publish' },
    },
    quick: ['--drops', '200', '--seconds', '3'],
    needs: [],
    uses: [],
    hasResults: true,
  },
  streams: {
    asks: 'What a tab costs that waits for newer versions, and how soon it hears of one on two edges',
    lasts: '5 minutes',
    options: {
      streams: { ...count(10_000, 40_000, 100), about: 'streams, divided between the edges' },
      publishes: { ...count(20, 1000), about: 'publishes whose way to every tab is timed' },
      only: { kind: 'list', of: ['h1', 'h2', 'shared'], about: 'how tabs come: a connection each, or four on one' },
    },
    quick: ['--streams', '200', '--publishes', '3'],
    needs: [],
    uses: [],
    hasResults: true,
  },
  growth: {
    asks: 'Whether memory comes back after many publishes and unlocked visits',
    lasts: '6 minutes',
    options: {
      publishes: { ...count(10_000, 1_000_000, 10), about: 'pages that are published without an account' },
      unlocks: { ...count(1000, 100_000, 10), about: 'visits that open a drop with its password' },
    },
    quick: ['--publishes', '100', '--unlocks', '10'],
    needs: [],
    uses: [],
    hasResults: true,
  },
  start: {
    asks: 'How soon the whole service is ready, on an empty folder and again, and what memory it takes when idle',
    lasts: '3 minutes',
    options: {
      rounds: { ...count(3, 100), about: 'rounds; the median counts' },
      settle: { ...count(60, 3600), about: 'seconds of quiet before memory is measured' },
    },
    quick: ['--rounds', '1', '--settle', '5'],
    needs: [],
    uses: [],
    hasResults: true,
  },
  small: {
    asks: 'A thousand drops and steady publishing in a control group of 512 MB with half a processor (as root)',
    lasts: '11 minutes',
    options: {
      drops: { ...count(1000, 1_000_000), about: 'drops that are published first' },
      minutes: { ...perRun(10, 600), about: 'minutes from the start on' },
    },
    quick: ['--drops', '20', '--minutes', '0.5'],
    needs: [],
    uses: [],
    hasResults: true,
    isForRoot: true,
  },
  compression: {
    asks: 'What visitors get uncompressed in the first minute after 100 MB were published',
    lasts: '2 minutes',
    options: {
      seconds: { ...count(60, 600), about: 'how long after the publish everything is asked for again and again' },
    },
    quick: ['--seconds', '3'],
    needs: [],
    uses: [],
    hasResults: true,
  },
  search: {
    asks: 'Search over 10,000 drops of one organisation, beside as many of another',
    lasts: '1 minute',
    options: {
      drops: { ...count(10_000, 1_000_000), about: 'drops of each organisation' },
      rounds: { ...count(100, 10_000), about: 'answers to each question' },
    },
    quick: ['--drops', '500', '--rounds', '5'],
    needs: [],
    uses: [],
    hasResults: true,
  },
  mcp: {
    asks: 'What an assistant pays: tokens of tools/list and of twelve tasks',
    lasts: 'half a minute',
    options: {},
    quick: [],
    needs: [],
    uses: [],
    hasResults: true,
  },
  load: {
    asks: 'How a running edge, yours, bears a load',
    lasts: 'as long as you say',
    options: {
      url: { kind: 'text', sample: 'address', isRequired: true, about: 'where to connect, and the path to ask for' },
      host: { kind: 'text', sample: 'name', about: 'the host to ask for and to name in TLS (that of --url)' },
      connections: { ...count(10, 10_000), about: 'connections at once' },
      duration: { kind: 'duration', leastSeconds: 1, mostSeconds: 3600, default: 10, about: 'how long' },
      http2: { kind: 'flag', about: 'HTTP/2 instead of HTTP/1.1' },
      streams: { ...count(1, 100), about: 'requests at once on each connection of HTTP/2' },
      threads: { ...count(1, 64), about: 'threads that make the requests' },
      zipf: {
        kind: 'text',
        sample: 'file',
        about: 'a list of paths or addresses, the most popular first, asked for by Zipf’s law',
      },
      report: { kind: 'text', sample: 'out.html', about: 'write the figures and their picture to this file' },
      insecure: { kind: 'flag', about: 'take a certificate that nobody vouches for, a self-signed one for example' },
      yes: { kind: 'flag', about: 'do not ask before an edge on another machine is loaded' },
    },
    quick: [],
    needs: [],
    uses: [],
    hasResults: false,
  },
} as const satisfies Readonly<Record<string, Bench>>

export type BenchName = keyof typeof benches
export type BenchValues<Name extends BenchName> = ValuesOf<(typeof benches)[Name]['options']>

/** What is measured by `npm run bench`, in this order: those that need nothing but this machine, and have figures. */
export const IN_ORDER = [
  'edge',
  'walk',
  'connections',
  'edge-outage',
  'routes',
  'handshake',
  'publish',
  'mixed',
  'streams',
  'growth',
  'start',
  'small',
  'compression',
  'search',
  'mcp',
] as const satisfies readonly BenchName[]
