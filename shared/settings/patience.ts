/**
 * How long the parts of an instance wait for one another before one counts as away. The times in the sources are those of a
 * machine whose processor and disk are its own; where others use those up for seconds at a time, PATIENCE multiplies them.
 * Like memory it is a fact about the machine, so it is taken where it matters and not handed through.
 */
import { EnvReader } from './env.ts'

/** With more, the edge's longest question to control would outlast the visitor's idle connection. */
const MAX_PATIENCE = 5

const FACTOR = readPatience(new EnvReader(process.env))

export function patiently(ms: number): number {
  return ms * FACTOR
}

/** What is no factor counts as 1 here, and stops a plane where it reads its settings. */
export function readPatience(env: EnvReader): number {
  return env.integer('PATIENCE', 1, 1, MAX_PATIENCE)
}
