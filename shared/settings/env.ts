/**
 * Reads settings from the environment once. Each reader notes its problem instead of throwing,
 * so that a wrong set-up is reported whole, in one message.
 */
import { accessSync, constants, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../running/clock.ts'

export type Env = Readonly<Record<string, string | undefined>>

/** EX_CONFIG of sysexits.h: a process ends with it when the next start would end alike until the operator has acted. */
export const OPERATOR_NEEDED = 78

export class ConfigError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(`The settings need attention:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`)
    this.problems = problems
  }
}

const DURATION_UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
}

/** `3s`, `12h`, `7d` → milliseconds; undefined when it is not a duration. */
export function parseDuration(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim()) ?? []
  const unitMs = DURATION_UNITS_MS[unit]
  return unitMs ? Math.round(Number(amount) * unitMs) : undefined
}

export class EnvReader {
  readonly #env: Env
  readonly #problems: string[] = []

  constructor(env: Env) {
    this.#env = env
  }

  optional(name: string): string | undefined {
    const value = this.#env[name]?.trim() ?? ''
    return value === '' ? this.#fromFile(name) : value
  }

  /** `<NAME>_FILE` names a file that holds the value: how containers are given secrets. */
  #fromFile(name: string): string | undefined {
    const file = this.#env[`${name}_FILE`]?.trim() ?? ''
    if (file === '') return undefined
    try {
      const value = readFileSync(file, 'utf8').trim()
      return value === '' ? undefined : value
    } catch {
      return this.problem(`${name}_FILE must be a file that can be read, not "${file}"`, undefined)
    }
  }

  text(name: string, fallback: string): string {
    return this.optional(name) ?? fallback
  }

  /** A TCP port; 0 lets the system choose. */
  port(name: string, fallback: number): number {
    return this.integer(name, fallback, 0, 65535)
  }

  integer(name: string, fallback: number, min: number, max: number): number {
    const raw = this.optional(name)
    if (raw === undefined) return fallback
    const value = Number(raw)
    if (Number.isInteger(value) && value >= min && value <= max) return value
    return this.problem(`${name} must be a whole number from ${min} to ${max}, not "${raw}"`, fallback)
  }

  /** A share between 0 and 1. */
  ratio(name: string, fallback: number): number {
    const raw = this.optional(name)
    if (raw === undefined) return fallback
    const value = Number(raw)
    if (value >= 0 && value <= 1) return value
    return this.problem(`${name} must be a number from 0 to 1, not "${raw}"`, fallback)
  }

  durationMs(name: string, fallback: string): number {
    const raw = this.text(name, fallback)
    const value = parseDuration(raw)
    if (value !== undefined) return value
    return this.problem(`${name} must be a duration such as 30s, 12h or 7d, not "${raw}"`, parseDuration(fallback) ?? 0)
  }

  /** Several of them: `7d,1d`. */
  durationsMs(name: string, fallback: string): readonly number[] {
    const raw = this.text(name, fallback)
    const values = raw.split(',').map(parseDuration)
    if (values.every((value) => value !== undefined)) return values
    return this.problem(`${name} must be durations such as 7d,1d, not "${raw}"`, [])
  }

  oneOf<const Choice extends string>(name: string, choices: readonly Choice[], fallback: Choice): Choice {
    const raw = this.text(name, fallback)
    const choice = choices.find((candidate) => candidate === raw)
    if (choice !== undefined) return choice
    return this.problem(`${name} must be one of ${choices.join(', ')}, not "${raw}"`, fallback)
  }

  /** An origin such as https://dropway.example: no path, query or trailing slash. */
  origin(name: string, fallback: string): string {
    const raw = this.text(name, fallback)
    const url = URL.parse(raw)
    if (url && /^https?:$/.test(url.protocol) && url.pathname === '/' && !url.search && !url.hash) return url.origin
    return this.problem(`${name} must be an origin such as https://dropway.example, not "${raw}"`, fallback)
  }

  /** An address with one of these schemes. The message does not repeat it: it may hold a password. */
  url(name: string, schemes: readonly string[]): string | undefined {
    const raw = this.optional(name)
    if (raw === undefined || schemes.some((scheme) => raw.startsWith(`${scheme}://`) && raw.length > scheme.length + 3))
      return raw
    return this.problem(`${name} must begin with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`, undefined)
  }

  /** Path of a file that this process can read. */
  file(name: string): string | undefined {
    const raw = this.optional(name)
    if (raw === undefined) return undefined
    try {
      accessSync(raw, constants.R_OK)
      return raw
    } catch {
      return this.problem(`${name} must be a file that can be read, not "${raw}"`, undefined)
    }
  }

  /** An IP address with or without a port: `127.0.0.1:53`, `[::1]:53`. Node resolves no names with the name of a resolver. */
  ipAndPort(name: string): string | undefined {
    const raw = this.optional(name)
    if (raw === undefined || isIP(raw) !== 0) return raw
    const [, inBrackets, plain = '', port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(raw) ?? []
    if (isIP(inBrackets ?? plain) !== 0 && Number(port) <= 65_535) return raw
    return this.problem(`${name} must be an address such as 127.0.0.1:53, not "${raw}"`, undefined)
  }

  list(name: string): string[] {
    return (this.optional(name) ?? '')
      .split(',')
      .map((entry) => entry.trim())
      .filter((entry) => entry !== '')
  }

  problem<Value>(message: string, fallback: Value): Value {
    this.#problems.push(message)
    return fallback
  }

  /** Call last: throws one error that lists everything that was wrong. */
  finish<Config extends object>(config: Config): Readonly<Config> {
    if (this.#problems.length > 0) throw new ConfigError(this.#problems)
    return Object.freeze(config)
  }
}
