/** What `dropway help` says. */
import type { Command } from './command.ts'
import { table } from './terminal.ts'

export function overview(commands: readonly Command[], version: string): string[] {
  return [
    `dropway ${version}: publishes folders and pages at HTTPS addresses.`,
    '',
    'Usage: dropway <command> [options]',
    '',
    ...table(commands.map((command) => [`  ${command.name}`, command.summary])),
    '',
    'With every command: --json (one JSON document on stdout), --help.',
    '',
    'Environment:',
    ...table([
      ['  DROPWAY_TOKEN', 'An API token, instead of "dropway login"'],
      ['  DROPWAY_URL', 'The service, instead of the one that "dropway login <address>" remembered'],
      ['  DROPWAY_CA_FILE', 'PEM file of a certificate authority to trust as well'],
    ]),
    '',
    'Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 not signed in, 4 service unreachable, 5 plan limit.',
  ]
}

export function commandHelp(command: Command): string[] {
  const options = Object.entries(command.options ?? {}).map(([name, option]) => [
    `  --${name}${option.value === undefined ? '' : ` <${option.value}>`}`,
    option.help,
  ])
  return [
    `${command.summary}.`,
    '',
    `Usage: dropway ${command.usage}`,
    '',
    ...table([...options, ['  --json', 'One JSON document on stdout'], ['  --help', 'This text']]),
    ...(command.details === undefined ? [] : ['', ...command.details]),
  ]
}
