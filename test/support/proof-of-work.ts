/** Solves what a server asks of a suspicious caller, as its pages do. */
import { hash } from 'node:crypto'

/** `<challenge>:<nonce>` whose SHA-256 begins with `bits` zero bits. */
export function solve(challenge: string, bits: number): string {
  for (let nonce = 0; ; nonce++) {
    const proof = `${challenge}:${nonce}`
    if (Math.clz32(hash('sha256', proof, 'buffer').readUInt32BE()) >= bits) return proof
  }
}
