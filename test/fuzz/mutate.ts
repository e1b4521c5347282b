/** Makes new inputs of old ones, by bytes. The same seed gives the same inputs. */

import { createRandom } from '../support/random.ts'

/** An integer in [0, below). */
type Random = (below: number) => number

export function createDraw(seed: number): Random {
  return createRandom(seed).below
}

type Mutator = (input: Buffer, random: Random, material: Material) => Buffer

export interface Material {
  readonly corpus: readonly Buffer[]
  readonly words: readonly Buffer[]
}

const INTERESTING: readonly number[] = [
  0x00, 0x09, 0x0a, 0x0d, 0x20, 0x22, 0x27, 0x2f, 0x3c, 0x3e, 0x5c, 0x7f, 0x80, 0xff,
]

function splice(input: Buffer, at: number, removed: number, added: Buffer): Buffer {
  return Buffer.concat([input.subarray(0, at), added, input.subarray(at + removed)])
}

const MUTATORS: readonly Mutator[] = [
  // One byte becomes another.
  (input, random) => splice(input, random(input.length + 1), 1, Buffer.from([random(256)])),
  (input, random) =>
    splice(input, random(input.length + 1), 1, Buffer.from([INTERESTING[random(INTERESTING.length)]!])),
  (input, random) => splice(input, random(input.length + 1), 0, Buffer.from([random(256)])),
  // A piece goes, is doubled, or is repeated very often: what is not linear shows there.
  (input, random) => splice(input, random(input.length + 1), random(20), Buffer.alloc(0)),
  (input, random) => {
    const at = random(input.length + 1)
    return splice(input, at, 0, input.subarray(at, at + 1 + random(40)))
  },
  (input, random) => {
    const at = random(input.length + 1)
    const piece = input.subarray(at, at + 1 + random(12))
    return splice(input, at, 0, Buffer.concat(Array.from({ length: 1 << random(12) }, () => piece)))
  },
  (input, random, { words }) => splice(input, random(input.length + 1), random(3), words[random(words.length)]!),
  (input, random, { words }) => {
    const word = words[random(words.length)]!
    return splice(
      input,
      random(input.length + 1),
      0,
      Buffer.concat(Array.from({ length: 1 << random(12) }, () => word)),
    )
  },
  // The beginning of one and the end of another.
  (input, random, { corpus }) => {
    const other = corpus[random(corpus.length)]!
    return Buffer.concat([input.subarray(0, random(input.length + 1)), other.subarray(random(other.length + 1))])
  },
]

export function mutate(input: Buffer, random: Random, material: Material, maxBytes: number): Buffer {
  let mutated = input
  for (let count = 1 + random(6); count > 0; count--)
    mutated = MUTATORS[random(MUTATORS.length)]!(mutated, random, material)
  return mutated.subarray(0, maxBytes)
}
