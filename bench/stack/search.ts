/**
 * Search over the drops of one organisation, as its owner asks at the API over one kept connection, beside others whose drops
 * say the same: how long an answer takes, and how much processor time Postgres and control spend for it, which says something on
 * a busy machine too.
 *
 * Ends with an error when an answer of twenty takes longer than the bar.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { markOf } from '../../control/doors/search/rules.ts'
import { openDatabase, type Pool } from '../../control/ground/database/sql.ts'
import { localDatabaseUrl } from '../../shared/settings/local-services.ts'
import { quantile } from '../../test/support/figures.ts'
import { cpuMs } from '../../test/support/processes.ts'
import { startStack, type Account, type OwnStack } from '../../test/support/stack.ts'
import type { BenchValues } from '../benches.ts'
import { openCaller, type Caller } from './caller.ts'
import { createProgress } from '../progress.ts'
import type { Results } from '../results.ts'

const MAX_P95_MS = 50
/** Words are drawn from so many, the first of them far more often than the last. */
const VOCABULARY = 30_000
const WORDS_PER_DROP = 100
const BATCH_DROPS = 1000
const ATTEMPTS = 10
/** What Postgres does in a second when nothing is asked of it. */
const QUIET_MS = 20
const QUIET_SECONDS = 60

/** Those whose processor time is told. */
const PROCESSES = ['postgres', 'control'] as const

/** What people type: by how many of the drops say it. */
const QUESTIONS: Readonly<Record<string, string>> = {
  'in the text of nearly all': 'w1',
  'in the text of a third': 'w29',
  'in the text of a few': 'w29111',
  'in the names of all': 'report',
  'in the name of one': 'report 4321',
  'two words of the text': 'w12 w291',
  nowhere: 'nothing at all',
}

interface Row {
  readonly question: string
  readonly found: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly postgresCpuMs: number
  readonly controlCpuMs: number
}

export async function run(told: BenchValues<'search'>, results: Results): Promise<void> {
  const progress = createProgress()
  progress.show('starting a stack')
  const stack = await startStack()
  try {
    const owner = await stack.createAccount('business')
    const others = await stack.createAccount('business')
    const sql = openDatabase({ url: localDatabaseUrl(stack.dataDir), maxConnections: 1 })
    for (const [account, offset] of [
      [owner, 0],
      [others, told.drops],
    ] as const) {
      for (let from = 0; from < told.drops; from += BATCH_DROPS) {
        progress.show(`filling: ${offset + from} of ${2 * told.drops} drops`)
        await fill(sql, account, offset + from, offset + Math.min(told.drops, from + BATCH_DROPS))
      }
    }
    progress.show('until Postgres has written them')
    // What it would do by itself in the minutes after, beside the questions.
    await sql`vacuum (analyze) sites, site_words, site_names`
    await sql`checkpoint`
    await sql.end()
    await untilQuiet(stack)
    const caller = openCaller(stack, owner)
    const rows: Row[] = []
    for (const [question, words] of Object.entries(QUESTIONS)) {
      progress.show(`asking for words ${question}`)
      // The first opens the connection, and reads what the others find in memory.
      await ask(caller, words, 1)
      const before = PROCESSES.map((name) => cpuOf(stack, name))
      const { found, times } = await ask(caller, words, told.rounds)
      const [postgresCpuMs, controlCpuMs] = PROCESSES.map((name, index) =>
        inTenths((cpuOf(stack, name) - before[index]!) / told.rounds),
      ) as [number, number]
      rows.push({ question, found, p50Ms: share(times, 0.5), p95Ms: share(times, 0.95), postgresCpuMs, controlCpuMs })
    }
    caller.close()
    progress.clear()
    console.table(rows)
    for (const { question, p95Ms } of rows)
      results.judge({ row: `p95, words ${question}`, figure: p95Ms, unit: 'ms', bar: MAX_P95_MS })
    results.keep({ drops: told.drops, othersDrops: told.drops, rows, maxP95Ms: MAX_P95_MS })
  } finally {
    await stack.stop()
  }
}

/** Drops as they are after a publish, as far as search looks: a row each, and its words. */
async function fill(sql: Pool, { org_id }: Account, from: number, to: number): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`set local statement_timeout = 0`
    await tx`select setseed(${(from % 997) / 997})`
    await tx`
      insert into sites (id, org_id, slug, title, dns_target, published_at)
      select 'st_bench' || n, ${org_id}, 'bench-' || n, 'Report number ' || n, 'bench-' || n, now() - n * interval '1 minute'
      from generate_series(${from}::int, ${to - 1}::int) n`
    await tx`
      insert into site_words (site_id, version_id, is_marked, words)
      select 'st_bench' || n, 'ver_bench', true, array_to_tsvector(array(
        select ${markOf(org_id)} || 'w' || floor(${VOCABULARY} * power(random(), 3))::int
        from generate_series(1, ${WORDS_PER_DROP}) where n >= 0))
      from generate_series(${from}::int, ${to - 1}::int) n`
  })
}

async function ask(caller: Caller, words: string, rounds: number): Promise<{ found: number; times: number[] }> {
  const path = `/api/v1/sites?q=${encodeURIComponent(words)}`
  const times: number[] = []
  let found = 0
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.now()
    found = (await caller.call<unknown[]>('GET', path)).length
    times.push(performance.now() - startedAt)
  }
  return { found, times: times.toSorted((a, b) => a - b) }
}

const inTenths = (value: number): number => Math.round(value * 10) / 10
const share = (sorted: readonly number[], part: number): number => inTenths(quantile(sorted, part))

/** Until Postgres has done nothing for a while, or a minute has passed. */
async function untilQuiet(stack: OwnStack): Promise<void> {
  for (let second = 0, before = -1; second < QUIET_SECONDS; second++) {
    const spent = cpuOf(stack, 'postgres')
    if (spent - before < QUIET_MS) return
    before = spent
    await sleep(1000)
  }
}

/** Of a process and its children, one of which may end while they are counted. */
function cpuOf(stack: OwnStack, name: (typeof PROCESSES)[number]): number {
  for (let attempt = 1; ; attempt++) {
    try {
      return cpuMs(stack.pids()[name]!)
    } catch (error) {
      if (attempt === ATTEMPTS) throw error
    }
  }
}
