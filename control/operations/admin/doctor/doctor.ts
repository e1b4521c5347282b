/** `admin doctor`: asks everything that this machine's part of Dropway stands on how it is. */
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readEdgeConfig } from '../../../../edge/config.ts'
import { ConfigError, type Env } from '../../../../shared/settings/env.ts'
import { readLocalServices } from '../../../../shared/settings/local-services.ts'
import { readControlConfig } from '../../../ground/config.ts'
import { commonChecks, controlChecks } from './checks.ts'
import { edgeChecks, listenerChecks } from './edge-checks.ts'
import { ok, type Check, type Finding } from './finding.ts'
import { roleOf, type MachineRole } from './role.ts'

const MARKS: Readonly<Record<Finding['state'], string>> = { ok: 'ok', warning: 'WARN', problem: 'FAIL' }

/** Prints the findings; resolves the exit code: 1 when something must be mended. */
export async function runDoctor(
  env: Env,
  out: { write(text: string): unknown },
  { json, role }: { json: boolean; role?: MachineRole | undefined },
): Promise<number> {
  const findings = await examine(env, role)
  out.write(json ? `${JSON.stringify(findings, undefined, 2)}\n` : `${findings.map(line).join('\n')}\n`)
  return findings.some(({ state }) => state === 'problem') ? 1 : 0
}

export async function examine(env: Env, said?: MachineRole): Promise<Finding[]> {
  const dataDir = path.resolve((env['DATA_DIR'] ?? '').trim() || './data')
  const { role, because } = roleOf(env, said, readLocalServices(dataDir) !== undefined)
  const [first, ...rest] = configsOf(role, env)
  if (!first) return []
  if (first.problems.length > 0 || rest.some(({ problems }) => problems.length > 0))
    return [...new Set([first, ...rest].flatMap(({ problems }) => problems))].map((detail) => ({
      check: 'settings',
      state: 'problem',
      detail,
      mend: 'Correct this setting.',
    }))
  const found = await Promise.all([first, ...rest].flatMap(({ run }) => run()))
  return [ok('role', `${role}: ${because}`), ...found.flat()]
}

/** The settings of one plane: what is wrong with them, or the checks that go with them. */
interface Examined {
  readonly problems: readonly string[]
  run(): Promise<Finding[]>[]
}

function configsOf(role: MachineRole, env: Env): Examined[] {
  switch (role) {
    case 'all':
      return [
        withSettings(() => readControlConfig(env), [...commonChecks, ...controlChecks]),
        withSettings(() => readEdgeConfig(env), listenerChecks),
      ]
    case 'control':
      return [withSettings(() => readControlConfig(env), [...commonChecks, ...controlChecks])]
    case 'edge':
      return [withSettings(() => readEdgeConfig(env), [...commonChecks, ...edgeChecks])]
    default:
      return role satisfies never
  }
}

function withSettings<Config>(read: () => Config, checks: readonly Check<Config>[]): Examined {
  try {
    const config = read()
    return { problems: [], run: () => checks.map((check) => safely(check, config)) }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { problems: error.problems, run: () => [] }
  }
}

/** What does not answer by then will not. An operator who asks for help is not kept waiting. */
const CHECK_MS = 12_000

/** A check that fails in a way we did not foresee, or does not come to an end, is a finding, too. */
async function safely<Config>(check: Check<Config>, config: Config): Promise<Finding[]> {
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
