/**
 * The arguments of a bench, and of a command about tests: what it may be told, what was said, and one sentence about what
 * cannot be understood.
 */
import { parseArgs } from 'node:util'

/** Nothing was done, because of how it was called. */
export const EXIT_USAGE = 2

export type Option = NumberOption | DurationOption | ListOption | TextOption | FlagOption

interface Described {
  /** A phrase for --help; it begins with a small letter and has no full stop. */
  readonly about: string
}

export interface NumberOption extends Described {
  readonly kind: 'whole' | 'number'
  readonly least: number
  readonly most: number
  /** Undefined: the caller knows better what to do without it. */
  readonly default?: number
}

/** Seconds: `30`, `30s`, `2m` or `1h`. */
export interface DurationOption extends Described {
  readonly kind: 'duration'
  readonly leastSeconds: number
  readonly mostSeconds: number
  readonly default: number
}

/** Names out of a list, with commas between them. All of them by default. */
export interface ListOption extends Described {
  readonly kind: 'list'
  readonly of: readonly string[]
}

export interface TextOption extends Described {
  readonly kind: 'text'
  /** What stands for its value in --help. */
  readonly sample: string
  readonly isRequired?: true
}

export interface FlagOption extends Described {
  readonly kind: 'flag'
}

export type Options = Readonly<Record<string, Option>>

/** What may stand alone, without an option before it. */
export interface Words extends Described {
  /** What stands for each in --help. */
  readonly sample: string
  /** Undefined: any. */
  readonly of?: readonly string[]
}

type ValueOf<One extends Option> = One extends NumberOption | DurationOption
  ? One extends { readonly default: number }
    ? number
    : number | undefined
  : One extends ListOption
    ? readonly string[]
    : One extends FlagOption
      ? boolean
      : One extends { readonly isRequired: true }
        ? string
        : string | undefined

export type ValuesOf<All extends Options> = { readonly [Name in keyof All]: ValueOf<All[Name]> }

export type Read<All extends Options> =
  | { readonly kind: 'run'; readonly values: ValuesOf<All>; readonly words: readonly string[] }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly sentence: string }

/** Reads what was said, and checks it against what may be said. `--help` wins over everything else. Pure. */
export function readArguments<All extends Options>(options: All, args: readonly string[], words?: Words): Read<All> {
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      Object.entries(options).map(([name, { kind }]) => [name, { type: kind === 'flag' ? 'boolean' : 'string' }]),
    ),
    strict: false,
    tokens: true,
  })
  const said = new Map<string, string | undefined>()
  const alone: string[] = []
  let wrong: string | undefined
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue
    if (token.kind === 'positional') {
      alone.push(token.value)
      wrong ??= whyNotAlone(token.value, words)
    } else if (token.name === 'help' || token.name === 'h') return { kind: 'help' }
    else if (!Object.hasOwn(options, token.name)) wrong ??= `There is no option ${token.rawName}`
    else if (said.has(token.name)) wrong ??= `--${token.name} is given twice`
    else said.set(token.name, token.value ?? undefined)
  }
  const values: Record<string, unknown> = {}
  for (const [name, option] of Object.entries(options)) {
    const read = said.has(name) ? readValue(option, said.get(name)) : defaultOf(option)
    if ('wrong' in read) wrong ??= `--${name} ${read.wrong}`
    else values[name] = read.value
  }
  if (wrong !== undefined) return { kind: 'wrong', sentence: `${wrong} (see --help).` }
  return { kind: 'run', values: values as ValuesOf<All>, words: alone }
}

function whyNotAlone(word: string, words: Words | undefined): string | undefined {
  if (words === undefined) return `“${word}” stands alone: every value follows an option`
  if (words.of === undefined || words.of.includes(word)) return undefined
  return `There is no ${words.sample} “${word}”: ${words.of.join(', ')}`
}

type Checked = { readonly value: unknown } | { readonly wrong: string }

function defaultOf(option: Option): Checked {
  switch (option.kind) {
    case 'whole':
    case 'number':
    case 'duration':
      return { value: option.default }
    case 'list':
      return { value: option.of }
    case 'text':
      return option.isRequired ? { wrong: 'is needed' } : { value: undefined }
    case 'flag':
      return { value: false }
    default:
      return option satisfies never
  }
}

function readValue(option: Option, text: string | undefined): Checked {
  if (option.kind === 'flag') return text === undefined ? { value: true } : { wrong: 'takes no value' }
  if (text === undefined || text === '') return { wrong: `wants ${wantedBy(option)}` }
  const value = valueIn(option, text)
  return value === undefined ? { wrong: `wants ${wantedBy(option)}, not “${text}”` } : { value }
}

function valueIn(option: Exclude<Option, FlagOption>, text: string): number | string | readonly string[] | undefined {
  switch (option.kind) {
    case 'whole':
      return /^\d+$/.test(text) ? within(Number(text), option.least, option.most) : undefined
    case 'number':
      return /^\d+(\.\d+)?$/.test(text) ? within(Number(text), option.least, option.most) : undefined
    case 'duration': {
      const [, count, unit = 's'] = /^(\d+)([smh])?$/.exec(text) ?? []
      return within(Number(count) * SECONDS[unit as keyof typeof SECONDS], option.leastSeconds, option.mostSeconds)
    }
    case 'list': {
      const names = text.split(',').map((name) => name.trim())
      return names.every((name) => option.of.includes(name)) ? names : undefined
    }
    case 'text':
      return text
    default:
      return option satisfies never
  }
}

const SECONDS = { s: 1, m: 60, h: 3600 } as const

function within(figure: number, least: number, most: number): number | undefined {
  return figure >= least && figure <= most ? figure : undefined
}

function wantedBy(option: Exclude<Option, FlagOption>): string {
  switch (option.kind) {
    case 'whole':
      return `a whole number from ${option.least} to ${option.most}`
    case 'number':
      return `a number from ${option.least} to ${option.most}`
    case 'duration':
      return `a time like 30s or 2m, from ${option.leastSeconds} to ${option.mostSeconds} seconds`
    case 'list':
      return `names out of ${option.of.join(', ')} with commas between them`
    case 'text':
      return option.sample
    default:
      return option satisfies never
  }
}

/** The lines of --help about the options, in columns. */
export function describeOptions(options: Options): string {
  const rows = Object.entries(options).map(
    ([name, option]) => [`--${name}${sampleOf(option)}`, aboutOf(option)] as const,
  )
  const width = Math.max(...rows.map(([left]) => left.length)) + 2
  return [...rows, ['--help', 'this text'] as const]
    .map(([left, right]) => `  ${left.padEnd(width)}${right}`)
    .join('\n')
}

function sampleOf(option: Option): string {
  switch (option.kind) {
    case 'whole':
    case 'number':
    case 'duration':
      return ` <${option.kind === 'duration' ? 'time' : 'number'}>`
    case 'list':
      return ' <names>'
    case 'text':
      return ` <${option.sample}>`
    case 'flag':
      return ''
    default:
      return option satisfies never
  }
}

function aboutOf(option: Option): string {
  switch (option.kind) {
    case 'whole':
    case 'number':
      return option.default === undefined ? option.about : `${option.about} (${option.default})`
    case 'duration':
      return `${option.about} (${option.default}s)`
    case 'list':
      return `${option.about} (all): ${option.of.join(', ')}`
    case 'text':
      return `${option.about}${option.isRequired ? ' (needed)' : ''}`
    case 'flag':
      return option.about
    default:
      return option satisfies never
  }
}

/** How a command about tests was called; one that cannot be understood, or asks for help, ends here. */
export function argumentsOf<All extends Options>(
  usage: { readonly command: string; readonly does: string; readonly words?: Words },
  options: All,
): { readonly values: ValuesOf<All>; readonly words: readonly string[] } {
  const { command, does, words } = usage
  const read = readArguments(options, process.argv.slice(2), words)
  if (read.kind === 'run') return read
  if (read.kind === 'wrong') {
    process.stderr.write(`${read.sentence}\n`)
    process.exit(EXIT_USAGE)
  }
  const ofWords = words === undefined ? [] : [`${words.sample}: ${words.about}`]
  const call = `npm run ${command} -- ${words === undefined ? '' : `[<${words.sample}> …] `}[options]`
  process.stdout.write(`${[call, does, ...ofWords, describeOptions(options)].join('\n\n')}\n`)
  process.exit(0)
}
