import { MAX_EMAIL_CHARS } from '../../../shared/contracts/limits.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { isHostname } from '../../../shared/http/hosts.ts'

/** RFC 5321 §4.5.3.1. */
const MAX_LOCAL_PART_CHARS = 64
const LOCAL_PART = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/

/** Lower case, since no mailboxes differ in case alone; throws when it cannot be an address. */
export function parseEmail(text: string): string {
  const email = text.trim().toLowerCase()
  const at = email.lastIndexOf('@')
  const [local, domain] = [email.slice(0, at), email.slice(at + 1)]
  const isAddress =
    at > 0 &&
    email.length <= MAX_EMAIL_CHARS &&
    local.length <= MAX_LOCAL_PART_CHARS &&
    LOCAL_PART.test(local) &&
    domain.includes('.') &&
    isHostname(domain)
  if (!isAddress) throw errors.invalidRequest('email: this is not an e-mail address')
  return email
}

const NOWHERE = 'invalid'

/** RFC 2606: an address that is nobody's, for accounts without a mailbox of their own. */
export function addressOfNobody(name: string): string {
  return `${name}@${NOWHERE}`
}

export function isNobody(address: string): boolean {
  return address.endsWith(`@${NOWHERE}`)
}
