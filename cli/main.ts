/** The command line: finds the command, reads its options, runs it, and turns whatever happens into an exit code. */
import { parseArgs } from 'node:util'
import { nearestName } from '../shared/values/nearest-name.ts'
import { createApiClient } from './service/api-client.ts'
import { createAuthentication } from './service/sign-in/authentication.ts'
import type { Arguments, Command, Context, LocalContext, OptionSpecs } from './terminal/command.ts'
import { commands } from './terminal/commands.ts'
import { createCredentialStore } from './service/sign-in/credentials.ts'
import { CliError, exitCodes, INTERRUPTED, noService, usageError, type ExitCode } from './terminal/failure.ts'
import { commandHelp, overview } from './terminal/help.ts'
import { createHttpClient } from './service/http-client.ts'
import type { Failure } from './terminal/json-output.ts'
import { createOAuth } from './service/sign-in/oauth.ts'
import { atOnce, createPatientRetry, type Retry } from './service/retry.ts'
import { readSettings } from './service/settings.ts'
import { createTerminal, type Streams, type Terminal } from './terminal/terminal.ts'
import { unknownWord } from './terminal/unknown-word.ts'
import { packageVersion } from './terminal/version.ts'

/** What the client has of its process; a test hands over its own. */
interface Process extends Streams {
  readonly argv: readonly string[]
  cwd(): string
}

export async function main(process: Process): Promise<ExitCode> {
  const words = process.argv.slice(2)
  // `dropway list | head`: the reader has gone, which is no failure of ours.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
  const terminal = createTerminal(process, words.includes('--json'))
  const forget = tellInterruption(terminal)
  try {
    await dispatch(process, terminal, words)
    return exitCodes.ok
  } catch (error) {
    return tell(terminal, error)
  } finally {
    forget()
  }
}

/** Ctrl-C ends at once, with what the command has to say about it. Returns how to stop listening for it. */
function tellInterruption(terminal: Terminal): () => void {
  const onSignal = (): void => {
    if (terminal.animated) terminal.stderr.write('\r\u001b[K')
    const words = terminal.interruptWords()
    if (words !== undefined) terminal.stderr.write(`${words}\n`)
    const failure: Failure = { error: 'interrupted', detail: words ?? 'Interrupted.' }
    terminal.data(failure)
    process.exit(INTERRUPTED)
  }
  process.once('SIGINT', onSignal)
  return () => process.off('SIGINT', onSignal)
}

async function dispatch(process: Process, terminal: Terminal, words: readonly string[]): Promise<void> {
  const [name, ...rest] = words
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') return help(terminal, rest[0])
  if (name === '--version' || name === '-v') return (terminal.stdout.write(`${packageVersion()}\n`), undefined)
  const command = find(name)
  const args = readArguments(command, rest)
  if (args.flag('help')) return help(terminal, command.name)
  const local: LocalContext = { cwd: process.cwd(), settings: readSettings(process.env), terminal }
  if (command.kind === 'local') return command.run(local, args)
  const context = createContext(local, command, args)
  try {
    await command.run(context, args)
  } finally {
    context.http.close()
  }
}

function find(name: string): Command {
  const command = commands.find((candidate) => candidate.name === name)
  if (command !== undefined) return command
  const meant = nearestName(
    name,
    commands.map((candidate) => candidate.name),
  )
  throw usageError(
    `There is no command "${name}". ${meant === undefined ? '"dropway help" lists them.' : `Did you mean "${meant}"?`}`,
  )
}

function help(terminal: Terminal, name: string | undefined): void {
  const lines =
    name === undefined || name.startsWith('-') ? overview(commands, packageVersion()) : commandHelp(find(name))
  for (const line of lines) terminal.print(line)
  terminal.data({ help: lines.join('\n') })
}

function readArguments(command: Command, words: readonly string[]): Arguments {
  const options: OptionSpecs = { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } }
  for (const [name, { type, multiple = false }] of Object.entries(command.options ?? {}))
    options[name] = { type, multiple }
  const { values, positionals } = parse(command, [...words], options)
  if (positionals.length > command.maxPositionals)
    throw usageError(`Too many arguments. Usage: dropway ${command.usage}`)
  return {
    positionals,
    text: (name) => (typeof values[name] === 'string' ? values[name] : undefined),
    texts: (name) => (Array.isArray(values[name]) ? values[name].filter((value) => typeof value === 'string') : []),
    flag: (name) => values[name] === true,
  }
}

function parse(command: Command, args: string[], options: OptionSpecs) {
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    const { message } = error as Error
    const unknown = /^Unknown option '--([^']+)'/.exec(message)?.[1]
    if (unknown !== undefined && nearestName(unknown, Object.keys(options)) !== undefined)
      throw unknownWord(
        'option',
        `--${unknown}`,
        Object.keys(options).map((name) => `--${name}`),
        '',
      )
    throw usageError(`${message.split('. ', 1)[0]}. Usage: dropway ${command.usage}`)
  }
}

function createContext(local: LocalContext, command: Extract<Command, { kind: 'service' }>, args: Arguments): Context {
  const { settings, terminal } = local
  const url = command.addressFrom?.(args) ?? settings.url
  if (url === undefined) throw noService()
  const http = createHttpClient({
    caFile: settings.caFileFor(url),
    userAgent: `dropway-cli/${packageVersion()}`,
    proxyFor: settings.proxyFor,
  })
  const oauth = createOAuth({ origin: url, http })
  const credentials = createCredentialStore(settings.configDir)
  const authentication = createAuthentication({ origin: url, token: settings.token, store: credentials, oauth })
  const retry = command.patient ? patientFor(terminal) : atOnce
  const api = createApiClient({ url, http, authentication, retry })
  return { ...local, url, http, api, oauth, credentials, authentication }
}

function patientFor(terminal: Terminal): Retry {
  const clear = terminal.animated ? '\r\u001b[K' : ''
  return createPatientRetry({
    onTrouble: (message) => terminal.note(`${clear}${message}`),
    onRecovery: () => terminal.note(`${clear}The connection is back.`),
  })
}

/** One sentence on stderr; with `--json` the same as an error document on stdout. */
function tell(terminal: Terminal, error: unknown): ExitCode {
  const { message, code, exitCode } = error instanceof CliError ? error : unexpected(error)
  terminal.stderr.write(`${message}\n`)
  const failure: Failure = { error: code, detail: message }
  terminal.data(failure)
  return exitCode
}

function unexpected(error: unknown): { message: string; code: string; exitCode: ExitCode } {
  const message = error instanceof Error ? error.message : String(error)
  return { message: `Failed: ${message}`, code: 'failed', exitCode: exitCodes.failed }
}
