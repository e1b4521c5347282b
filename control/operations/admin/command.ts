/** The shape of an operator's command, and how its arguments are read. */
import { parseArgs } from 'node:util'
import { systemClock, type Clock } from '../../../shared/running/clock.ts'
import type { Services } from '../../composition/services.ts'

/** A mistake in how the command was called, shown with the help. */
export class UsageError extends Error {}

export interface Command {
  readonly usage: string
  readonly summary: string
  /** Returns what is printed as JSON. */
  run(services: Services, args: readonly string[]): Promise<unknown>
  /** What was found is bad news: it is printed all the same, and the exit code says so. */
  hasFailed?(result: unknown): boolean
}

export function required(name: string, value: string | undefined): string {
  if (value === undefined || value.trim() === '') throw new UsageError(`${name} is missing.`)
  return value
}

export type OptionTable = NonNullable<Parameters<typeof parseArgs>[0]>['options'] & {}

export function options<const Table extends OptionTable>(args: readonly string[], table: Table) {
  return parseArgs({ args: [...args], options: table, strict: true }).values
}

/** `--now <ISO time>` moves the clock of the whole run; from there it ticks on. */
export function takeClock(args: readonly string[]): { clock: Clock; rest: string[] } {
  const at = args.indexOf('--now')
  if (at === -1) return { clock: systemClock, rest: [...args] }
  const start = Date.parse(args[at + 1] ?? '')
  if (Number.isNaN(start)) throw new UsageError('--now must be an ISO time such as 2030-01-31T12:00:00Z.')
  const ahead = start - Date.now()
  return { clock: { now: () => Date.now() + ahead }, rest: args.toSpliced(at, 2) }
}
