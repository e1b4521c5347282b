/** What a question means for the names of drops, and how words are kept apart by organisation. Pure; linear. */
import { hash } from 'node:crypto'
import { MAX_QUESTION_WORDS } from '../../drops/publishing/analysis/words.ts'

/**
 * Patterns of LIKE: a name must match one of each list, so that parts of names are found, whatever they are. Postgres makes
 * small letters of A to Z wherever it runs, and of others only where its locale says so: those are asked for as they are
 * written in the middle of a sentence, at its beginning and in capitals.
 */
export function patternsOf(text: string): string[][] {
  return text
    .toLowerCase()
    .split(/\s+/)
    .filter((part) => part !== '')
    .slice(0, MAX_QUESTION_WORDS)
    .map((part) => part.replace(/[\\%_]/g, '\\$&'))
    .map((part) =>
      [...new Set([part, largeAt(part, /^\P{ASCII}/u), largeAt(part, /\P{ASCII}/gu)])].map((each) => `%${each}%`),
    )
}

function largeAt(part: string, where: RegExp): string {
  return part.replace(where, (letter) => letter.toUpperCase())
}

const MARK_CHARS = 8
/** Postgres takes no more of one drop's words (a tsvector has 1,048,575 bytes of them). */
export const MAX_WORDS_BYTES = 1_000_000

/**
 * Stands before every word of an organisation's drops, so that the index is divided by organisations: a search reads
 * nothing of others, however many drops say the same. Two organisations may share a mark; whose a drop is, its row says.
 */
export function markOf(orgId: string): string {
  return hash('sha256', orgId, 'hex').slice(0, MARK_CHARS)
}

/** Words as they are stored, as many as fit. */
export function markedWords(words: readonly string[], mark: string): string[] {
  let bytes = 0
  const end = words.findIndex((word) => (bytes += mark.length + Buffer.byteLength(word)) > MAX_WORDS_BYTES)
  return (end < 0 ? words : words.slice(0, end)).map((word) => mark + word)
}
