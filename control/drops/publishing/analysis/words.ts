/** Words of texts and of questions, divided alike. Pure; linear in the text. */
import { withoutLongMarks } from '../../../../shared/values/nfc.ts'

/** One drop's words: a long book has as many. */
export const MAX_WORDS = 20_000
/** Longer ones are keys and hashes, which nobody types. */
const MAX_WORD_CHARS = 40
/** Words of a question that count; the rest says little more. */
export const MAX_QUESTION_WORDS = 12

/** Scripts that are written without spaces between words, and runs of them or of other letters and digits. */
const UNSPACED =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u30fc]/u
const RUNS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u30fc]+|[[\p{L}\p{N}]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u30fc]]+/gv

/** As it is compared: without case, accents and forms of width. */
function folded(text: string): string {
  return withoutLongMarks(text)
    .normalize('NFKD')
    .replace(/\p{Mn}+/gu, '')
    .toLowerCase()
    .normalize('NFC')
}

interface Run {
  readonly run: string
  readonly isUnspaced: boolean
}

/** Most words of most texts have neither accents nor other scripts: they are told apart without the tables of Unicode. */
const SEPARATORS = /[^A-Za-z0-9\u0080-\uffff]+/
const PLAIN = /^[a-z0-9]+$/i

function piecesOf(text: string): string[] {
  return text.split(SEPARATORS)
}

/** What stands between two separators. */
function runsOf(piece: string): Run[] {
  if (piece === '') return []
  if (PLAIN.test(piece)) return [{ run: piece.toLowerCase(), isUnspaced: false }]
  return Array.from(folded(piece).matchAll(RUNS), ([run]) => ({ run, isUnspaced: UNSPACED.test(run) }))
}

/** What a text is found by, each once, up to the limit. */
export function wordsOf(text: string): Set<string> {
  const words = new Set<string>()
  // Texts repeat their words: each is looked at once.
  const runs = new Set(piecesOf(text)).values().flatMap(runsOf)
  for (const { run, isUnspaced } of runs) {
    if (words.size >= MAX_WORDS) break
    if (!isUnspaced) {
      if (run.length <= MAX_WORD_CHARS) words.add(run)
      continue
    }
    const characters = [...run]
    for (let at = 0; at < characters.length && words.size < MAX_WORDS; at++) {
      words.add(characters.slice(at, at + 2).join(''))
      if (at + 3 <= characters.length) words.add(characters.slice(at, at + 3).join(''))
    }
  }
  return words
}

/**
 * A question as Postgres takes it: every word must be there, or begin one that is. Undefined where there is no word in it.
 * Letters and digits alone come through, so that nothing has to be escaped. `mark`: what stands before every word.
 */
export function questionOf(text: string, mark = ''): string | undefined {
  const terms: string[] = []
  for (const { run, isUnspaced } of piecesOf(text).values().flatMap(runsOf)) {
    if (terms.length >= MAX_QUESTION_WORDS) break
    if (!isUnspaced) terms.push(`'${mark}${run.slice(0, MAX_WORD_CHARS)}':*`)
    else for (const part of partsOf([...run])) terms.push(`'${mark}${part}':*`)
  }
  return terms.length === 0 ? undefined : terms.slice(0, MAX_QUESTION_WORDS).join(' & ')
}

/** Triples where there are three characters; they say more than pairs. */
function partsOf(characters: readonly string[]): string[] {
  if (characters.length <= 3) return [characters.join('')]
  return characters.slice(0, -2).map((_, at) => characters.slice(at, at + 3).join(''))
}
