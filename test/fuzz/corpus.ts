/** Inputs that are kept: `corpus/<target>/<hash>`. What was a finding once is tried in every run. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { nameOf } from './fuzz.ts'

const FOLDER = path.join(import.meta.dirname, 'corpus')
/** A corpus is for reading too. */
const MAX_KEPT = 40
const MAX_KEPT_BYTES = 2000

export function readCorpus(target: string): Buffer[] {
  const folder = path.join(FOLDER, target)
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .toSorted()
    .map((name) => readFileSync(path.join(folder, name)))
}

/** The first ones reach the most. Findings are kept whatever their size. */
export function keep(target: string, discovered: readonly Buffer[], findings: readonly Buffer[]): void {
  const room = Math.max(0, MAX_KEPT - readCorpus(target).length)
  const small = discovered.filter((input) => input.length <= MAX_KEPT_BYTES).slice(0, room)
  if (small.length + findings.length === 0) return
  mkdirSync(path.join(FOLDER, target), { recursive: true })
  for (const input of [...small, ...findings]) writeFileSync(path.join(FOLDER, target, nameOf(input)), input)
}
