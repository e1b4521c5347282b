/**
 * What git itself says of the corpus. `node test/unit/cli/git/ask-git.ts > test/unit/cli/git/answers.json` writes the
 * table that the matcher is held against where there is no git.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { DEFAULT_PATTERNS } from '../../../../cli/content/ignore/ignore.ts'
import { digitsOf, PATHS, SETS } from './corpus.ts'

/** The digits of each set, from `git check-ignore` in a repository that has all the paths. */
export function askGit(sets: readonly string[]): string[] {
  const root = mkdtempSync(path.join(os.tmpdir(), 'dropway-git-'))
  try {
    git(root, ['init', '--quiet', '--template='])
    mkdirSync(path.join(root, '.git/info'))
    for (const { path: name, isFolder } of PATHS)
      if (isFolder) mkdirSync(path.join(root, name), { recursive: true })
      else writeFileSync(path.join(root, name), '')
    return sets.map((set) => {
      writeFileSync(path.join(root, '.git/info/exclude'), `${DEFAULT_PATTERNS}\n${set.replace(/^\ufeff/, '')}`)
      const ignored = new Set(ignoredIn(root))
      return digitsOf(PATHS.map(({ path: name }) => ignored.has(name)))
    })
  } finally {
    rmSync(root, { recursive: true })
  }
}

function ignoredIn(root: string): string[] {
  const asked = PATHS.map(({ path: name }) => `${name}\0`).join('')
  return git(root, ['check-ignore', '--no-index', '--stdin', '-z'], asked).split('\0')
}

/** Settings of the person and of the machine are left out. Status 1 says that nothing is ignored. */
function git(cwd: string, args: readonly string[], input = ''): string {
  const env = { PATH: process.env['PATH'], GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', HOME: cwd }
  try {
    return execFileSync('git', args, { cwd, env, input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] })
  } catch (error) {
    if ((error as { status?: unknown }).status === 1) return ''
    throw error
  }
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(askGit(SETS), null, 2)}\n`)
