import type { Sql } from '../../ground/database/sql.ts'

export interface WordsDue {
  readonly site_id: string
  readonly turn: string
  /** What visitors get of it; undefined where there is nothing, or no owner. */
  readonly live: LiveContent | undefined
}

export interface LiveContent {
  readonly org_id: string
  readonly version_id: string
  readonly manifest_hash: string
}

/** Takes the next drop whose words are due, for some time: should this reader die, another one takes it then. */
export async function takeDue(sql: Sql, forSeconds: number): Promise<WordsDue | undefined> {
  const [due] = await sql<({ site_id: string; turn: string } & { [Fact in keyof LiveContent]: string | null })[]>`
    with next as (
      select site_id from site_words_due where not_before <= now() order by not_before limit 1 for update skip locked),
    taken as (
      update site_words_due d set not_before = now() + make_interval(secs => ${forSeconds}) from next where d.site_id = next.site_id
      returning d.site_id, d.turn::text as turn)
    select taken.site_id, taken.turn, s.org_id, v.id as version_id, v.manifest_hash
    from taken left join sites s on s.id = taken.site_id and s.deleted_at is null and s.org_id is not null
      left join versions v on v.id = s.live_version_id`
  if (!due) return undefined
  const { site_id, turn, org_id, version_id, manifest_hash } = due
  const isLive = org_id !== null && version_id !== null && manifest_hash !== null
  return { site_id, turn, live: isLive ? { org_id, version_id, manifest_hash } : undefined }
}

export interface FoundWords {
  readonly words: readonly string[]
  /** What they were read from; undefined where it has to be read again in any case. */
  readonly source: string | undefined
}

/** Stands with the version that it belongs to, so that words which a release before writes later are not taken for it. */
function sourceFor(versionId: string, source: string): string {
  return `${versionId} ${source}`
}

/**
 * Keeps the words of the version before where the live one has the same source; false where they have to be read. There are
 * some, with the mark: a release before may have written none for the same version.
 */
export async function carryWords(
  sql: Sql,
  siteId: string,
  { org_id, version_id }: LiveContent,
  { source, mark }: { readonly source: string; readonly mark: string },
): Promise<boolean> {
  const carried = await sql`
    update site_words w set version_id = ${version_id}, source = ${sourceFor(version_id, source)} from sites s
    where w.site_id = ${siteId} and w.source = w.version_id || ' ' || ${source} and w.is_marked
      and w.words @@ ${`'${mark}':*`}::tsquery
      and s.id = w.site_id and s.live_version_id = ${version_id} and s.org_id = ${org_id} and s.deleted_at is null
    returning 1`
  return carried.length > 0
}

/**
 * Writes what a drop is found by, each with the mark of its organisation; only while that version is live and that organisation's: an older reader never replaces
 * what a newer one has written.
 */
export async function writeWords(
  sql: Sql,
  siteId: string,
  { org_id, version_id }: LiveContent,
  { words, source }: FoundWords,
): Promise<void> {
  const storedSource = source === undefined ? null : sourceFor(version_id, source)
  await sql`
    insert into site_words (site_id, version_id, words, is_marked, source)
    select s.id, s.live_version_id, array_to_tsvector(${words as string[]}::text[]), true, ${storedSource} from sites s
    where s.id = ${siteId} and s.live_version_id = ${version_id} and s.org_id = ${org_id} and s.deleted_at is null
    on conflict (site_id) do update set version_id = excluded.version_id, words = excluded.words, is_marked = true,
      source = excluded.source`
}

/** Done with it, unless it has changed meanwhile. */
export async function forgetDue(sql: Sql, { site_id, turn }: Pick<WordsDue, 'site_id' | 'turn'>): Promise<void> {
  await sql`delete from site_words_due where site_id = ${site_id} and turn = ${turn}::bigint`
}

interface Asked {
  readonly orgId: string
  /** The drops that a credential is for; undefined: all. */
  readonly among: readonly string[] | undefined
  /** Undefined where there is no word in it: then content is not looked at. */
  readonly question: string | undefined
  /** What the index of names is asked for. */
  readonly namesQuestion: string
  /** A name must match all of them. */
  readonly patterns: readonly string[]
  readonly most: number
}

const OF_ORGANISATION = 's.org_id = $1 and s.deleted_at is null and ($2::text[] is null or s.id = any($2))'
const LATEST = 'order by s.published_at desc nulls last, s.id limit $3'

/**
 * `case` keeps the comparison out of the estimate of how many drops have the name: the index has said that already, and names
 * that nearly all drops have would pass for rare ones.
 */
const NAMED = `
  select s.id from sites s join site_names n on n.site_id = s.id
  where ${OF_ORGANISATION} and n.parts @@ $4::tsquery
    and case when lower(s.slug || ' ' || s.name || ' ' || s.title) ~ all ($5::text[]) then true end
  ${LATEST}`

const SAYING = `
  select s.id from sites s join site_words w on w.site_id = s.id
  where ${OF_ORGANISATION} and w.words @@ $4::tsquery
  ${LATEST}`

/**
 * Ids of an organisation's drops that have all words of a question in their content, or all its parts in their names; those
 * found by their names first, then what was published last. Each part ends when it has found enough: of what many drops
 * say, the latest are read, and of what few say, those that the index names.
 */
export async function findByWords(sql: Sql, asked: Asked): Promise<string[]> {
  const { orgId, among, question, namesQuestion, patterns, most } = asked
  const where = [orgId, (among as string[] | undefined) ?? null, most]
  // Side by side. What is left of the second without the first still fills the list: it is as long as the whole.
  const [named, saying] = await Promise.all([
    idsOf(sql, NAMED, [...where, namesQuestion, patterns as string[]]),
    question === undefined ? [] : idsOf(sql, SAYING, [...where, question]),
  ])
  return [...new Set([...named, ...saying])].slice(0, most)
}

type Value = string | number | string[] | null

/** Planned for these values each time: which way is the short one depends on how many drops have the words. */
async function idsOf(sql: Sql, text: string, values: readonly Value[]): Promise<string[]> {
  const rows = await sql.unsafe<{ id: string }[]>(text, values as Value[], { prepare: false })
  return rows.map(({ id }) => id)
}
