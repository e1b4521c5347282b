/** What stays at home: `.dropwayignore`, read as git reads .gitignore, and `--include`, which wins over it. No I/O. */
import { bytesOf, gitPattern, parseGitPatterns, type GitPattern } from './git-pattern.ts'

/** Files that are never meant for visitors; a `!pattern` in .dropwayignore brings one back, unless it is a secret. */
export const DEFAULT_PATTERNS = [
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
].join('\n')

export interface Ignore {
  /** Whether a path, relative to the folder and with `/`, stays at home. */
  leavesOut(path: string, isFolder: boolean): boolean
  /**
   * Whether the person asked for this very file, by `--include`. What .dropwayignore says is no such wish: it comes with
   * a repository that others wrote.
   */
  wants(path: string): boolean
}

/** `include` holds the patterns of `--include`. */
export function parseIgnore(text: string, include: readonly string[] = []): Ignore {
  const rules = [...parseGitPatterns(DEFAULT_PATTERNS), ...parseGitPatterns(text)]
  const wanted = include.map((pattern) => gitPattern(pattern, false))
  const ignoredFolders = new Map<string, boolean>([['', false]])
  const wantedFolders = new Map<string, boolean>([['', false]])

  const isWanted = (path: string, isFolder: boolean): boolean =>
    wanted.length > 0 && (lastMatch(wanted, path, isFolder) !== undefined || isWantedFolder(parentOf(path)))
  const isIgnored = (path: string, isFolder: boolean): boolean =>
    // Nothing in a folder that is ignored can be brought back, as with git.
    isIgnoredFolder(parentOf(path)) || lastMatch(rules, path, isFolder)?.isNegated === false
  /** A folder is judged once, however many files are in it. */
  const isWantedFolder = (folder: string): boolean => remembered(wantedFolders, folder, isWanted)
  const isIgnoredFolder = (folder: string): boolean => remembered(ignoredFolders, folder, isIgnored)

  return {
    leavesOut(given, isFolder) {
      const path = bytesOf(given)
      // A folder that holds something wanted is looked into: `--include .aws/credentials` names no folder.
      if (isWanted(path, isFolder) || (isFolder && wanted.some((pattern) => pattern.leadsInto(path)))) return false
      return isFolder ? isIgnoredFolder(path) : isIgnored(path, false)
    },
    wants: (path) => isWanted(bytesOf(path), false),
  }
}

function remembered(
  verdicts: Map<string, boolean>,
  folder: string,
  judge: (folder: string, isFolder: boolean) => boolean,
): boolean {
  const known = verdicts.get(folder)
  if (known !== undefined) return known
  const verdict = judge(folder, true)
  verdicts.set(folder, verdict)
  return verdict
}

/** The last pattern that matches decides. */
function lastMatch(patterns: readonly GitPattern[], path: string, isFolder: boolean): GitPattern | undefined {
  return patterns.findLast((pattern) => (isFolder || !pattern.isForFolders) && pattern.matches(path))
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}
