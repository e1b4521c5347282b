/** The audit log of an organisation: who did what to what, from where. Written in the transaction of the deed. */
import { forgetInBatches } from '../../ground/database/forget.ts'
import type { Actor } from '../../ground/actor.ts'
import type { Sql } from '../../ground/database/sql.ts'
import {
  emailsOf,
  eraseAuditRows,
  insertAuditEntry,
  listAuditRows,
  type AuditRow,
  deleteAuditBefore,
} from './queries.ts'

/** What is recorded: what it was done to, and the deed in the past tense. One list, so that readers can rely on the words. */
export type AuditAction =
  | 'account.created'
  | 'account.deleted'
  | 'account.signed_in'
  | 'account.email_verified'
  | 'account.email_changed'
  | 'account.password_changed'
  | 'account.password_reset'
  | 'account.access_ended'
  | 'account.readmitted'
  | 'account.passkey_added'
  | 'account.passkey_removed'
  | 'account.second_factor_added'
  | 'account.second_factor_removed'
  | 'account.recovery_codes_renewed'
  | 'account.recovery_requested'
  | 'account.recovery_stopped'
  | 'token.created'
  | 'token.revoked'
  | 'organisation.created'
  | 'organisation.renamed'
  | 'organisation.policy_changed'
  | 'organisation.second_factor_required'
  | 'organisation.deleted'
  | 'organisation.transferred'
  | 'member.invited'
  | 'member.invitation_revoked'
  | 'member.joined'
  | 'member.role_changed'
  | 'member.removed'
  | 'member.left'
  | 'site.created'
  | 'site.updated'
  | 'site.published'
  | 'site.promoted'
  | 'preview.published'
  | 'preview.removed'
  | 'site.deleted'
  /** Those that stay live when a plan ends. */
  | 'site.chosen'
  /** By its clock, after the time in which it could be brought back. */
  | 'site.removed'
  | 'site.taken_down'
  | 'site.restored'
  | 'viewer.added'
  | 'viewer.removed'
  | 'viewer.reminded'
  | 'guest_link.added'
  | 'guest_link.removed'
  | 'thread.opened'
  | 'thread.resolved'
  | 'thread.reopened'
  /** A message that someone else wrote. */
  | 'thread.message_removed'
  | 'thread.comments_removed'
  | 'domain.added'
  | 'domain.removed'
  | 'domain.made_main'
  | 'webhook.created'
  | 'webhook.deleted'
  | 'webhook.rotated'
  | 'billing.plan_changed'
  /** A workflow that may publish. */
  | 'publisher.added'
  | 'publisher.removed'
  /** A workflow's token was not taken; `reason` says why. */
  | 'publisher.refused'
  | 'oauth.allowed'
  | 'oauth.revoked'

/** Who did it: a caller, or the service itself. */
export type AuditActor =
  | Pick<Actor, 'userId' | 'email' | 'ip' | 'via'>
  | { readonly userId: string; readonly email: string; readonly ip?: string }
  | { readonly system: 'lifecycle' | 'stripe' | 'operator' | 'workflow' }
  /** Someone without an account who was let in: `guest gl_…`. */
  | { readonly visitor: string; readonly ip: string }

export interface AuditEntry {
  /** When, by the service's clock. */
  readonly at: Date
  /** Null for what belongs to no organisation. */
  readonly orgId: string | null
  readonly actor: AuditActor
  readonly action: AuditAction
  /** Id or name of what it was done to. */
  readonly subject: string
  /** Further facts. Never a secret. */
  readonly detail?: Readonly<Record<string, unknown>>
}

/** The one way into the log: inside the transaction of the deed, at the clock's time of who did it. */
export async function recordAudit(tx: Sql, entry: AuditEntry): Promise<void> {
  const { at, orgId, actor, action, subject, detail = {} } = entry
  if ('system' in actor) {
    await insertAuditEntry(tx, { at, orgId, userId: null, actor: actor.system, action, subject, detail, ip: null })
    return
  }
  if ('visitor' in actor) {
    const { visitor, ip } = actor
    await insertAuditEntry(tx, { at, orgId, userId: null, actor: visitor, action, subject, detail, ip })
    return
  }
  if ('via' in actor && actor.via.kind === 'publisher') {
    const { publisherId, run } = actor.via
    const { repository, workflow, commit, actor: startedBy } = run
    const facts = { via: 'publisher', publisher: publisherId, workflow, commit, actor: startedBy, ...detail }
    const name = `workflow of ${repository}`
    await insertAuditEntry(tx, { at, orgId, userId: null, actor: name, action, subject, detail: facts, ip: actor.ip })
    return
  }
  const via = 'via' in actor ? { via: actor.via.kind } : {}
  await insertAuditEntry(tx, {
    at,
    orgId,
    userId: actor.userId,
    actor: actor.email,
    action,
    subject,
    detail: { ...via, ...detail },
    ip: actor.ip ?? null,
  })
}

/** Forgets entries from before then. A job. */
export const forgetAudit = (sql: Sql, before: Date): Promise<number> =>
  forgetInBatches((limit) => deleteAuditBefore(sql, before, limit))

/** Stands where a person's address stood. */
const ERASED = 'deleted account'

/** The e-mail addresses under which a person acted, in lower case. */
export const emailsIn = (sql: Sql, userId: string): Promise<string[]> => emailsOf(sql, userId)

/** Takes a person's e-mail and network addresses out of every log. The deeds stay. */
export const eraseFromAudit = (sql: Sql, userId: string, addresses: readonly string[]): Promise<void> =>
  eraseAuditRows(sql, { userId, addresses, instead: ERASED })

const MAX_PAGE = 200

export interface AuditPage {
  readonly entries: readonly AuditRow[]
  /** Give it as `before` to read on; undefined at the end. */
  readonly next: number | undefined
}

export async function readAuditLog(
  sql: Sql,
  orgId: string,
  page: { before?: number; limit?: number; subjects?: readonly string[] | undefined } = {},
): Promise<AuditPage> {
  const limit = Math.min(page.limit ?? 50, MAX_PAGE)
  const rows = await listAuditRows(sql, orgId, {
    before: page.before,
    limit: limit + 1,
    subjects: page.subjects ?? null,
  })
  const entries = rows.slice(0, limit)
  return { entries, next: rows.length > limit ? entries.at(-1)?.id : undefined }
}
