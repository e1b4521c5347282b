/** SHA-256 (FIPS 180-4) of a short message, at once: crypto.subtle answers one promise at a time, too slow for a search. */
const PRIMES = firstPrimes(64)
const ROUND = PRIMES.map((prime) => fraction(Math.cbrt(prime)))
const START = Uint32Array.from(PRIMES.slice(0, 8), (prime) => fraction(Math.sqrt(prime)))

function firstPrimes(count: number): number[] {
  const primes: number[] = []
  for (let candidate = 2; primes.length < count; candidate++) {
    if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate)
  }
  return primes
}

function fraction(value: number): number {
  return Math.floor((value - Math.floor(value)) * 2 ** 32)
}

function rotate(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by))
}

/** The eight words of the digest. */
export function sha256(message: Uint8Array): Uint32Array {
  const padded = new Uint8Array((((message.length + 8) >> 6) + 1) << 6)
  padded.set(message)
  padded[message.length] = 0x80
  const view = new DataView(padded.buffer)
  view.setUint32(padded.length - 4, message.length * 8)
  const state = START.slice()
  // A view, because it answers a number wherever it is asked.
  const words = new DataView(new ArrayBuffer(64 * 4))
  for (let block = 0; block < padded.length; block += 64) {
    for (let at = 0; at < 64; at += 4) words.setUint32(at, view.getUint32(block + at))
    mix(state, words)
  }
  return state
}

function mix(state: Uint32Array, words: DataView): void {
  for (let at = 16 * 4; at < 64 * 4; at += 4) {
    const a = words.getUint32(at - 15 * 4)
    const b = words.getUint32(at - 2 * 4)
    const small0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3)
    const small1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10)
    words.setUint32(at, words.getUint32(at - 16 * 4) + small0 + words.getUint32(at - 7 * 4) + small1)
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
  let at = 0
  for (const round of ROUND) {
    const big1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
    const one = (h + big1 + ((e & f) ^ (~e & g)) + round + words.getUint32(at)) | 0
    const big0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
    const two = (big0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    at += 4
    ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0]
  }
  const mixed = [a, b, c, d, e, f, g, h]
  state.set(state.map((word, index) => word + (mixed[index] ?? 0)))
}
