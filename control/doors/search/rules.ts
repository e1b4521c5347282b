/** What a question means for the names of drops. Pure; linear. */
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
