/**
 * Unicode normalisation in time linear in the text. Sorting a long run of combining marks takes time quadratic in the run
 * (40,000 accents on one letter: 16 s). No writing system needs more than a handful; the bound is that of Unicode's
 * Stream-Safe Text Format (UAX #15 §13).
 */
const MAX_MARKS = 30
const LONG_RUNS = /(\p{M}{30})\p{M}+/gu
const BEYOND_ASCII = /[^\p{ASCII}]/u

/** Form C; a text with a long run of marks stands for itself. */
export function toNfc(text: string): string {
  return BEYOND_ASCII.test(text) && !hasLongRunOfMarks(text) ? text.normalize('NFC') : text
}

function hasLongRunOfMarks(text: string): boolean {
  for (const [marks] of text.matchAll(/\p{M}+/gu)) if (marks.length > MAX_MARKS) return true
  return false
}

/** Cuts long runs of marks: what is left may be normalised in any form. For what is compared, not for what is kept. */
export function withoutLongMarks(text: string): string {
  return BEYOND_ASCII.test(text) ? text.replaceAll(LONG_RUNS, '$1') : text
}
