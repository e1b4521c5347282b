/**
 * JavaScript of our own without comments and without blanks that mean nothing. A line break stays where it may end a
 * statement. Pure. It knows the language as our formatter writes it: a test compares the syntax trees.
 */

/** What may not be looked into: comments, strings, templates, and expressions where a value is expected. */
const TOKEN =
  /\/\*[^]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[^])*`|(?<=[=(,:!&|?;{}]\s*)\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*|\s+|[\w$]+|[^]/g

/** No statement ends after these, nor begins with those. */
const GOES_ON_AFTER = /[{([,;:?=&|<>*%^~!.]$/
const GOES_ON_WITH = /^[})\],;:?=&|<>*%^.]/

export function compactScript(text: string): string {
  let compact = ''
  let blank = ''
  for (const [token] of text.matchAll(TOKEN)) {
    if (/^(?:\s|\/\*|\/\/)/.test(token)) {
      blank += token.startsWith('/') ? ' ' : token
      continue
    }
    // The formatter ends a long list with a comma.
    if (compact.endsWith(',') && /^[)}\]]/.test(token)) compact = compact.slice(0, -1)
    compact += compact === '' ? '' : neededBlank(compact, blank, token)
    compact += /^'[^"\\]*'$/.test(token) ? `"${token.slice(1, -1)}"` : token
    blank = ''
  }
  return compact.replace(/(?<![\w$])\(([\w$]+)\)=>/g, '$1=>')
}

/** What must stay between two tokens of all that stood there. */
function neededBlank(before: string, blank: string, after: string): string {
  if (blank === '') return ''
  const touches = /[\w$]$/.test(before) && /^[\w$]/.test(after)
  const joins = /[+-]$/.test(before) && before.endsWith(after.charAt(0))
  if (blank.includes('\n') && !GOES_ON_AFTER.test(before) && !GOES_ON_WITH.test(after)) return '\n'
  return touches || joins ? ' ' : ''
}
