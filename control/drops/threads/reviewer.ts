/** A person at the threads of a drop, and what they are refused. */
import { errors } from '../../../shared/contracts/errors.ts'
import type { Actor } from '../../ground/actor.ts'
import { mayDo, type Author, type Commenter, type ThreadDeed, type ThreadsVisible } from './rules.ts'

/** What this needs to know of a drop. */
export interface ReviewedDrop {
  readonly id: string
  readonly org_id: string | null
  readonly slug: string
  readonly name: string
  readonly spa_fallback: boolean
  readonly live_version_id: string | null
  readonly threads_visible: ThreadsVisible
}

/** Someone at the threads, and the drop that they are about. */
export interface Reviewer extends Commenter {
  readonly site: ReviewedDrop
  /** A member's own credential, for the audit log. */
  readonly actor: Actor | undefined
  /** Their address, where it is known. */
  readonly email: string | undefined
  readonly ip: string
  /** When what they came with ends by itself; undefined where it does not. Milliseconds since the epoch. */
  readonly endsAt?: number | undefined
}

const REFUSALS: Readonly<Record<ThreadDeed, string>> = {
  read: 'The owner of this drop shows its comments to those who may comment.',
  open: 'You may look at this drop, and not comment on it. Ask its owner for a link that lets you.',
  reply: 'You may look at this drop, and not comment on it. Ask its owner for a link that lets you.',
  'set-state': 'Members, and who opened a thread, resolve and reopen it.',
  edit: 'Only who wrote a message changes it.',
  delete: 'Members, and who wrote a message, delete it.',
}

/** Throws 403. `of`: who wrote the message, or opened the thread. */
export function requireMay(reviewer: Reviewer, deed: ThreadDeed, of?: Pick<Author, 'kind' | 'id' | 'key'>): void {
  if (!mayDo(reviewer, deed, { visible: reviewer.site.threads_visible, of })) throw errors.forbidden(REFUSALS[deed])
}
