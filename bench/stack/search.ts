/**
 * Search over the drops of one organisation, as its owner asks at the API, beside others whose drops say the same: how
 * long an answer takes, and how much processor time Postgres spends for it, which says something on a busy machine too.
 *
 * Ends with an error when an answer of twenty takes longer than the bar.
 */
import { markOf } from '../../control/doors/search/rules.ts'
import { openDatabase, type Pool } from '../../control/ground/database/sql.ts'
import { localDatabaseUrl } from '../../shared/settings/local-services.ts'
import { quantile } from '../../test/support/figures.ts'
import { cpuMs } from '../../test/support/processes.ts'
import { startStack, type Account, type OwnStack } from '../../test/support/stack.ts'
import type { BenchValues } from '../benches.ts'
import { createProgress } from '../progress.ts'
import type { Results } from '../results.ts'

const MAX_P95_MS = 50
/** Words are drawn from so many, the first of them far more often than the last. */
const VOCABULARY = 30_000
const WORDS_PER_DROP = 100
const BATCH_DROPS = 1000
const ATTEMPTS = 10

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
    await sql`analyze sites`
    await sql`analyze site_words`
    await sql.end()
    const rows: Row[] = []
    const before = cpuOfPostgres(stack)
    for (const [question, words] of Object.entries(QUESTIONS)) {
      progress.show(`asking for words ${question}`)
      rows.push(await ask(stack, owner, question, words, told.rounds))
    }
    const cpuPerAnswerMs = (cpuOfPostgres(stack) - before) / (rows.length * told.rounds)
    progress.clear()
    console.table(rows)
    console.log(`Postgres: ${cpuPerAnswerMs.toFixed(1)} ms of processor time for an answer, on average`)
    results.keep({ drops: told.drops, othersDrops: told.drops, rows, cpuPerAnswerMs, maxP95Ms: MAX_P95_MS })
    if (rows.some(({ p95Ms }) => p95Ms > MAX_P95_MS)) process.exitCode = 1
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

async function ask(stack: OwnStack, { token }: Account, question: string, words: string, rounds: number): Promise<Row> {
  const path = `/api/v1/sites?q=${encodeURIComponent(words)}`
  const times: number[] = []
  let found = 0
  for (let round = -1; round < rounds; round++) {
    const startedAt = performance.now()
    const answer = await stack.fetch(path, { token })
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.text()}`)
    // The first warms up.
    if (round >= 0) times.push(performance.now() - startedAt)
    found = answer.json<unknown[]>().length
  }
  const sorted = times.toSorted((a, b) => a - b)
  return { question, found, p50Ms: rounded(quantile(sorted, 0.5)), p95Ms: rounded(quantile(sorted, 0.95)) }
}

const rounded = (ms: number): number => Math.round(ms * 10) / 10

/** Of the server and its children, one of which may end while they are counted. */
function cpuOfPostgres(stack: OwnStack): number {
  for (let attempt = 1; ; attempt++) {
    try {
      return cpuMs(stack.pids()['postgres']!)
    } catch (error) {
      if (attempt === ATTEMPTS) throw error
    }
  }
}
