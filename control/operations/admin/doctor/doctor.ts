/** `admin doctor`: asks everything that Dropway stands on how it is. */
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError, type Env } from '../../../../shared/settings/env.ts'
import { readControlConfig, type ControlConfig } from '../../../ground/config.ts'
import { checks } from './checks.ts'
import type { Check, Finding } from './finding.ts'

const MARKS: Readonly<Record<Finding['state'], string>> = { ok: 'ok', warning: 'WARN', problem: 'FAIL' }

/** Prints the findings; resolves the exit code: 1 when something must be mended. */
export async function runDoctor(
  env: Env,
  out: { write(text: string): unknown },
  { json }: { json: boolean },
): Promise<number> {
  const findings = await examine(env)
  out.write(json ? `${JSON.stringify(findings, undefined, 2)}\n` : `${findings.map(line).join('\n')}\n`)
  return findings.some(({ state }) => state === 'problem') ? 1 : 0
}

async function examine(env: Env): Promise<Finding[]> {
  let config: ControlConfig
  try {
    config = readControlConfig(env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map((detail) => ({
      check: 'settings',
      state: 'problem',
      detail,
      mend: 'Correct this setting.',
    }))
  }
  return (await Promise.all(checks.map((check) => safely(check, config)))).flat()
}

/** What does not answer by then will not. An operator who asks for help is not kept waiting. */
const CHECK_MS = 12_000

/** A check that fails in a way we did not foresee, or does not come to an end, is a finding, too. */
async function safely(check: Check, config: ControlConfig): Promise<Finding[]> {
  try {
    const findings = await Promise.race([check(config), sleep(CHECK_MS, undefined, { ref: false })])
    if (findings) return [...findings]
    const detail = `does not answer within ${CHECK_MS / 1000} s`
    return [{ check: check.name, state: 'problem', detail, mend: 'Look at its log, and at the network between.' }]
  } catch (error) {
    return [{ check: check.name, state: 'problem', detail: (error as Error).message, mend: 'See the message.' }]
  }
}

function line({ check, state, detail, mend }: Finding): string {
  return `${MARKS[state].padEnd(5)}${check.padEnd(22)}${detail}${mend ? `\n${' '.repeat(27)}→ ${mend}` : ''}`
}
