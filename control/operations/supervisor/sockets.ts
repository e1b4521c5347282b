/** Where a service puts its unix socket. The kernel takes at most 107 bytes of path. */
import { createHash } from 'node:crypto'
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { canReach, type ServiceUser } from './postgres/service-user.ts'

const MAX_SOCKET_PATH_BYTES = 107

/** Where root puts a short folder: no other user can create names there. Others use the system's temporary folder. */
const ROOT_PLACE = '/run'

/**
 * `preferred` where the path fits and the user can reach it, else a short folder elsewhere.
 * The same input always gives the same folder: clients keep their address when the service restarts.
 */
export function socketFolder(preferred: string, socketName: string, user?: ServiceUser): string {
  mkdirSync(preferred, { recursive: true, mode: 0o700 })
  const fits = Buffer.byteLength(path.join(preferred, socketName)) <= MAX_SOCKET_PATH_BYTES
  if (!fits || !canReach(user, path.dirname(preferred))) return shortFolder(preferred, user)
  giveTo(user, preferred)
  return preferred
}

/** After the service has stopped: a short folder is not left lying about; the next start makes it again. */
export function releaseSocketFolder(folder: string, preferred: string): void {
  if (folder !== preferred) rmSync(folder, { recursive: true, force: true })
}

function shortFolder(preferred: string, user?: ServiceUser): string {
  const name = createHash('sha256').update(preferred).digest('hex').slice(0, 16)
  const places = process.getuid?.() === 0 ? [ROOT_PLACE, os.tmpdir(), '/tmp'] : [os.tmpdir()]
  const place = places.find((candidate) => existsSync(candidate) && canReach(user, candidate)) ?? os.tmpdir()
  const folder = path.join(place, `dropway-${name}`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  // Any user may create names in a temporary folder: only trust it when it is ours.
  const { uid } = lstatSync(folder)
  if (uid !== process.getuid?.() && uid !== user?.uid)
    throw new Error(`${folder} belongs to another user. Remove it, or set DATA_DIR to a shorter path.`)
  giveTo(user, folder)
  return folder
}

function giveTo(user: ServiceUser | undefined, folder: string): void {
  if (!user) return
  chownSync(folder, user.uid, user.gid)
  chmodSync(folder, 0o700)
}
