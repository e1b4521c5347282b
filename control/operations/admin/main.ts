/**
 * `npm run admin -- <command>`: works beside a running stack with the same environment, through the same services.
 * The result is JSON on stdout; a failure is a sentence on stderr and a non-zero exit.
 */
import { once } from 'node:events'
import { enableCompileCache } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../../shared/running/clock.ts'
import { compileCacheDir } from '../compile-cache.ts'
import { ConfigError } from '../../../shared/settings/env.ts'
import { ApiError } from '../../../shared/contracts/errors.ts'
import { silentLog } from '../../../shared/running/log.ts'
import { keepFilesPrivate } from '../../../shared/secrets/private-files.ts'
import { readControlConfig, type ControlConfig } from '../../ground/config.ts'
import { DatabaseUnusable, reachDatabase } from '../../ground/database/reach.ts'
import type { Services } from '../../composition/services.ts'
import { takeClock, UsageError, type Command } from './command.ts'
import { machineRoles, type MachineRole } from './doctor/role.ts'
import { commands } from './commands.ts'
import { PLANS_USAGE, runPlansCommand } from './plans-command.ts'
import { runServiceCommand, SERVICE_USAGE } from './service-command.ts'

const CONNECT_TIMEOUT_MS = 3000

async function main(args: readonly string[]): Promise<number> {
  keepFilesPrivate()
  const [name = 'help', ...rest] = args
  if (name === 'help' || name === '--help' || name === '-h') {
    process.stdout.write(help())
    return 0
  }
  if (name === 'doctor') {
    const { runDoctor } = await import('./doctor/doctor.ts')
    const code = await runDoctor(process.env, process.stdout, { json: rest.includes('--json'), role: askedRole(rest) })
    // What did not answer is still being waited for somewhere; the operator has the findings.
    process.stdout.write('', () => process.exit(code))
    return code
  }
  if (name === 'plans') return runPlansCommand(rest, process)
  if (name === 'install-service') {
    process.stdout.write(await runServiceCommand(rest))
    return 0
  }
  const command = commands.get(name)
  if (!command) throw new UsageError(`"${name}" is not a command.`)
  const { clock, rest: ownArguments } = takeClock(rest)
  return runCommand(command, ownArguments, clock)
}

async function runCommand(command: Command, args: readonly string[], clock: Clock): Promise<number> {
  const config = readControlConfig(process.env)
  enableCompileCache(compileCacheDir(config.dataDir))
  // Imported now: most of the time of a command is spent on loading this.
  const { createServices } = await import('../../composition/services.ts')
  const isDatabasePooled = await requireDatabase(config)
  const services = createServices({ config, clock, log: silentLog, isDatabasePooled })
  try {
    await requireRedis(services, config)
    const result = await command.run(services, args)
    // One line for programs, which may read only the last one; people see it spread out.
    process.stdout.write(`${JSON.stringify(result, undefined, process.stdout.isTTY ? 2 : 0)}\n`)
    if ((result as { pending?: boolean }).pending) {
      process.stderr.write('No edge has confirmed the change yet; it will be served as soon as one can reach Redis.\n')
    }
    return command.hasFailed?.(result) ? 1 : 0
  } finally {
    await services.close()
  }
}

/** A command that cannot reach the stack says so at once, instead of failing somewhere inside. */
async function requireDatabase({ databaseUrl }: ControlConfig): Promise<boolean> {
  try {
    return (await reachDatabase(databaseUrl)).isPooled
  } catch (error) {
    if (!(error instanceof DatabaseUnusable)) throw error
    throw new UsageError(`${error.message} ${IS_IT_RUNNING}`)
  }
}

async function requireRedis({ redis }: Services, config: ControlConfig): Promise<void> {
  if (redis.status === 'ready') return
  const ready = once(redis, 'ready').then(() => true)
  if (!(await Promise.race([ready, sleep(CONNECT_TIMEOUT_MS, false, { ref: false })]))) {
    throw new UsageError(`Redis cannot be reached at ${withoutPassword(config.redisUrl)}. ${IS_IT_RUNNING}`)
  }
}

const IS_IT_RUNNING = 'Is Dropway running, with the same DATA_DIR? "npm run admin -- doctor" tells more.'

function withoutPassword(url: string): string {
  return url.replace(/:[^:@/]*@/, ':…@')
}

function askedRole(args: readonly string[]): MachineRole | undefined {
  const at = args.indexOf('--role')
  if (at === -1) return undefined
  const role = machineRoles.find((name) => name === args[at + 1])
  if (role === undefined) throw new UsageError(`--role must be one of ${machineRoles.join(', ')}.`)
  return role
}

function help(): string {
  const lines = [...commands.values()].map(({ usage, summary }) => `  ${usage}\n      ${summary}`)
  return `Operates Dropway beside the running stack, with the same environment.

  npm run -s admin -- <command>

${lines.join('\n')}
${PLANS_USAGE}
${SERVICE_USAGE}  doctor [--json] [--role all|control|edge]
      checks this machine's part of the service and what it stands on, and says how to mend what is wrong
`
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`${describe(error)}\n`)
  process.exitCode = 1
}

function describe(error: unknown): string {
  if (error instanceof UsageError) return error.message
  if (error instanceof ConfigError || error instanceof ApiError) return error.message
  if (String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS')) return (error as Error).message
  return (error as Error).stack ?? String(error)
}
