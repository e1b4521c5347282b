/** The shape of an operator's command, and how its arguments are read. */
import { parseArgs } from 'node:util'
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
