/** Finds the nonce that the server asks of suspicious traffic. Takes a moment, and no action of the visitor. */
import { sha256 } from './sha256.ts'

/** Nonces tried between two breaths of the page, so that it stays responsive. */
const BATCH = 2000

/** Resolves to `<challenge>:<nonce>` whose sha256 starts with `bits` zero bits. */
export async function solveChallenge(challenge: string, bits: number): Promise<string> {
  for (let nonce = 0; ; nonce++) {
    const proof = `${challenge}:${nonce}`
    if (startsWithZeroBits(sha256(new TextEncoder().encode(proof)), bits)) return proof
    if (nonce % BATCH === 0) await new Promise((resolve) => setTimeout(resolve))
  }
}

function startsWithZeroBits(words: Uint32Array, bits: number): boolean {
  return Math.clz32(words[0] ?? 0) >= Math.min(bits, 32)
}
