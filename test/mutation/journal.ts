/**
 * What happened so far, a line per event, written by the process that runs the tests. It outlives that process: a fault
 * that never returns costs its process, not the run.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

export type Verdict = 'caught' | 'survived' | 'endless'

export interface History {
  readonly caught: ReadonlySet<number>
  readonly endless: ReadonlySet<number>
  /** `<number> <test file>` of what need not be tried again. */
  readonly tried: ReadonlySet<string>
  /** Reached by at least one test. */
  readonly reached: ReadonlySet<number>
  /** Test files that are through. */
  readonly done: ReadonlySet<string>
  /** Tests that fail, or take too long, without any fault. */
  readonly useless: readonly string[]
  /** What began and did not end. */
  readonly open: { readonly number: number; readonly witness: string } | undefined
}

export type Event =
  | { readonly kind: 'begin'; readonly number: number; readonly witness: string }
  | { readonly kind: 'end'; readonly number: number; readonly witness: string; readonly verdict: Verdict }
  | { readonly kind: 'reached'; readonly numbers: readonly number[] }
  | { readonly kind: 'useless'; readonly test: string }
  | { readonly kind: 'done'; readonly witness: string }

export function write(journal: string, event: Event): void {
  appendFileSync(journal, `${JSON.stringify(event)}\n`)
}

export function read(journal: string): History {
  const caught = new Set<number>()
  const endless = new Set<number>()
  const tried = new Set<string>()
  const reached = new Set<number>()
  const done = new Set<string>()
  const useless = new Set<string>()
  let open: History['open']
  for (const line of existsSync(journal) ? readFileSync(journal, 'utf8').split('\n') : []) {
    if (line === '') continue
    const event = JSON.parse(line) as Event
    switch (event.kind) {
      case 'begin':
        open = { number: event.number, witness: event.witness }
        break
      case 'end':
        open = undefined
        tried.add(`${event.number} ${event.witness}`)
        if (event.verdict !== 'survived') caught.add(event.number)
        if (event.verdict === 'endless') endless.add(event.number)
        break
      case 'reached':
        for (const number of event.numbers) reached.add(number)
        break
      case 'useless':
        useless.add(event.test)
        break
      case 'done':
        done.add(event.witness)
        break
      default:
        event satisfies never
    }
  }
  return { caught, endless, tried, reached, done, useless: [...useless], open }
}
