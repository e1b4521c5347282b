/** Opaque identifiers with a prefix that names the kind: `st_…`, `v_…`. Sortable by time of creation. */
import { randomBytes } from 'node:crypto'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

export type IdPrefix =
  | 'st'
  | 'v'
  | 'usr'
  | 'org'
  | 'tok'
  | 'pub'
  | 'ses'
  | 'inv'
  /** A link of the operator to sign up with. */
  | 'sul'
  /** A person as a sign-in provider knows them. */
  | 'pid'
  | 'dom'
  | 'upl'
  | 'cli'
  | 'grt'
  | 'rep'
  | 'err'
  /** A run of the backup. */
  | 'bak'
  | 'mail'
  | 'edge'
  | 'wh'
  /** A viewer, a guest link. */
  | 'vw'
  | 'gl'
  /** A thread, a message in it, an image in that. */
  | 'th'
  | 'tm'
  | 'ti'

export function newId(prefix: IdPrefix, now = Date.now()): string {
  let time = now
  let head = ''
  for (let index = 0; index < 9; index++) {
    head = ALPHABET.charAt(time % 32) + head
    time = Math.floor(time / 32)
  }
  let tail = ''
  for (const byte of randomBytes(13)) tail += ALPHABET[byte % 32]
  return `${prefix}_${head}${tail}`
}
