import type { Sql } from '../../ground/database/sql.ts'

export interface WordsDue {
  readonly site_id: string
  readonly turn: string
  readonly version_id: string | null
  readonly manifest_hash: string | null
}

/** Takes the next drop whose words are due, for some time: should this reader die, another one takes it then. */
export async function takeDue(sql: Sql, forSeconds: number): Promise<WordsDue | undefined> {
  const [due] = await sql<WordsDue[]>`
    with next as (
      select site_id from site_words_due where not_before <= now() order by not_before limit 1 for update skip locked),
    taken as (
      update site_words_due d set not_before = now() + make_interval(secs => ${forSeconds}) from next where d.site_id = next.site_id
      returning d.site_id, d.turn::text as turn)
    select taken.site_id, taken.turn, v.id as version_id, v.manifest_hash
    from taken left join sites s on s.id = taken.site_id and s.deleted_at is null and s.org_id is not null
      left join versions v on v.id = s.live_version_id`
  return due
}

/** Only while that version is live: an older reader never replaces what a newer one has written. */
export async function writeWords(sql: Sql, { site_id, version_id }: WordsDue, words: readonly string[]): Promise<void> {
  await sql`
    insert into site_words (site_id, version_id, words)
    select s.id, s.live_version_id, array_to_tsvector(${words as string[]}::text[]) from sites s
    where s.id = ${site_id} and s.live_version_id = ${version_id} and s.deleted_at is null
    on conflict (site_id) do update set version_id = excluded.version_id, words = excluded.words`
}

/** Done with it, unless it has changed meanwhile. */
export async function forgetDue(sql: Sql, { site_id, turn }: WordsDue): Promise<void> {
  await sql`delete from site_words_due where site_id = ${site_id} and turn = ${turn}::bigint`
}

/**
 * Ids of an organisation's drops that have all words of a question in their content, or all its parts in their names; those
 * found by their names first, then what was published last. `among`: the drops that a credential is for.
 */
export async function findByWords(
  sql: Sql,
  {
    orgId,
    among,
    question,
    patterns,
    most,
  }: {
    orgId: string
    among: readonly string[] | undefined
    question: string | undefined
    patterns: readonly string[]
    most: number
  },
): Promise<string[]> {
  const reached = among === undefined ? sql`` : sql`and s.id = any(${among as string[]})`
  const named = sql`lower(s.slug || ' ' || s.name || ' ' || s.title) like all (${patterns as string[]}::text[])`
  // Without a word in the question there is nothing to look for in the content.
  const inContent = sql`select site_id from site_words where words @@ ${question ?? ''}::tsquery`
  const rows = await sql<{ id: string }[]>`
    select s.id from sites s left join (${inContent}) w on w.site_id = s.id
    where s.org_id = ${orgId} and s.deleted_at is null ${reached} and (w.site_id is not null or ${named})
    order by case when ${named} then 0 else 1 end, s.published_at desc nulls last, s.id limit ${most}`
  return rows.map(({ id }) => id)
}
