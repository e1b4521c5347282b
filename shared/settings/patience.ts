/**
 * How long the parts of an instance wait for one another before one counts as away. The times in the sources are those of a
 * machine whose processor and disk are its own; where others use those up for seconds at a time, PATIENCE multiplies them.
 * Like memory it is a fact about the machine, so it is taken where it matters and not handed through.
 */
export const MAX_PATIENCE = 20

const FACTOR = factorOf(process.env['PATIENCE'])

export function patiently(ms: number): number {
  return ms * FACTOR
}

/** What is no factor stops a plane where it reads its settings (shared/settings/settings.ts). */
export function factorOf(text: string | undefined): number {
  const factor = Number(text ?? 1)
  return Number.isInteger(factor) && factor >= 1 && factor <= MAX_PATIENCE ? factor : 1
}
