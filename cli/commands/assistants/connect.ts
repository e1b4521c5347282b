/** `connect`: tells an assistant on this machine where the service is. */
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { confirmed } from '../../content/chosen-drop.ts'
import { yesOption, type Command } from '../../terminal/command.ts'
import { CliError, exitCodes, noService, usageError } from '../../terminal/failure.ts'
import { assistantClients, NotReadable, type AssistantClient } from './clients.ts'

const NAMES = Object.keys(assistantClients)

export const connect: Command = {
  kind: 'local',
  name: 'connect',
  summary: 'Connect an assistant on this machine to the service',
  usage: `connect ${NAMES.join('|')} [--print] [--yes]`,
  options: {
    print: { type: 'boolean', help: 'Show the file and what it would hold; write nothing' },
    yes: yesOption,
  },
  details: [
    'Adds an entry to the settings of the assistant and keeps everything else that is there.',
    'The assistant asks you to sign in when it first uses it; no token is written.',
  ],
  words: NAMES,
  maxPositionals: 1,
  async run({ settings, terminal }, args) {
    const client = clientOf(args.positionals[0])
    if (settings.url === undefined) throw noService()
    const address = `${settings.url}/mcp`
    const file = client.file({ home: settings.home, platform: process.platform, appData: process.env['APPDATA'] })
    const before = await textOf(file)
    const after = written(client, file, before, address)
    if (args.flag('print')) {
      terminal.note(file)
      terminal.print(after.trimEnd())
      return terminal.data({ client: args.positionals[0], file, address, content: after, written: false })
    }
    if (after !== before) {
      const what = before === '' ? `Write ${file}` : `Add an entry to ${file}`
      await confirmed({ terminal }, args, `${what}, so that ${client.title} finds ${address}?`)
      await replace(file, after)
    }
    terminal.note(after === before ? `${client.title} is connected already.` : `${client.title} is connected.`)
    terminal.note(client.next)
    terminal.print(file)
    terminal.data({ client: args.positionals[0], file, address, written: after !== before })
  },
}

function clientOf(name: string | undefined): AssistantClient {
  const client = name !== undefined && Object.hasOwn(assistantClients, name) ? assistantClients[name] : undefined
  if (client === undefined) throw usageError(`Say which assistant to connect: ${NAMES.join(', ')}.`)
  return client
}

function written(client: AssistantClient, file: string, before: string, address: string): string {
  try {
    return client.write(before, address)
  } catch (error) {
    if (!(error instanceof NotReadable)) throw error
    throw new CliError(
      `${file} was left alone, because ${error.message}. Add this to it yourself:\n${client.write('', address).trimEnd()}`,
      exitCodes.failed,
      'file_unreadable',
    )
  }
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw new CliError(
      `${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`,
      exitCodes.failed,
      'file_unreadable',
    )
  }
}

/** Whole or not at all, with the permissions that the file had: such files hold secrets of other servers. */
async function replace(file: string, text: string): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true })
  const mode = await stat(file).then(
    (known) => known.mode & 0o777,
    () => 0o600,
  )
  const temporary = `${file}.${process.pid}`
  await writeFile(temporary, text, { mode })
  await rename(temporary, file)
}
