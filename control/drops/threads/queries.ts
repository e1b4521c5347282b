/** SQL of threads and their messages. */
import { jsonb, one, type Sql } from '../../ground/database/sql.ts'
import type { Anchor, FoundAnchor } from '../publishing/comparison/anchors.ts'
import type { Author, AuthorKind, Placement, ThreadLabel, ThreadState } from './rules.ts'

export interface ThreadRow {
  readonly id: string
  readonly site_id: string
  readonly page: string
  readonly state: ThreadState
  readonly label: ThreadLabel | null
  readonly anchor: Anchor | null
  readonly placement: Placement
  readonly found: FoundAnchor | null
  readonly preview: string | null
  readonly version_number: number
  readonly placed_version: number
  readonly resolved_version: number | null
  readonly author_kind: AuthorKind
  readonly author_id: string
  readonly author_key: string
  readonly author_name: string
  readonly created_at: Date
  readonly resolved_at: Date | null
}

export interface MessageRow {
  readonly id: string
  readonly thread_id: string
  readonly site_id: string
  readonly body: string
  readonly author_kind: AuthorKind
  readonly author_id: string
  readonly author_key: string
  readonly author_name: string
  readonly created_at: Date
  readonly edited_at: Date | null
  readonly images: readonly ShownImage[]
}

/** An image of a message, as far as it is shown. */
export type ShownImage = Pick<ImageRow, 'id' | 'type' | 'byte_size' | 'width' | 'height'>

export interface ImageRow {
  readonly id: string
  readonly site_id: string
  readonly message_id: string | null
  readonly hash: string
  readonly type: string
  readonly byte_size: number
  readonly width: number
  readonly height: number
  readonly author_kind: AuthorKind
  readonly author_id: string
  readonly author_key: string
  readonly created_at: Date
}

const threadColumns = (sql: Sql) => sql`
  id, site_id, page, state, label, anchor, placement, found, preview, version_number, placed_version, resolved_version,
  author_kind, author_id, author_key, author_name, created_at, resolved_at`
const messageColumns = (sql: Sql) => sql`
  id, thread_id, site_id, body, author_kind, author_id, author_key, author_name, created_at, edited_at,
  coalesce((
    select jsonb_agg(jsonb_build_object(
      'id', i.id, 'type', i.type, 'byte_size', i.byte_size, 'width', i.width, 'height', i.height) order by i.created_at, i.id)
    from thread_images i where i.message_id = thread_messages.id), '[]') as images`

export interface ThreadFilter {
  readonly state: ThreadState | 'all'
  readonly label?: ThreadLabel | undefined
}

/** The oldest first. */
export async function listThreads(sql: Sql, siteId: string, { state, label }: ThreadFilter): Promise<ThreadRow[]> {
  return sql<ThreadRow[]>`
    select ${threadColumns(sql)} from threads where site_id = ${siteId}
      and ${state === 'all' ? sql`true` : sql`state = ${state}`}
      and ${label === undefined ? sql`true` : sql`label = ${label}`} order by created_at, id`
}

export async function findThread(sql: Sql, siteId: string, threadId: string): Promise<ThreadRow | undefined> {
  const [row] = await sql<ThreadRow[]>`
    select ${threadColumns(sql)} from threads where site_id = ${siteId} and id = ${threadId}`
  return row
}

/** Two who answer and resolve at once wait for each other. */
export async function lockThread(sql: Sql, siteId: string, threadId: string): Promise<ThreadRow | undefined> {
  const [row] = await sql<ThreadRow[]>`
    select ${threadColumns(sql)} from threads where site_id = ${siteId} and id = ${threadId} for update`
  return row
}

export async function listMessages(sql: Sql, threadIds: readonly string[]): Promise<MessageRow[]> {
  if (threadIds.length === 0) return []
  return sql<MessageRow[]>`
    select ${messageColumns(sql)} from thread_messages where thread_id = any(${threadIds as string[]})
    order by created_at, id`
}

export async function lockMessage(sql: Sql, siteId: string, messageId: string): Promise<MessageRow | undefined> {
  const [row] = await sql<MessageRow[]>`
    select ${messageColumns(sql)} from thread_messages where site_id = ${siteId} and id = ${messageId} for update`
  return row
}

/** What is counted for a drop is counted by one at a time: two who race for its last place do not both get it. */
export async function lockCounts(sql: Sql, siteId: string): Promise<void> {
  await sql`select from sites where id = ${siteId} for no key update`
}

export async function countThreads(sql: Sql, siteId: string): Promise<number> {
  return one(await sql<{ count: number }[]>`select count(*)::int as count from threads where site_id = ${siteId}`).count
}

export async function countMessages(sql: Sql, threadId: string): Promise<number> {
  return one(
    await sql<{ count: number }[]>`
      select count(*)::int as count from thread_messages where thread_id = ${threadId}`,
  ).count
}

const authorColumns = ({ kind, id, key, name }: Author) => ({
  author_kind: kind,
  author_id: id,
  author_key: key,
  author_name: name,
})

export type NewThread = Pick<
  ThreadRow,
  'id' | 'site_id' | 'page' | 'label' | 'anchor' | 'placement' | 'found' | 'preview' | 'version_number' | 'created_at'
>

export async function insertThread(sql: Sql, thread: NewThread, author: Author): Promise<void> {
  const { anchor, found, ...columns } = thread
  await sql`
    insert into threads ${sql({
      ...columns,
      ...authorColumns(author),
      placed_version: thread.version_number,
      anchor: anchor && jsonb(sql, anchor),
      found: found && jsonb(sql, found),
    })}`
}

export async function insertMessage(
  sql: Sql,
  message: Pick<MessageRow, 'id' | 'thread_id' | 'site_id' | 'body' | 'created_at'>,
  author: Author,
): Promise<void> {
  // What members write themselves is not mailed to them.
  const mailed_at = author.kind === 'member' ? message.created_at : null
  await sql`insert into thread_messages ${sql({ ...message, ...authorColumns(author), mailed_at })}`
}

const imageColumns = (sql: Sql) => sql`
  id, site_id, message_id, hash, type, byte_size, width, height, author_kind, author_id, author_key, created_at`

export async function insertImage(sql: Sql, image: ImageRow): Promise<void> {
  await sql`insert into thread_images ${sql({ ...image })}`
}

export async function findImage(sql: Sql, siteId: string, imageId: string): Promise<ImageRow | undefined> {
  const [row] = await sql<ImageRow[]>`
    select ${imageColumns(sql)} from thread_images where site_id = ${siteId} and id = ${imageId}`
  return row
}

export async function countImages(sql: Sql, siteId: string): Promise<number> {
  return one(await sql<{ count: number }[]>`select count(*)::int as count from thread_images where site_id = ${siteId}`)
    .count
}

/** Those of the author that no message has yet. */
export async function setImagesMessage(
  sql: Sql,
  { siteId, author, messageId, ids }: { siteId: string; author: Author; messageId: string; ids: readonly string[] },
): Promise<ImageRow[]> {
  return sql<ImageRow[]>`
    update thread_images set message_id = ${messageId}
    where site_id = ${siteId} and id = any(${ids as string[]}) and message_id is null
      and author_kind = ${author.kind} and author_id = ${author.id} and author_key = ${author.key}
    returning ${imageColumns(sql)}`
}

export async function deleteUnsentImages(sql: Sql, before: Date): Promise<void> {
  await sql`delete from thread_images where message_id is null and created_at < ${before}`
}

export async function setBody(sql: Sql, messageId: string, body: string, now: Date): Promise<void> {
  await sql`update thread_messages set body = ${body}, edited_at = ${now} where id = ${messageId}`
}

export async function deleteMessage(sql: Sql, messageId: string): Promise<void> {
  await sql`delete from thread_messages where id = ${messageId}`
}

/** A thread without a message says nothing. */
export async function deleteEmptyThreads(sql: Sql, siteId: string): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    delete from threads t where t.site_id = ${siteId}
      and not exists (select from thread_messages m where m.thread_id = t.id) returning id`
  return rows.map(({ id }) => id)
}

export async function setResolved(
  sql: Sql,
  threadIds: readonly string[],
  { now, version }: { now: Date; version: number | null },
): Promise<void> {
  await sql`
    update threads set state = 'resolved', resolved_at = ${now}, resolved_version = ${version}
    where id = any(${threadIds as string[]})`
}

export async function setOpen(sql: Sql, threadIds: readonly string[]): Promise<void> {
  await sql`
    update threads set state = 'open', resolved_at = null, resolved_version = null
    where id = any(${threadIds as string[]})`
}

export async function setLabel(sql: Sql, threadId: string, label: ThreadLabel | null): Promise<void> {
  await sql`update threads set label = ${label} where id = ${threadId}`
}

/** The drop's own among these ids, locked in one order. */
export async function lockThreads(sql: Sql, siteId: string, ids: readonly string[]): Promise<ThreadRow[]> {
  return sql<ThreadRow[]>`
    select ${threadColumns(sql)} from threads where site_id = ${siteId} and id = any(${ids as string[]})
    order by id for update`
}

/** Open threads that point at a passage of what was live, or of a named preview. */
export async function listAnchored(sql: Sql, siteId: string, preview: string | null): Promise<ThreadRow[]> {
  return sql<ThreadRow[]>`
    select ${threadColumns(sql)} from threads
    where site_id = ${siteId} and state = 'open' and preview is not distinct from ${preview} order by created_at, id`
}

export interface NewPlacement {
  readonly id: string
  readonly placement: Placement
  readonly found: FoundAnchor | null
  /** Left out where nothing was found: the next version is compared with the last that had it. */
  readonly version?: number
}

export async function setPlacements(sql: Sql, placements: readonly NewPlacement[]): Promise<void> {
  for (const { id, placement, found, version } of placements)
    await sql`
      update threads set placement = ${placement},
        found = coalesce(${found && jsonb(sql, found)}, found),
        placed_version = coalesce(${version ?? null}, placed_version)
      where id = ${id}`
}

/** What was said of a preview is about the drop once the preview is live, or is no more; resolves to those threads. */
export async function forgetPreview(sql: Sql, siteId: string, preview: string): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    update threads set preview = null where site_id = ${siteId} and preview = ${preview} returning id`
  return rows.map(({ id }) => id)
}

export async function rememberPreview(sql: Sql, preview: string, threads: readonly string[]): Promise<void> {
  await sql`update threads set preview = ${preview} where id = any(${threads as string[]})`
}

export async function noteChange(sql: Sql, siteId: string): Promise<void> {
  await sql`update sites set threads_changed = threads_changed + 1 where id = ${siteId}`
}

export async function findChanged(sql: Sql, siteId: string): Promise<number> {
  const [row] = await sql<{ changed: number }[]>`
    select threads_changed as changed from sites where id = ${siteId}`
  return row?.changed ?? 0
}

export async function eraseThreadsOfSite(sql: Sql, siteId: string): Promise<void> {
  await sql`delete from thread_images where site_id = ${siteId}`
  await sql`delete from thread_messages where site_id = ${siteId}`
  await sql`delete from threads where site_id = ${siteId}`
}

export interface DueDigest {
  readonly site_id: string
  readonly slug: string
  readonly name: string
  readonly email: string
}

/** Drops whose owners have not been told of something for as long as they want to wait. */
export async function listDueDigests(
  sql: Sql,
  before: { readonly hourly: Date; readonly daily: Date; readonly now: Date },
): Promise<DueDigest[]> {
  return sql<DueDigest[]>`
    select s.id as site_id, s.slug, s.name, u.email
    from thread_messages m join sites s on s.id = m.site_id join organisations o on o.id = s.org_id
      join users u on u.id = o.owner_id
    where m.mailed_at is null and s.deleted_at is null and u.email_verified_at is not null and s.thread_mails <> 'never'
    group by s.id, s.slug, s.name, s.thread_mails, u.email
    having min(m.created_at) <= case s.thread_mails
      when 'hourly' then ${before.hourly}::timestamptz when 'daily' then ${before.daily}::timestamptz
      else ${before.now}::timestamptz end
    limit 100`
}

/** Marks what was not told yet, and returns it, the oldest first: of two controls one tells. */
export async function takeUnmailed(
  sql: Sql,
  siteId: string,
  now: Date,
): Promise<{ id: string; body: string; author_name: string; page: string; created_at: Date }[]> {
  const rows = await sql<{ id: string; body: string; author_name: string; page: string; created_at: Date }[]>`
    update thread_messages m set mailed_at = ${now} from threads t
    where m.site_id = ${siteId} and m.mailed_at is null and t.id = m.thread_id
    returning m.id, m.body, m.author_name, t.page, m.created_at`
  return rows.toSorted((a, b) => a.created_at.getTime() - b.created_at.getTime())
}

/** What one person, viewer or link wrote, and the threads that consist of nothing else. Returns the drops. */
export async function eraseAuthor(sql: Sql, kind: AuthorKind, authorId: string): Promise<string[]> {
  await sql`delete from thread_images where author_kind = ${kind} and author_id = ${authorId}`
  const rows = await sql<{ site_id: string }[]>`
    delete from thread_messages where author_kind = ${kind} and author_id = ${authorId} returning site_id`
  const opened = await sql<{ site_id: string }[]>`
    update threads set author_name = '' where author_kind = ${kind} and author_id = ${authorId} returning site_id`
  return [...new Set([...rows, ...opened].map(({ site_id }) => site_id))]
}
