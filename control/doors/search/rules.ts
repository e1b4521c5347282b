/** What a question means for the names of drops, and how words are kept apart by organisation. Pure; linear. */
import { hash } from 'node:crypto'
import { MAX_QUESTION_WORDS } from '../../drops/publishing/analysis/words.ts'

/**
 * Parts of a question, each in the ways in which names may have it: a name must have one of each list, so that parts of names
 * are found, whatever they are. Postgres makes small letters of A to Z wherever it runs, and of others only where its locale
 * says so: those are asked for as they are written in the middle of a sentence, at its beginning and in capitals.
 */
export function partsOf(text: string): string[][] {
  const parts = text.toLowerCase().match(/\S+/g) ?? []
  return parts
    .slice(0, MAX_QUESTION_WORDS)
    .map((part) => [...new Set([part, largeAt(part, /^\P{ASCII}/u), largeAt(part, /\P{ASCII}/gu)])])
}

/**
 * A regular expression of Postgres that names with this part match. Nothing in it means anything but itself: of ASCII what is
 * neither letter nor digit is escaped. No other character means anything there.
 */
export function patternOf(ways: readonly string[]): string {
  return ways.map((way) => way.replace(/[!-/:-@[-`{-~]/g, '\\$&')).join('|')
}

/** Characters of a name that are one word of its index: the function `name_parts` in Postgres divides names so. */
const GRAM_CHARS = 3

/**
 * What the index of names is asked for: every name that matches the patterns has it, and few others. `mark`: what stands before
 * every word there.
 */
export function namesQuestionOf(parts: readonly (readonly string[])[], mark: string): string {
  return parts
    .map((ways) =>
      ways
        .map(
          (way) =>
            `(${gramsOf(way)
              .map((gram) => termOf(mark, gram))
              .join(' & ')})`,
        )
        .join(' | '),
    )
    .map((ways) => `(${ways})`)
    .join(' & ')
}

/** As few as have all its characters. */
function gramsOf(way: string): string[] {
  const characters = [...way]
  const last = Math.max(0, characters.length - GRAM_CHARS)
  const count = Math.ceil(characters.length / GRAM_CHARS)
  const starts = Array.from({ length: count }, (_, index) => Math.min(index * GRAM_CHARS, last))
  return starts.map((start) => characters.slice(start, start + GRAM_CHARS).join(''))
}

/** Fewer characters than a word of the index has are the beginning of one. */
function termOf(mark: string, gram: string): string {
  const quoted = `'${mark}${gram.replace(/['\\]/g, '$&$&')}'`
  return [...gram].length < GRAM_CHARS ? `${quoted}:*` : quoted
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
