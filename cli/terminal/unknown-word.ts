/** "Did you mean …?" for whatever was typed wrongly. */
import { nearestName } from '../../shared/values/nearest-name.ts'
import { usageError, type CliError } from './failure.ts'

export function unknownWord(
  kind: string,
  word: string | undefined,
  known: readonly string[],
  example: string,
): CliError {
  if (word === undefined) return usageError(`Say what to do, for example: ${example}`)
  const meant = nearestName(word, known)
  const hint = meant === undefined ? `There are: ${known.join(', ')}.` : `Did you mean "${meant}"?`
  return usageError(`There is no ${kind} "${word}". ${hint}`)
}
