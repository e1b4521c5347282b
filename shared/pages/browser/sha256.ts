/** SHA-256 (FIPS 180-4) of a short message, at once: crypto.subtle answers one promise at a time, too slow for a search. */
const PRIMES = firstPrimes(64)
const ROUND = Uint32Array.from(PRIMES, (prime) => fraction(Math.cbrt(prime)))
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
  const words = new Uint32Array(64)
  for (let block = 0; block < padded.length; block += 64) {
    for (let index = 0; index < 16; index++) words[index] = view.getUint32(block + index * 4)
    mix(state, words)
  }
  return state
}

function mix(state: Uint32Array, words: Uint32Array): void {
  for (let index = 16; index < 64; index++) {
    const a = words[index - 15] ?? 0
    const b = words[index - 2] ?? 0
    const small0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3)
    const small1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10)
    words[index] = (words[index - 16] ?? 0) + small0 + (words[index - 7] ?? 0) + small1
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
  for (let index = 0; index < 64; index++) {
    const big1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
    const one = (h + big1 + ((e & f) ^ (~e & g)) + (ROUND[index] ?? 0) + (words[index] ?? 0)) | 0
    const big0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
    const two = (big0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0]
  }
  ;[a, b, c, d, e, f, g, h].forEach((word, index) => (state[index] = (state[index] ?? 0) + word))
}
