/**
 * What people say about a drop, and what becomes of it: the one service behind the API, the review page, the client and
 * assistants. Each change is one transaction with its audit entry, its webhooks and its mails.
 */
import { errors } from '../../../shared/contracts/errors.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import type { Clock } from '../../../shared/running/clock.ts'
import type { Actor } from '../../ground/actor.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import { createThrottle } from '../../ground/http/limits/throttle.ts'
import { parseEmail } from '../../ground/mail/address.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import { tellWebhooks } from '../../ground/routing/webhook-outbox.ts'
import { recordAudit, type AuditAction } from '../../people/audit/audit.ts'
import type { Anchor, FoundAnchor } from '../publishing/comparison/anchors.ts'
import type { Publishing } from '../publishing/contract.ts'
import { storable } from '../publishing/html/text.ts'
import { attachImages } from './images.ts'
import * as queries from './queries.ts'
import { requireMay, type ReviewedDrop, type Reviewer } from './reviewer.ts'
import {
  MAX_AUTHOR_CHARS,
  MAX_MESSAGES_PER_THREAD,
  MAX_THREADS_PER_DROP,
  mentionsIn,
  nameOfEmail,
  pagePathOf,
  THREAD_ALLOWANCES,
  type Author,
  type Commenter,
  type ThreadState,
} from './rules.ts'
import {
  showMessage,
  showThreads,
  storableAnchor,
  type ApiMessage,
  type ApiThread,
  type OpenThread,
} from './schemas.ts'
import { pageFileOf, reviewUrlOf, threadMailKeyOf } from './threads.ts'
import { dropNameOf, mayBeMentioned } from '../viewers/lists.ts'

interface ReviewedVersion {
  readonly number: number
  readonly manifest_hash: string
}

export interface ThreadChange {
  readonly state?: ThreadState | undefined
  readonly label?: 'must' | 'nice' | null | undefined
}

/** A page, and the version of it that a person saw last. */
export interface LookedAt {
  readonly page: string
  readonly preview: string | undefined
  readonly version: number
}

/** The words of a message, and the images that were pasted into it. */
interface Said {
  readonly body: string
  readonly images?: readonly string[] | undefined
}

/** One answer of several: words, an end, or both. */
export interface ThreadReply {
  readonly thread: string
  readonly body?: string | undefined
  readonly resolve?: boolean | undefined
}

export interface Review {
  /** The oldest first. Throws 403 for who may look and not see threads. */
  list(reviewer: Reviewer, filter: queries.ThreadFilter): Promise<ApiThread[]>
  open(reviewer: Reviewer, wanted: OpenThread): Promise<ApiThread>
  reply(reviewer: Reviewer, threadId: string, said: Said): Promise<ApiMessage>
  /** By members, and by who opened it. */
  change(reviewer: Reviewer, threadId: string, change: ThreadChange): Promise<ApiThread>
  /** All of them or none, in one transaction. */
  replyAll(reviewer: Reviewer, replies: readonly ThreadReply[]): Promise<ApiThread[]>
  /** By its author alone. */
  edit(reviewer: Reviewer, messageId: string, body: string): Promise<ApiMessage>
  /** By its author, and by members. A thread goes with its last message. */
  remove(reviewer: Reviewer, messageId: string): Promise<void>
  /** What of a page was not in an earlier version of it; nothing where that version is no longer kept. */
  changesSince(reviewer: Reviewer, seen: LookedAt): Promise<readonly Anchor[]>
  /** Grows with every change, so that an open page knows when to ask anew. */
  changed(reviewer: Reviewer): Promise<number>
}

interface ReviewDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly enqueueMail: EnqueueMail
  readonly publishing: Pick<Publishing, 'readManifest' | 'findAnchor' | 'changedPassages'>
  readonly versions: {
    liveVersion(site: ReviewedDrop): Promise<ReviewedVersion | undefined>
    numbered(siteId: string, number: number): Promise<ReviewedVersion | undefined>
  }
  readonly previews: { named(siteId: string, name: string): Promise<ReviewedVersion | undefined> }
  readonly baseUrl: string
}

/** What the methods of the service are made of. Each is a part of its caller's transaction. */
function createDeeds(deps: ReviewDependencies) {
  const { sql, clock, baseUrl } = deps
  const throttle = createThrottle({ sql, clock, allowances: THREAD_ALLOWANCES })
  const now = (): Date => new Date(clock.now())

  async function requireFew(what: 'Messages' | 'Changes', { kind, id, key }: Author, count = 1): Promise<void> {
    for (let each = 0; each < count; each++) {
      if (kind === 'member') await throttle.require(`member${what}`, id)
      else await throttle.require(`guest${what}`, `${id} ${key}`)
      if (kind === 'guest') await throttle.require(`link${what}`, id)
    }
  }

  const requireFewComparisons = ({ id, key }: Author): Promise<void> => throttle.require('comparisons', `${id} ${key}`)

  async function shown(db: Sql, reviewer: Reviewer, threads: readonly queries.ThreadRow[]): Promise<ApiThread[]> {
    const messages = await queries.listMessages(
      db,
      threads.map(({ id }) => id),
    )
    return showThreads(threads, messages, reviewUrlOf(baseUrl, reviewer.site.slug), reviewer)
  }

  async function shownAgain(db: Sql, reviewer: Reviewer, threadId: string): Promise<ApiThread> {
    const row = await queries.findThread(db, reviewer.site.id, threadId)
    const [thread] = row ? await shown(db, reviewer, [row]) : []
    if (!thread) throw errors.notFound('thread')
    return thread
  }

  /** The version that is talked about: what is live, or what a named preview shows. */
  async function versionOf(site: ReviewedDrop, preview: string | undefined): Promise<ReviewedVersion> {
    const version =
      preview === undefined ? await deps.versions.liveVersion(site) : await deps.previews.named(site.id, preview)
    if (version) return version
    if (preview !== undefined) throw errors.notFound('preview')
    throw errors.invalidRequest('Nothing is published here yet that a comment could be about.')
  }

  async function write(tx: Sql, reviewer: Reviewer, threadId: string, said: Said): Promise<queries.MessageRow> {
    const { site, kind, id, key, name } = reviewer
    const body = storable(said.body)
    const message = { id: newId('tm', clock.now()), thread_id: threadId, site_id: site.id, body, created_at: now() }
    await queries.insertMessage(tx, message, { kind, id, key, name })
    const images = await attachImages(tx, reviewer, message.id, said.images ?? [])
    await mailMentioned(tx, deps, reviewer, { threadId, messageId: message.id, body })
    await queries.noteChange(tx, site.id)
    const author = { author_kind: kind, author_id: id, author_key: key, author_name: name }
    return { ...message, ...author, edited_at: null, images }
  }

  async function answer(
    tx: Sql,
    reviewer: Reviewer,
    thread: queries.ThreadRow,
    said: Said,
  ): Promise<queries.MessageRow> {
    requireMay(reviewer, 'reply')
    if ((await queries.countMessages(tx, thread.id)) >= MAX_MESSAGES_PER_THREAD)
      throw errors.limitReached(`A thread has at most ${MAX_MESSAGES_PER_THREAD} messages. Open another one.`)
    const message = await write(tx, reviewer, thread.id, said)
    await tellWebhooks(tx, { type: 'thread.replied', siteId: reviewer.site.id, threadId: thread.id, at: now() })
    return message
  }

  async function setState(tx: Sql, reviewer: Reviewer, thread: queries.ThreadRow, state: ThreadState): Promise<void> {
    requireMay(reviewer, 'set-state', authorOf(thread))
    if (thread.state === state) return
    const { site } = reviewer
    if (state === 'resolved') {
      const live = await deps.versions.liveVersion(site)
      await queries.setResolved(tx, [thread.id], { now: now(), version: live?.number ?? null })
      await tellWebhooks(tx, { type: 'thread.resolved', siteId: site.id, threadId: thread.id, at: now() })
    } else await queries.setOpen(tx, [thread.id])
    await queries.noteChange(tx, site.id)
    await record(tx, reviewer, state === 'resolved' ? 'thread.resolved' : 'thread.reopened', { thread: thread.id })
  }

  /** Ids and no words: the log outlives what was said. */
  function record(tx: Sql, reviewer: Reviewer, action: AuditAction, detail: Record<string, unknown>): Promise<void> {
    const { site, actor, kind, id, ip } = reviewer
    const by = actor ?? { visitor: `${kind} ${id}`, ip }
    return recordAudit(tx, { at: now(), orgId: site.org_id, actor: by, action, subject: site.id, detail })
  }

  async function requireThread(tx: Sql, { site }: Reviewer, threadId: string): Promise<queries.ThreadRow> {
    const thread = await queries.lockThread(tx, site.id, threadId)
    if (!thread) throw errors.notFound('thread')
    return thread
  }

  return {
    now,
    requireFew,
    requireFewComparisons,
    shown,
    shownAgain,
    versionOf,
    write,
    answer,
    setState,
    record,
    requireThread,
  }
}

type Deeds = ReturnType<typeof createDeeds>

export function createReview(deps: ReviewDependencies): Review {
  const { sql } = deps
  const deeds = createDeeds(deps)
  const reviewUrl = ({ site }: Reviewer): string => reviewUrlOf(deps.baseUrl, site.slug)
  const { now, requireFew, shown, shownAgain, answer, setState, record, requireThread } = deeds
  return {
    async list(reviewer, filter) {
      requireMay(reviewer, 'read')
      return shown(sql, reviewer, await queries.listThreads(sql, reviewer.site.id, filter))
    },

    open: (reviewer, wanted) => openThread(deps, deeds, reviewer, wanted),

    async reply(reviewer, threadId, said) {
      requireMay(reviewer, 'reply')
      if (!(await queries.findThread(sql, reviewer.site.id, threadId))) throw errors.notFound('thread')
      await requireFew('Messages', reviewer)
      return transaction(sql, async (tx) =>
        showMessage(
          await answer(tx, reviewer, await requireThread(tx, reviewer, threadId), said),
          reviewUrl(reviewer),
          reviewer,
        ),
      )
    },

    async change(reviewer, threadId, { state, label }) {
      await requireFew('Changes', reviewer)
      return transaction(sql, async (tx) => {
        const thread = await requireThread(tx, reviewer, threadId)
        requireMay(reviewer, 'set-state', authorOf(thread))
        if (state !== undefined) await setState(tx, reviewer, thread, state)
        if (label !== undefined) {
          await queries.setLabel(tx, threadId, label)
          await queries.noteChange(tx, reviewer.site.id)
        }
        return shownAgain(tx, reviewer, threadId)
      })
    },

    async replyAll(reviewer, replies) {
      const messages = replies.filter(({ body }) => body !== undefined).length
      await requireFew('Messages', reviewer, messages)
      await requireFew('Changes', reviewer, replies.length - messages)
      return transaction(sql, async (tx) => {
        const answered: ApiThread[] = []
        // In one order, so that two who answer the same threads do not wait for each other for ever.
        for (const { thread: id, body, resolve } of replies.toSorted((a, b) => a.thread.localeCompare(b.thread))) {
          const thread = await requireThread(tx, reviewer, id)
          if (body !== undefined) await answer(tx, reviewer, thread, { body })
          if (resolve !== undefined) await setState(tx, reviewer, thread, resolve ? 'resolved' : 'open')
          answered.push(await shownAgain(tx, reviewer, id))
        }
        return answered
      })
    },

    async edit(reviewer, messageId, text) {
      requireMay(reviewer, 'read')
      await requireFew('Changes', reviewer)
      return transaction(sql, async (tx) => {
        const message = await queries.lockMessage(tx, reviewer.site.id, messageId)
        if (!message) throw errors.notFound('message')
        requireMay(reviewer, 'edit', authorOf(message))
        const body = storable(text)
        await queries.setBody(tx, messageId, body, now())
        await queries.noteChange(tx, reviewer.site.id)
        return showMessage({ ...message, body, edited_at: now() }, reviewUrl(reviewer), reviewer)
      })
    },

    remove: (reviewer, messageId) =>
      transaction(sql, async (tx) => {
        const message = await queries.lockMessage(tx, reviewer.site.id, messageId)
        requireMay(reviewer, 'read')
        if (!message) throw errors.notFound('message')
        requireMay(reviewer, 'delete', authorOf(message))
        await queries.deleteMessage(tx, messageId)
        await queries.deleteEmptyThreads(tx, reviewer.site.id)
        await queries.noteChange(tx, reviewer.site.id)
        const detail = { thread: message.thread_id, message: messageId }
        await record(tx, reviewer, 'thread.message_removed', detail)
      }),

    async changesSince(reviewer, { page, preview, version }) {
      requireMay(reviewer, 'read')
      const { site } = reviewer
      const [now, seen] = [await deeds.versionOf(site, preview), await deps.versions.numbered(site.id, version)]
      if (!seen || now.number === seen.number || site.org_id === null) return []
      await deeds.requireFewComparisons(reviewer)
      const fileIn = async ({ manifest_hash: hash }: ReviewedVersion) =>
        pageFileOf(await deps.publishing.readManifest(hash), page, site.spa_fallback)
      const after = await fileIn(now)
      return after ? deps.publishing.changedPassages(site.org_id, await fileIn(seen), after) : []
    },

    changed: ({ site }) => queries.findChanged(sql, site.id),
  }
}

async function openThread(
  { sql, clock, publishing }: ReviewDependencies,
  { now, requireFew, shownAgain, versionOf, write, record }: Deeds,
  reviewer: Reviewer,
  wanted: OpenThread,
): Promise<ApiThread> {
  requireMay(reviewer, 'open')
  const { site } = reviewer
  const page = storable(pagePathOf(wanted.page) ?? '/')
  const anchor = wanted.anchor ? storableAnchor(wanted.anchor) : null
  const version = await versionOf(site, wanted.preview)
  const file = pageFileOf(await publishing.readManifest(version.manifest_hash), page, site.spa_fallback)
  const found: FoundAnchor | null =
    anchor && file && site.org_id !== null ? await publishing.findAnchor(site.org_id, anchor, file) : null
  await requireFew('Messages', reviewer)
  return transaction(sql, async (tx) => {
    await queries.lockCounts(tx, site.id)
    if ((await queries.countThreads(tx, site.id)) >= MAX_THREADS_PER_DROP)
      throw errors.limitReached(`A drop has at most ${MAX_THREADS_PER_DROP} threads.`)
    const id = newId('th', clock.now())
    const thread = {
      id,
      site_id: site.id,
      page,
      label: wanted.label ?? null,
      anchor,
      placement: file ? ('same' as const) : ('gone' as const),
      found: found && storableAnchor(found),
      preview: wanted.preview ?? null,
      version_number: version.number,
      created_at: now(),
    }
    await queries.insertThread(tx, thread, authorFields(reviewer))
    await write(tx, reviewer, id, wanted)
    await tellWebhooks(tx, { type: 'thread.opened', siteId: site.id, threadId: id, at: now() })
    await record(tx, reviewer, 'thread.opened', { thread: id })
    return shownAgain(tx, reviewer, id)
  })
}

function authorFields({ kind, id, key, name }: Reviewer): Author {
  return { kind, id, key, name }
}

function authorOf(row: Pick<queries.MessageRow, 'author_kind' | 'author_id' | 'author_key'>) {
  return { kind: row.author_kind, id: row.author_id, key: row.author_key }
}

/**
 * Members are mailed, and viewers who are named themselves and know of the drop: a comment is no way to write to
 * strangers, nor to everyone at a domain. In one order, so that two who mention the same people do not wait for each other for ever.
 */
async function mailMentioned(
  tx: Sql,
  { clock, enqueueMail, baseUrl }: Pick<ReviewDependencies, 'clock' | 'enqueueMail' | 'baseUrl'>,
  { site, name, email: own }: Reviewer,
  { threadId, messageId, body }: { threadId: string; messageId: string; body: string },
): Promise<void> {
  const throttle = createThrottle({ sql: tx, clock, allowances: THREAD_ALLOWANCES })
  for (const text of mentionsIn(body).toSorted()) {
    const to = addressIn(text)
    if (to === undefined || to === own || !(await mayBeMentioned(tx, site.id, to))) continue
    if (!(await throttle.admit('mentionMails', to))) continue
    await enqueueMail(tx, {
      eventKey: `${threadMailKeyOf(site.id)}mention:${messageId}:${to}`,
      to,
      template: 'thread_mention',
      data: { link: `${reviewUrlOf(baseUrl, site.slug)}?thread=${threadId}`, drop: dropNameOf(site), name, body },
    })
  }
}

function addressIn(text: string): string | undefined {
  try {
    return parseEmail(text)
  } catch {
    return undefined
  }
}

/** memberOf is what a member is at the threads of their drops: a person, or a workflow that acts for no one. */
export function memberOf({ userId, email, via }: Actor): Commenter {
  if (via.kind !== 'publisher') return { kind: 'member', id: userId, key: '', name: nameOfEmail(email), role: 'member' }
  const name = via.run.repository === '' ? 'Workflow' : via.run.repository
  return { kind: 'member', id: via.publisherId, key: '', name: name.slice(0, MAX_AUTHOR_CHARS), role: 'member' }
}
