/** `admin plans show | check <file>`: what plans allow here, and whether a file would be taken. Needs nothing that runs. */
import { readFileSync } from 'node:fs'
import { readControlConfig } from '../../ground/config.ts'
import { parsePlanFile } from '../../ground/terms/plan-file.ts'
import { plansAsFile } from '../../ground/terms/plans.ts'
import { UsageError } from './command.ts'

export const PLANS_USAGE = `  plans show | plans check <file>
      prints the plans in force, as a file that PLANS_FILE can name; or says what is wrong with such a file`

interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdout: { write(text: string): unknown }
  readonly stderr: { write(text: string): unknown }
}

/** Returns the exit status. */
export function runPlansCommand([what, file]: readonly string[], { env, stdout, stderr }: Surroundings): number {
  if (what === 'show') {
    stdout.write(`${JSON.stringify(plansAsFile(readControlConfig(env).terms), undefined, 2)}\n`)
    return 0
  }
  if (what !== 'check' || file === undefined) throw new UsageError('Use "plans show" or "plans check <file>".')
  const { plans, invalid } = parsePlanFile(readPlanFile(file))
  for (const problem of invalid) stderr.write(`${problem}\n`)
  if (invalid.length > 0) return 1
  stdout.write(`${JSON.stringify({ file, plans: Object.keys(plans) })}\n`)
  return 0
}

function readPlanFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`"${file}" cannot be read: ${(error as Error).message}`)
  }
}
