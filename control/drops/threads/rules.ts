/** Decisions about threads: who may do what, and how much. No I/O, no clock. */
import { HOUR_MS } from '../../../shared/running/clock.ts'
import type { Allowance } from '../../ground/http/limits/throttle.ts'
import type { ViewerRole } from '../viewers/access.ts'

export const THREAD_STATES = ['open', 'resolved'] as const
export type ThreadState = (typeof THREAD_STATES)[number]

/** `same` place · `moved` with its text · `changed`: other words stand there now · `gone`. */
export const PLACEMENTS = ['same', 'moved', 'changed', 'gone'] as const
export type Placement = (typeof PLACEMENTS)[number]

export const THREAD_LABELS = ['must', 'nice'] as const
export type ThreadLabel = (typeof THREAD_LABELS)[number]

/** Who sees threads besides members: those who may comment, or everyone who may look. */
export const THREADS_VISIBLE = ['commenters', 'viewers'] as const
export type ThreadsVisible = (typeof THREADS_VISIBLE)[number]

/** How soon the owner is told of what others wrote. */
export const THREAD_MAILS = ['at_once', 'hourly', 'daily', 'never'] as const
export type ThreadMails = (typeof THREAD_MAILS)[number]

/** About two pages of text: more is a document, and can be published as one. */
export const MAX_BODY_CHARS = 10_000
/** A quote longer than this points at a page rather than at a passage. */
export const MAX_QUOTE_CHARS = 5000
export const MAX_CONTEXT_CHARS = 500
export const MAX_PAGE_CHARS = 2000
/** As people sign a letter. */
export const MAX_AUTHOR_CHARS = 80
/** A list that people read; older threads can be resolved and their drop exported. */
export const MAX_THREADS_PER_DROP = 2000
export const MAX_MESSAGES_PER_THREAD = 500
/** A screenshot of a large screen; photographs are published. */
export const MAX_IMAGE_BYTES = 2_000_000
export const MAX_IMAGES_PER_MESSAGE = 4
export const MAX_IMAGES_PER_DROP = 200
/** What one call lists or answers. */
export const MAX_THREADS_AT_ONCE = 100

/** What is counted in an hour for one person, for everyone who came by one link, and for one member with all that acts for them. */
const PER_HOUR = {
  guest: { limit: 60, windowMs: HOUR_MS },
  link: { limit: 600, windowMs: HOUR_MS },
  member: { limit: 2000, windowMs: HOUR_MS },
} as const satisfies Record<string, Allowance>

/** Changes are edits of messages, ends of threads and their labels: as many as messages, and counted beside them. */
export const THREAD_ALLOWANCES = {
  guestMessages: PER_HOUR.guest,
  linkMessages: PER_HOUR.link,
  memberMessages: PER_HOUR.member,
  guestChanges: PER_HOUR.guest,
  linkChanges: PER_HOUR.link,
  memberChanges: PER_HOUR.member,
  images: { limit: 60, windowMs: HOUR_MS },
  linkImages: { limit: 120, windowMs: HOUR_MS },
  /** Each compares two versions of a page: a tab asks once for each page that it opens and for each version that comes. */
  comparisons: { limit: 600, windowMs: HOUR_MS },
  /** To one mail box, whoever mentions it and wherever: as many as codes. What is beyond is still read at the thread. */
  mentionMails: { limit: 12, windowMs: HOUR_MS },
} as const satisfies Record<string, Allowance>

export type AuthorKind = 'member' | 'viewer' | 'guest'

/** Who wrote something: the user, the viewer or the guest link, and which person of those it lets in. */
export interface Author {
  readonly kind: AuthorKind
  readonly id: string
  readonly key: string
  readonly name: string
}

/** Someone at the threads of a drop. Members may do all that those may who comment. */
export interface Commenter extends Author {
  readonly role: ViewerRole | 'member'
}

export type ThreadDeed = 'read' | 'open' | 'reply' | 'set-state' | 'edit' | 'delete'

/** What the deed is done to: who wrote the message, or opened the thread. */
type Written = Pick<Author, 'kind' | 'id' | 'key'>

/** isAuthor says whether the same person wrote it: of two who came by one link, neither is the other. */
export function isAuthor(person: Written, written: Written): boolean {
  return person.kind === written.kind && person.id === written.id && person.key === written.key
}

/**
 * mayDo is the table of who may do what. A person who may only look reads threads where the owner lets them; what one
 * wrote, only they change; members take away what others wrote, and resolve what others opened.
 */
export function mayDo(
  person: Commenter,
  deed: ThreadDeed,
  { visible, of }: { visible: ThreadsVisible; of?: Written | undefined },
): boolean {
  const isMember = person.role === 'member'
  if (person.role === 'view') return deed === 'read' && visible === 'viewers'
  switch (deed) {
    case 'read':
    case 'open':
    case 'reply':
      return true
    case 'set-state':
    case 'delete':
      return isMember || (of !== undefined && isAuthor(person, of))
    case 'edit':
      return of !== undefined && isAuthor(person, of)
    default:
      return deed satisfies never
  }
}

/** pagePathOf makes a path of what callers name a page by: `about.html`, `/about?x#y`. Undefined for what is none. */
export function pagePathOf(text: string): string | undefined {
  const [path = ''] = text.trim().split(/[?#]/, 1)
  if (path.length > MAX_PAGE_CHARS || /\p{Cc}/u.test(path) || /^[a-z]+:/i.test(path)) return undefined
  return path.startsWith('/') ? path : `/${path}`
}

const MENTION = /(?<![\w.@+-])@([^\s@,;:()<>]{1,64}@[\w.-]{1,250}[\w])/g
/** Nobody means more people than this with one message. */
const MAX_MENTIONS = 10

/** mentionsIn finds the addresses that a message names, as in `@ada@example.com`. */
export function mentionsIn(body: string): string[] {
  const found = Array.from(body.matchAll(MENTION), ([, address = '']) => address.toLowerCase())
  return [...new Set(found)].slice(0, MAX_MENTIONS)
}

/** nameOfEmail is what others see of a person who gave no name: never the address itself. */
export function nameOfEmail(email: string): string {
  return email.slice(0, email.lastIndexOf('@')).slice(0, MAX_AUTHOR_CHARS)
}
