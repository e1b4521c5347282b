/** `.dropwayignore` and `--include`: the pattern language of .gitignore. No I/O. */

/** Files that are never meant for visitors; a `!pattern` in .dropwayignore brings one back. */
const DEFAULT_PATTERNS = [
  '.git/',
  '.hg/',
  '.svn/',
  'node_modules/',
  '.DS_Store',
  'Thumbs.db',
  '.env',
  '.env.*',
  '/.dropway.json',
  '/.dropwayignore',
]

interface Rule {
  readonly negated: boolean
  matches(path: string, isFolder: boolean): boolean
  /** Whether a pattern that is tied to the root leads into this folder. */
  within(folder: string): boolean
}

export interface Ignore {
  /** Whether a path, relative to the folder and with `/`, stays at home. */
  leavesOut(path: string, isFolder: boolean): boolean
  /** Whether the person asked for this very file: by `--include`, or by a `!pattern`. */
  wants(path: string): boolean
}

/** `include` holds the patterns of `--include`, which win over the file. */
export function parseIgnore(text: string, include: readonly string[] = []): Ignore {
  const own = [...text.split(/\r?\n/), ...include.map((pattern) => `!${pattern}`)].flatMap(
    (line) => parseRule(line) ?? [],
  )
  const wanted = own.filter((rule) => rule.negated)
  const rules = [...DEFAULT_PATTERNS.flatMap((line) => parseRule(line) ?? []), ...own]

  /** The last rule that matches decides; undefined when none does. */
  function verdict(path: string, isFolder: boolean): 'leave' | 'take' | undefined {
    const last = rules.findLast((rule) => rule.matches(path, isFolder))
    return last && (last.negated ? 'take' : 'leave')
  }
  const folderVerdicts = new Map<string, 'leave' | 'take' | undefined>()
  /** The nearest level that a rule speaks of decides. A folder is judged once, however many files are in it. */
  function folderVerdict(folder: string): 'leave' | 'take' | undefined {
    if (folder === '') return undefined
    if (!folderVerdicts.has(folder))
      folderVerdicts.set(folder, verdict(folder, true) ?? folderVerdict(parentOf(folder)))
    return folderVerdicts.get(folder)
  }
  const isNamed = (path: string, isFolder: boolean): boolean => wanted.some((rule) => rule.matches(path, isFolder))

  return {
    leavesOut(path, isFolder) {
      // A folder that holds something wanted is looked into: `--include .aws/credentials` names no folder.
      if (isFolder && wanted.some((rule) => rule.within(path))) return false
      return (isFolder ? folderVerdict(path) : (verdict(path, false) ?? folderVerdict(parentOf(path)))) === 'leave'
    },
    // A folder that is wanted brings what is in it.
    wants: (path) => isNamed(path, false) || foldersOf(path).some((folder) => isNamed(folder, true)),
  }
}

/** `a/b/c` → `a`, `a/b`. */
function foldersOf(path: string): string[] {
  const parts = path.split('/')
  return parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1).join('/'))
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}

function parseRule(line: string): Rule | undefined {
  let text = line.trimEnd()
  if (text === '' || text.startsWith('#')) return undefined
  const negated = text.startsWith('!')
  if (negated) text = text.slice(1)
  if (text.startsWith('\\')) text = text.slice(1)
  const foldersOnly = text.endsWith('/')
  if (foldersOnly) text = text.slice(0, -1)
  // A slash at the start or in the middle ties the pattern to the root.
  const anchored = text.includes('/')
  const body = toExpression(text.replace(/^\//, ''))
  const pattern = new RegExp(`^${anchored ? '' : '(?:.*/)?'}${body}$`)
  return {
    negated,
    matches: (path, isFolder) => (isFolder || !foldersOnly) && pattern.test(path),
    within: (folder) => anchored && text.replace(/^\//, '').startsWith(`${folder}/`),
  }
}

/** `**` spans folders, `*` and `?` stay within one name, `[abc]` is a choice. */
function toExpression(glob: string): string {
  let expression = ''
  for (let index = 0; index < glob.length; index++) {
    const rest = glob.slice(index)
    const character = glob.charAt(index)
    const [choice, not, members = ''] = /^\[(!?)([^\]/]+)\]/.exec(rest) ?? []
    if (rest.startsWith('**/')) {
      expression += '(?:.*/)?'
      index += 2
    } else if (rest.startsWith('**')) {
      expression += '.*'
      index += 1
    } else if (choice !== undefined) {
      expression += `[${not ? '^' : ''}${members.replaceAll(/[\\^]/g, '\\$&')}]`
      index += choice.length - 1
    } else {
      expression += character === '*' ? '[^/]*' : character === '?' ? '[^/]' : escape(character)
    }
  }
  return expression
}

function escape(character: string): string {
  return /[\\^$.*+?()[\]{}|]/.test(character) ? `\\${character}` : character
}
