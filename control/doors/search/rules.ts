/** What a question means for the names of drops, and how words are kept apart by organisation. Pure; linear. */
import { hash } from 'node:crypto'
import { MAX_QUESTION_WORDS } from '../../drops/publishing/analysis/words.ts'

/** Patterns of LIKE that a name must match, all of them: parts of names are found, whatever they are. */
export function patternsOf(text: string): string[] {
  return text
    .toLowerCase()
    .split(/\s+/)
    .filter((part) => part !== '')
    .slice(0, MAX_QUESTION_WORDS)
    .map((part) => `%${part.replace(/[\\%_]/g, '\\$&')}%`)
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
