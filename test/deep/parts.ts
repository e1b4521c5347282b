/** What `npm run test:deep` consists of. Each part is a command that anybody can run alone. */

export interface Part {
  readonly name: string
  /** What it holds that `npm test` does not. */
  readonly what: string
  /** On two quiet cores. */
  readonly minutes: number
  /** Run by a shell, in the root of the repository, with DEEP=1 and SEED set. */
  readonly command: string
}

const vitest = (...files: readonly string[]): string => `npx vitest run ${files.join(' ')}`

/** Each file alone on the machine, in a process that no other has been in: neighbours and their memory would be timed too. */
const oneByOne = (...files: readonly string[]): string => `${vitest(...files)} --maxWorkers=1 --isolate`

/** Other parts have these from the same seed, and more of them. */
const DEEPER = ['owner-histories', 'domains-ownership', 'api-model', 'schedules']

export const PARTS: readonly Part[] = [
  {
    name: 'pages',
    what: 'every page and every form in every view, with and without scripts, before both accessibility engines',
    minutes: 12,
    command: vitest('test/pages/', 'test/browser/'),
  },
  {
    name: 'browsers',
    what: 'publishing, sharing, reviewing, signing in and every main page in Firefox and WebKit',
    minutes: 6,
    command: vitest('test/deep/browsers'),
  },
  {
    name: 'histories',
    what: 'random histories of owners, and of two owners of one domain',
    minutes: 8,
    command: `HISTORIES=600 ${vitest('test/integration/owner-histories', 'test/integration/domains-ownership')}`,
  },
  {
    name: 'api-model',
    what: 'random calls to the REST API, each answer predicted by a model',
    minutes: 6,
    command: `SEQUENCES=600 ${vitest('test/integration/api-model')}`,
  },
  {
    name: 'properties',
    what: 'every other property of the unit and integration tests with another seed',
    minutes: 5,
    command: vitest('test/unit/', 'test/integration/', ...DEEPER.map((file) => `--exclude '**/${file}.test.ts'`)),
  },
  {
    name: 'late',
    what: 'what npm test asks Postgres and Redis, with one answer in twenty read late: rare orders become common',
    minutes: 11,
    // Seeds and figures are those of npm test: what is different is the order.
    command: `DEEP= LATE_ANSWERS=$SEED SEED=1 ${vitest('test/integration/', 'test/acceptance/')}`,
  },
  {
    name: 'states',
    what: 'the table of states: every row, plan and way to act on a drop',
    minutes: 3,
    command: vitest('test/deep/state-table'),
  },
  {
    name: 'operations',
    what: 'starts, stops, kills, backups and restores; every situation of the doctor of domains; 500 publishes, each visited; words found within eight seconds',
    minutes: 8,
    // Words are looked for when no one publishes any more: 500 publishes beside them would be judged too.
    command: `npm run test:operations && ${vitest('test/acceptance/publish-visible')} && ${vitest('test/acceptance/search')}`,
  },
  {
    name: 'lane',
    what: 'requests of HTTP/1.1 divided at every byte',
    minutes: 3,
    command: vitest('test/acceptance/edge-direct'),
  },
  {
    name: 'answers',
    what: 'generated visits over both protocols, with failures at every byte: each head is followed by its body',
    minutes: 10,
    command: `SCHEDULES=10000 ${vitest('test/unit/edge/answers/')}`,
  },
  {
    name: 'growth',
    what: 'how processor time grows with what strangers send',
    minutes: 6,
    command: oneByOne(
      'test/deep/account-timing',
      'test/deep/viewer-timing',
      'test/deep/fuzz',
      'test/deep/growth',
      'test/deep/pasted-text',
    ),
  },
  {
    name: 'sites',
    what: 'documentation of fifteen Debian packages and builds of sixteen generators, published as their owners would',
    minutes: 17,
    command: vitest('test/deep/real-sites'),
  },
  {
    name: 'republish',
    what: 'a hundred republishes of an app under ten tabs of different ages in Chromium, one of them 29 days old',
    minutes: 5,
    command: vitest('test/deep/republish'),
  },
  {
    name: 'mcp-clients',
    what: 'first contact of ten clients of MCP from npm: each publishes without an account, and updates what was claimed',
    minutes: 5,
    command: vitest('test/deep/mcp-clients'),
  },
  {
    name: 'markdown',
    what: 'fifty pages that generators from npm built, as Markdown: their cost, and every sentence that Readability finds',
    minutes: 4,
    command: vitest('test/deep/markdown-pages'),
  },
  {
    name: 'fuzz',
    what: 'arbitrary bytes for every parser and for the service',
    minutes: 12,
    command: 'npm run fuzz -- --seconds 20 --seed $SEED',
  },
  {
    name: 'simulation',
    what: 'the publish path with everything failing around it, from other seeds',
    minutes: 6,
    command: 'npm run simulate -- --seeds 20000 --from $((SEED * 1000))',
  },
  {
    name: 'client',
    what: 'the packed client on every Node that it supports, each command with each way to be signed in',
    minutes: 6,
    command: 'npm run test:client',
  },
  {
    name: 'durations',
    what: 'every file of npm test within its row of test/durations.json, at the pace of the run',
    minutes: 10,
    command: `DEEP= SEED=1 DURATIONS=judged ${vitest()}`,
  },
]
