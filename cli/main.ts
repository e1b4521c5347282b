/** The command line: finds the command, reads its options, runs it, and turns whatever happens into an exit code. */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { createApiClient } from './api-client.ts'
import { createAuthentication } from './authentication.ts'
import type { Arguments, Command, Context, OptionSpecs } from './command.ts'
import { logout, whoami } from './commands/account.ts'
import { completionCommand } from './commands/completion.ts'
import { deploy } from './commands/deploy.ts'
import { domains } from './commands/domains.ts'
import { drop } from './commands/drop.ts'
import { exportAll, list, open, password, rollback, versions } from './commands/drops.ts'
import { login } from './commands/login.ts'
import { mcp } from './commands/mcp.ts'
import { createCredentialStore } from './credentials.ts'
import { CliError, exitCodes, usageError, type ExitCode } from './failure.ts'
import { commandHelp, overview } from './help.ts'
import { createHttpClient } from './http-client.ts'
import { createOAuth } from './oauth.ts'
import { readSettings } from './settings.ts'
import { createTerminal, type Terminal } from './terminal.ts'

const completion = completionCommand(() => commands)
const commands: readonly Command[] = [
  deploy,
  drop,
  list,
  open,
  versions,
  rollback,
  password,
  domains,
  exportAll,
  login,
  logout,
  whoami,
  mcp,
  completion,
]

type Process = Pick<NodeJS.Process, 'argv' | 'env' | 'stdin' | 'stdout' | 'stderr' | 'cwd'>

export async function main(process: Process): Promise<ExitCode> {
  const words = process.argv.slice(2)
  // `dropway list | head`: the reader has gone, which is no failure of ours.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
  const terminal = createTerminal(process, words.includes('--json'))
  try {
    await dispatch(process, terminal, words)
    return exitCodes.ok
  } catch (error) {
    return tell(terminal, error)
  }
}

async function dispatch(process: Process, terminal: Terminal, words: readonly string[]): Promise<void> {
  const [name, ...rest] = words
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') return help(terminal, rest[0])
  if (name === '--version' || name === '-v') return (terminal.stdout.write(`${packageVersion()}\n`), undefined)
  const command = find(name)
  const args = readArguments(command, rest)
  if (args.flag('help')) return help(terminal, command.name)
  const context = createContext(process, terminal)
  try {
    await command.run(context, args)
  } finally {
    context.http.close()
  }
}

function find(name: string): Command {
  const command = commands.find((candidate) => candidate.name === name)
  if (command === undefined) throw usageError(`There is no command "${name}". "dropway help" lists them.`)
  return command
}

function help(terminal: Terminal, name: string | undefined): void {
  const lines =
    name === undefined || name.startsWith('-') ? overview(commands, packageVersion()) : commandHelp(find(name))
  for (const line of lines) terminal.print(line)
  terminal.data({ help: lines.join('\n') })
}

function readArguments(command: Command, words: readonly string[]): Arguments {
  const options: OptionSpecs = { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } }
  for (const [name, { type }] of Object.entries(command.options ?? {})) options[name] = { type }
  const { values, positionals } = parse(command, [...words], options)
  if (positionals.length > command.maxPositionals)
    throw usageError(`Too many arguments. Usage: dropway ${command.usage}`)
  return {
    positionals,
    text: (name) => (typeof values[name] === 'string' ? values[name] : undefined),
    flag: (name) => values[name] === true,
  }
}

function parse(command: Command, args: string[], options: OptionSpecs) {
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    const [reason] = (error as Error).message.split('. ', 1)
    throw usageError(`${reason}. Usage: dropway ${command.usage}`)
  }
}

function createContext(process: Process, terminal: Terminal): Context {
  const settings = readSettings(process.env)
  const http = createHttpClient({ caFile: settings.caFile, userAgent: `dropway-cli/${packageVersion()}` })
  const oauth = createOAuth({ origin: settings.url, http })
  const credentials = createCredentialStore(settings.configDir)
  const authentication = createAuthentication({
    origin: settings.url,
    token: settings.token,
    store: credentials,
    oauth,
  })
  const api = createApiClient({ url: settings.url, http, authentication })
  return { cwd: process.cwd(), settings, terminal, http, api, oauth, credentials }
}

/** One sentence on stderr; with `--json` the same as an error document on stdout. */
function tell(terminal: Terminal, error: unknown): ExitCode {
  const { message, code, exitCode } = error instanceof CliError ? error : unexpected(error)
  terminal.stderr.write(`${message}\n`)
  terminal.data({ error: code, detail: message })
  return exitCode
}

function unexpected(error: unknown): { message: string; code: string; exitCode: ExitCode } {
  const message = error instanceof Error ? error.message : String(error)
  return { message: `Failed: ${message}`, code: 'failed', exitCode: exitCodes.failed }
}

function packageVersion(): string {
  const file = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
