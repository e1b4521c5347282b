/**
 * Which history of the routing table a revision belongs to. Postgres is the truth, and Postgres can be set back: by a
 * restore, by a failover to a replica that lagged. What it writes afterwards is another history, and must replace what
 * the edges hold of the one that was lost, whatever the numbers there were.
 *
 * A history has an ordinal and a random id. The ordinal is the upper part of every revision, so that records of a newer
 * history are newer for every reader that knows nothing but "the higher revision wins", those of the release before
 * included. The id tells two histories apart that were begun from the same backup.
 */
export interface History {
  readonly ordinal: number
  readonly id: string
}

/** 2^20 histories of 2^33 changes each fit the integers that JSON carries exactly. */
const REVISIONS_PER_HISTORY = 2 ** 33

export function historyOfRevision(revision: number): number {
  return Math.floor(revision / REVISIONS_PER_HISTORY)
}

/** The number below the first revision of a history. */
export function revisionFloor(ordinal: number): number {
  return ordinal * REVISIONS_PER_HISTORY
}

/** `rival`: neither is newer. Both were begun from the same state, by two databases that did not know of each other. */
export type Relation = 'same' | 'newer' | 'older' | 'rival'

/** What `a` is to `b`. */
export function relationOf(a: History, b: History): Relation {
  if (a.ordinal !== b.ordinal) return a.ordinal > b.ordinal ? 'newer' : 'older'
  return a.id === b.id ? 'same' : 'rival'
}

export function encodeHistory({ ordinal, id }: History): string {
  return `${ordinal}.${id}`
}

const ENCODED = /^(\d{1,7})\.(\w{1,64})(?:\.|$)/

/** Reads a history; undefined when none is there, or a release that knows no histories wrote the text. */
export function decodeHistory(text: string | null | undefined): History | undefined {
  const [, ordinal, id] = ENCODED.exec(text ?? '') ?? []
  return id === undefined ? undefined : { ordinal: Number(ordinal), id }
}

/** An epoch names the history that its snapshot is of; to the release before it is any text. */
export function encodeEpoch(history: History, unique: string): string {
  return `${encodeHistory(history)}.${unique}`
}
