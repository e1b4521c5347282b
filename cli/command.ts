/** What a command is, and what it is given. */
import type { ParseArgsConfig } from 'node:util'
import type { ApiClient } from './api-client.ts'
import type { CredentialStore } from './credentials.ts'
import type { HttpClient } from './http-client.ts'
import type { OAuth } from './oauth.ts'
import type { Settings } from './settings.ts'
import type { Terminal } from './terminal.ts'

export interface Context {
  readonly cwd: string
  readonly settings: Settings
  readonly terminal: Terminal
  readonly http: HttpClient
  readonly api: ApiClient
  readonly oauth: OAuth
  readonly credentials: CredentialStore
}

export type OptionSpecs = NonNullable<ParseArgsConfig['options']>

export interface Arguments {
  readonly positionals: readonly string[]
  text(name: string): string | undefined
  flag(name: string): boolean
}

export interface Command {
  readonly name: string
  readonly summary: string
  /** After `dropway `. */
  readonly usage: string
  readonly options?: Readonly<
    Record<string, { readonly type: 'string' | 'boolean'; readonly help: string; readonly value?: string }>
  >
  /** Further lines of `dropway help <name>`. */
  readonly details?: readonly string[]
  /** Words that may follow, for completion. */
  readonly words?: readonly string[]
  readonly maxPositionals: number
  run(context: Context, args: Arguments): Promise<void>
}

export const dropOption = {
  type: 'string',
  value: 'slug|id',
  help: 'The drop; else the one that .dropway.json remembers',
} as const
