/**
 * Postgres refuses to run as root. Started by root, it runs as `postgres` or `nobody`; else as the user who starts it.
 * The checkout and DATA_DIR may then lie where this user cannot go, e.g. under a home directory of mode 0700.
 */
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'

export interface ServiceUser {
  readonly uid: number
  readonly gid: number
}

const CANDIDATES = ['postgres', 'nobody']

/** The user to become, or undefined when we are not root and simply stay who we are. */
export function serviceUser(): ServiceUser | undefined {
  if (process.getuid?.() !== 0) return undefined
  const accounts = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  for (const name of CANDIDATES) {
    const account = accounts.find((fields) => fields[0] === name)
    if (account) return { uid: Number(account[2]), gid: Number(account[3]) }
  }
  throw new Error(
    'Postgres cannot run as root, and this system has neither a user "postgres" nor "nobody" to run it as.',
  )
}

/** May the user pass through every directory down to this one? */
export function canReach(user: ServiceUser | undefined, directory: string): boolean {
  if (!user) return true
  for (let current = path.resolve(directory); ; current = path.dirname(current)) {
    if (!mayEnter(user, current)) return false
    if (current === path.dirname(current)) return true
  }
}

function mayEnter(user: ServiceUser, directory: string): boolean {
  const { mode, uid, gid } = statSync(directory)
  if (uid === user.uid) return (mode & 0o100) !== 0
  if (gid === user.gid) return (mode & 0o010) !== 0
  return (mode & 0o001) !== 0
}
