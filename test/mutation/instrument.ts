/**
 * All faults of a source in one text, each behind a question: `(__mutant(7) ? faulty : right)`. One of them is active at a
 * time, or none. The tests need not be loaded again for the next one.
 */
import type { Host, Mutant } from './mutants.ts'

interface HostWithFaults extends Host {
  readonly faults: readonly { readonly mutant: Mutant; readonly number: number }[]
}

/** `first`: the number of the first mutant; the others count on from it. */
export function instrument(source: string, mutants: readonly Mutant[], first: number): string {
  const byHost = new Map<string, HostWithFaults & { faults: { mutant: Mutant; number: number }[] }>()
  for (const [index, mutant] of mutants.entries()) {
    const key = `${mutant.host.kind} ${mutant.host.start} ${mutant.host.end}`
    let host = byHost.get(key)
    if (host === undefined) byHost.set(key, (host = { ...mutant.host, faults: [] }))
    host.faults.push({ mutant, number: first + index })
  }
  // Outer hosts before inner ones; of the same place the statement is the outer one.
  const hosts = [...byHost.values()].sort(
    (a, b) => a.start - b.start || b.end - a.end || (a.kind === 'statement' ? -1 : 1),
  )
  let next = 0
  const emit = (start: number, end: number): string => {
    let text = ''
    let position = start
    for (let host = hosts[next]; host !== undefined && host.end <= end; host = hosts[next]) {
      next++
      text += source.slice(position, host.start) + choice(source, host, emit(host.start, host.end))
      position = host.end
    }
    return text + source.slice(position, end)
  }
  return emit(0, source.length)
}

function choice(source: string, { kind, start, end, faults }: HostWithFaults, right: string): string {
  const faulty = ({ mutant }: { mutant: Mutant }): string =>
    source.slice(start, mutant.start) + mutant.replacement + source.slice(mutant.end, end)
  if (kind === 'statement')
    return `{${faults.map((fault) => `if(__mutant(${fault.number})){${faulty(fault)}}else `).join('')}{${right}}}`
  return `(${faults.map((fault) => `__mutant(${fault.number})?(${faulty(fault)}):`).join('')}(${right}))`
}
