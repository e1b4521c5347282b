/** Work on the worst input of each size, to be counted (`./growth.ts`) or timed (`test/deep/growth.test.ts`). */

// oxlint-disable-next-line typescript/no-explicit-any -- cases of different inputs stand in one table
export interface WorkCase<Input = any> {
  make(n: number): Input
  /** What it throws counts as a failure of the case. */
  run(input: Input): unknown
  /** The most that a stranger may send. */
  readonly largest: number
  /** The largest size that is counted; a small one tells as much, where nothing changes above it. */
  readonly counted: number
  /** Steps for each unit of size. */
  readonly maxPerUnit: number
}

export interface CaseCounts {
  readonly name: string
  /** For a quarter, a half and the whole of the counted size. */
  readonly counts: readonly number[]
}

const COUNTED = 8192
/** A tokeniser takes some ten blocks for each character, the slowest of the libraries some hundreds. */
const MAX_PER_UNIT = 150

export function workCase<Input>(
  make: (n: number) => Input,
  run: (input: Input) => unknown,
  { largest, counted = COUNTED, maxPerUnit = MAX_PER_UNIT }: { largest: number; counted?: number; maxPerUnit?: number },
): WorkCase<Input> {
  return { make, run, largest, counted: Math.min(counted, largest), maxPerUnit }
}

export function sizesOf({ counted }: WorkCase): [number, number, number] {
  return [Math.ceil(counted / 4), Math.ceil(counted / 2), counted]
}

/** `text` again and again, `n` characters in all. */
export function fill(text: string, n: number): string {
  return text.repeat(Math.ceil(n / text.length)).slice(0, n)
}

/** Openings, then as many endings that fit none of them. */
export function halves(first: string, second: string) {
  return (n: number): string => fill(first, n / 2) + fill(second, n / 2)
}

export const repeated =
  (text: string, tail = '') =>
  (n: number): string =>
    fill(text, n) + tail

/** The same cases under the name of their group. */
export function grouped(group: string, cases: Readonly<Record<string, WorkCase>>): Record<string, WorkCase> {
  return Object.fromEntries(Object.entries(cases).map(([name, one]) => [`${group}: ${name}`, one]))
}
