/** `[name, value, name, value, …]`, as Redis answers, two at a time; a last one without its partner is left out. */
export function* pairs(flat: readonly string[]): Generator<[string, string]> {
  let first: string | undefined
  for (const text of flat) {
    if (first === undefined) first = text
    else {
      yield [first, text]
      first = undefined
    }
  }
}
