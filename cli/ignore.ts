/** `.dropwayignore`: the pattern language of .gitignore. No I/O. */

/** Never meant for visitors; a `!pattern` in .dropwayignore brings one back. */
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
  readonly pattern: RegExp
  readonly negated: boolean
  readonly foldersOnly: boolean
}

/** Says whether a path, relative to the folder and with `/`, stays at home. */
export type Ignore = (path: string, isFolder: boolean) => boolean

export function parseIgnore(text: string): Ignore {
  const rules = [...DEFAULT_PATTERNS, ...text.split(/\r?\n/)].map(parseRule).filter((rule) => rule !== undefined)
  return (path, isFolder) => {
    let ignored = false
    // The last rule that matches decides.
    for (const rule of rules) {
      if (rule.negated !== ignored || (rule.foldersOnly && !isFolder)) continue
      if (rule.pattern.test(path)) ignored = !ignored
    }
    return ignored
  }
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
  return { pattern: new RegExp(`^${anchored ? '' : '(?:.*/)?'}${body}$`), negated, foldersOnly }
}

/** `**` spans folders, `*` and `?` stay within one name, `[abc]` is a choice. */
function toExpression(glob: string): string {
  let expression = ''
  for (let index = 0; index < glob.length; index++) {
    const rest = glob.slice(index)
    const choice = /^\[(!?)([^\]/]+)\]/.exec(rest)
    if (rest.startsWith('**/')) {
      expression += '(?:.*/)?'
      index += 2
    } else if (rest.startsWith('**')) {
      expression += '.*'
      index += 1
    } else if (choice) {
      expression += `[${choice[1] ? '^' : ''}${choice[2]!.replaceAll(/[\\^]/g, '\\$&')}]`
      index += choice[0].length - 1
    } else {
      expression += glob[index] === '*' ? '[^/]*' : glob[index] === '?' ? '[^/]' : escape(glob[index]!)
    }
  }
  return expression
}

function escape(character: string): string {
  return /[\\^$.*+?()[\]{}|]/.test(character) ? `\\${character}` : character
}
