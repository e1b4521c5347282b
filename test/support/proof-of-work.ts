/** Solves what a server asks of a suspicious caller, as its pages do. */
import { hash } from 'node:crypto'
import type { Secrets } from '../../shared/secrets/secrets.ts'

const EASY_BITS = 8

/** `<challenge>:<nonce>` whose SHA-256 begins with `bits` zero bits. */
export function solve(challenge: string, bits: number): string {
  for (let nonce = 0; ; nonce++) {
    const proof = `${challenge}:${nonce}`
    if (Math.clz32(hash('sha256', proof, 'buffer').readUInt32BE()) >= bits) return proof
  }
}

/**
 * An answer to the same question, asked again with the service's own key and so few bits that the answer is there at once:
 * what is hard is a matter of chance, from one second to twenty.
 */
export function solveEasily(secrets: Pick<Secrets, 'sign'>, challenge: string): string {
  const [kind, expiresAt, , name, id] = challenge.slice(0, challenge.lastIndexOf('.')).split('~')
  const text = [kind, expiresAt, EASY_BITS, name, id].join('~')
  return solve(`${text}.${secrets.sign('proof-of-work', text)}`, EASY_BITS)
}
