import type { Command } from './command.ts'
import { usageError } from './failure.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const

export function completionCommand(commands: () => readonly Command[]): Command {
  return {
    kind: 'local',
    name: 'completion',
    summary: 'Print a completion script for your shell',
    usage: 'completion bash|zsh|fish',
    details: [
      'bash: dropway completion bash >> ~/.bashrc',
      'zsh:  dropway completion zsh >> ~/.zshrc',
      'fish: dropway completion fish > ~/.config/fish/completions/dropway.fish',
    ],
    words: SHELLS,
    maxPositionals: 1,
    async run({ terminal }, args) {
      const shell = SHELLS.find((candidate) => candidate === args.positionals[0])
      if (shell === undefined) throw usageError('Name the shell: dropway completion bash, zsh or fish.')
      const script = { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](commands())
      terminal.print(script)
      terminal.data({ shell, script })
    },
  }
}

function wordsOf(command: Command): string[] {
  return [
    ...(command.words ?? []),
    ...Object.keys(command.options ?? {}).map((name) => `--${name}`),
    '--json',
    '--help',
  ]
}

function bashScript(commands: readonly Command[]): string {
  const cases = commands.map((command) => `    ${command.name}) words="${wordsOf(command).join(' ')}" ;;`)
  return `_dropway() {
  local words
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${commands.map((command) => command.name).join(' ')}" -- "\${COMP_WORDS[1]}"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}") $(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o filenames -F _dropway dropway`
}

function zshScript(commands: readonly Command[]): string {
  const cases = commands.map((command) => `    ${command.name}) compadd -- ${wordsOf(command).join(' ')}; _files ;;`)
  return `#compdef dropway
_dropway() {
  if (( CURRENT == 2 )); then
    compadd -- ${commands.map((command) => command.name).join(' ')}
    return
  fi
  case "$words[2]" in
${cases.join('\n')}
  esac
}
compdef _dropway dropway`
}

function fishScript(commands: readonly Command[]): string {
  const lines = commands.flatMap((command) => [
    `complete -c dropway -n __fish_use_subcommand -a ${command.name} -d '${command.summary.replaceAll("'", '')}'`,
    ...(command.words ?? []).map(
      (word) => `complete -c dropway -n '__fish_seen_subcommand_from ${command.name}' -a ${word}`,
    ),
    ...Object.entries(command.options ?? {}).map(
      ([name, option]) =>
        `complete -c dropway -n '__fish_seen_subcommand_from ${command.name}' -l ${name} -d '${option.help.replaceAll("'", '')}'`,
    ),
  ])
  return lines.join('\n')
}
