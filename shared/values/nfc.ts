/**
 * Unicode normalisation form C in time linear in the text. Sorting a long run of combining marks takes time quadratic in
 * the run (40,000 accents on one letter: 16 s), so a text with such a run stands for itself. No writing system needs
 * more than a handful; the bound is that of Unicode's Stream-Safe Text Format (UAX #15 §13).
 */
const MAX_MARKS = 30
const BEYOND_ASCII = /[^\p{ASCII}]/u

export function toNfc(text: string): string {
  return BEYOND_ASCII.test(text) && !hasLongRunOfMarks(text) ? text.normalize('NFC') : text
}

function hasLongRunOfMarks(text: string): boolean {
  for (const [marks] of text.matchAll(/\p{M}+/gu)) if (marks.length > MAX_MARKS) return true
  return false
}
