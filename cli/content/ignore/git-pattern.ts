/**
 * The patterns of .gitignore, as git reads them (dir.c and wildmatch.c): a name without a slash matches at any depth, one
 * with a slash from the root; `*` and `?` stay within a name, `**` between slashes spans folders, `[…]` is a choice, a
 * backslash takes away a character's meaning. Like git it compares bytes: `?` is one byte of an accented letter.
 *
 * A pattern becomes a list of steps, and all of them that a path may have come to are followed at once: the cost is
 * the length of the pattern times that of the path, whatever a repository's file says. No I/O.
 */

export interface GitPattern {
  /** `!` stood before it: what it matches is not ignored. */
  readonly isNegated: boolean
  /** A slash at its start or in its middle ties it to the root. */
  readonly isAnchored: boolean
  /** A slash at its end: it matches folders alone. */
  readonly isForFolders: boolean
  /** Whether a path, relative to the root and as `bytesOf` writes it, is what the pattern names. */
  matches(path: string): boolean
  /** Whether something below this folder may match a pattern that is tied to the root. */
  leadsInto(folder: string): boolean
}

/** A text as a string of its bytes in UTF-8, one character for each. */
export function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1')
}

/** The patterns of a file, in its order; empty lines and comments are none. */
export function parseGitPatterns(text: string): GitPattern[] {
  return text
    .replace(/^\ufeff/, '')
    .split('\n')
    .map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => trimSpaces(line))
    .map((line) => (line.startsWith('!') ? gitPattern(line.slice(1), true) : gitPattern(line, false)))
}

/** A pattern by itself, without the signs that a line may begin with. */
export function gitPattern(text: string, isNegated: boolean): GitPattern {
  const isForFolders = text.endsWith('/')
  const whole = isForFolders ? text.slice(0, -1) : text
  const isAnchored = whole.includes('/')
  const pattern = bytesOf(whole.replace(/^\//, ''))
  const steps = stepsOf(pattern)
  return {
    isNegated,
    isAnchored,
    isForFolders,
    matches: (path) =>
      steps !== undefined && matchSteps(steps, isAnchored ? path : path.slice(path.lastIndexOf('/') + 1)),
    leadsInto: (folder) => isAnchored && pattern.startsWith(`${folder}/`),
  }
}

/** Spaces at the end of a line mean nothing, unless a backslash stands before them. Tabs do. */
function trimSpaces(line: string): string {
  let end = 0
  for (let index = 0; index < line.length; index++) {
    if (line[index] === '\\') index++
    else if (line[index] === ' ') continue
    end = Math.min(index + 1, line.length)
  }
  return line.slice(0, end)
}

type Step =
  /** One byte that fits. */
  | { readonly kind: 'byte'; fits(byte: string): boolean }
  /** Any number of bytes, with slashes among them or without. */
  | { readonly kind: 'run'; readonly spansFolders: boolean }
  /** What comes next, or the step behind it. */
  | { readonly kind: 'either' }
  /** Anything, up to a slash. */
  | { readonly kind: 'folders' }

/** Undefined for a pattern that git takes for malformed: it matches nothing. */
function stepsOf(pattern: string): readonly Step[] | undefined {
  const steps: Step[] = []
  for (let index = 0; index < pattern.length; index++) {
    const byte = pattern.charAt(index)
    if (byte === '*') {
      const stars = starsAt(pattern, index)
      steps.push(...stars.steps)
      index = stars.last
    } else if (byte === '?') {
      steps.push({ kind: 'byte', fits: (given) => given !== '/' })
    } else if (byte === '[') {
      const choice = choiceAt(pattern, index + 1)
      if (!choice) return undefined
      steps.push({ kind: 'byte', fits: (given) => given !== '/' && choice.fits(given) })
      index = choice.last
    } else {
      const literal = byte === '\\' ? pattern.charAt(++index) : byte
      if (literal === '') return undefined
      steps.push({ kind: 'byte', fits: (given) => given === literal })
    }
  }
  return steps
}

/** `last` is the place of the last byte that the steps stand for. */
function starsAt(pattern: string, start: number): { steps: readonly Step[]; last: number } {
  let end = start + 1
  while (pattern[end] === '*') end++
  const isDouble = end - start > 1
  const isAfterSlash = start === 0 || pattern[start - 1] === '/'
  if (isDouble && isAfterSlash && pattern[end] === '/') return { steps: ANY_FOLDERS, last: end }
  const isBeforeSlash = end === pattern.length || pattern.startsWith('\\/', end)
  const spansFolders = isDouble && isAfterSlash && isBeforeSlash
  return { steps: [{ kind: 'run', spansFolders }], last: end - 1 }
}

const ANY_FOLDERS: readonly Step[] = [{ kind: 'either' }, { kind: 'folders' }]

interface Choice {
  fits(byte: string): boolean
  /** The place of the closing bracket. */
  readonly last: number
}

/** What stands between brackets, from behind the opening one. Undefined when it does not end or names no class. */
function choiceAt(pattern: string, start: number): Choice | undefined {
  const isNegated = pattern[start] === '!' || pattern[start] === '^'
  const tests: ((byte: string) => boolean)[] = []
  /** What a `-` after it makes the start of a range. */
  let before: string | undefined
  let index = isNegated ? start + 1 : start
  // A bracket in the first place is one of the choices.
  for (let isFirst = true; isFirst || pattern[index] !== ']'; isFirst = false, index++) {
    const member = memberAt(pattern, index, before)
    if (!member) return undefined
    tests.push(member.fits)
    index = member.last
    before = member.literal
  }
  return { fits: (byte) => tests.some((fits) => fits(byte)) !== isNegated, last: index }
}

interface Member extends Choice {
  /** Set when the member is one byte, with which a range may begin. */
  readonly literal?: string
}

function memberAt(pattern: string, index: number, before: string | undefined): Member | undefined {
  const byte = pattern.charAt(index)
  if (byte === '') return undefined
  if (byte === '\\') return literalMember(pattern, index + 1)
  const next = pattern.charAt(index + 1)
  if (byte === '-' && before !== undefined && next !== '' && next !== ']') {
    const at = next === '\\' ? index + 2 : index + 1
    const high = pattern.charAt(at)
    return high === '' ? undefined : { fits: (given) => given >= before && given <= high, last: at }
  }
  return byte === '[' && next === ':' ? classAt(pattern, index) : literalMember(pattern, index)
}

function literalMember(pattern: string, index: number): Member | undefined {
  const literal = pattern.charAt(index)
  return literal === '' ? undefined : { fits: (given) => given === literal, last: index, literal }
}

/** `[:upper:]`. Without `:]` the bracket is one of the choices. */
function classAt(pattern: string, index: number): Member | undefined {
  const end = pattern.indexOf(']', index + 2)
  if (end < 0) return undefined
  if (end < index + 3 || pattern[end - 1] !== ':') return literalMember(pattern, index)
  const members = CLASSES.get(pattern.slice(index + 2, end - 1))
  return members && { fits: (given) => members.test(given), last: end }
}

/** Those of wildmatch.c: ASCII, and of the spaces the four that git counts. */
const CLASSES: ReadonlyMap<string, RegExp> = new Map([
  ['alnum', /[A-Za-z0-9]/],
  ['alpha', /[A-Za-z]/],
  ['blank', /[ \t]/],
  // oxlint-disable-next-line no-control-regex -- the class of control characters
  ['cntrl', /[\u0000-\u001f\u007f]/],
  ['digit', /[0-9]/],
  ['graph', /[!-~]/],
  ['lower', /[a-z]/],
  ['print', /[ -~]/],
  ['punct', /[!-/:-@[-`{-~]/],
  ['space', /[ \t\n\r]/],
  ['upper', /[A-Z]/],
  ['xdigit', /[A-Fa-f0-9]/],
])

/** Follows every step that the path may have come to; the path matches when it can end behind the last one. */
function matchSteps(steps: readonly Step[], path: string): boolean {
  let reached = new Set<number>()
  reach(steps, 0, reached)
  for (const byte of path) {
    const next = new Set<number>()
    for (const place of reached) {
      const step = steps[place]
      if (step?.kind === 'byte' && step.fits(byte)) reach(steps, place + 1, next)
      else if (step?.kind === 'run' && (step.spansFolders || byte !== '/')) reach(steps, place, next)
      else if (step?.kind === 'folders') {
        next.add(place)
        if (byte === '/') reach(steps, place + 1, next)
      }
    }
    if (next.size === 0) return false
    reached = next
  }
  return reached.has(steps.length)
}

/** Steps that take no byte are passed at once. */
function reach(steps: readonly Step[], place: number, reached: Set<number>): void {
  for (let at = place; !reached.has(at); at++) {
    reached.add(at)
    const kind = steps[at]?.kind
    if (kind === 'either') reach(steps, at + 2, reached)
    else if (kind !== 'run') return
  }
}
