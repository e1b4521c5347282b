/** What a command is, and what it is given. */
import type { ParseArgsConfig } from 'node:util'
import type { ApiClient } from '../service/api-client.ts'
import type { Authentication } from '../service/sign-in/authentication.ts'
import type { CredentialStore } from '../service/sign-in/credentials.ts'
import type { HttpClient } from '../service/http-client.ts'
import type { OAuth } from '../service/sign-in/oauth.ts'
import type { Settings } from '../service/settings.ts'
import type { Terminal } from './terminal.ts'

/** What a command has that needs no service. */
export interface LocalContext {
  readonly cwd: string
  readonly settings: Settings
  readonly terminal: Terminal
}

export interface Context extends LocalContext {
  /** Origin of the service. */
  readonly url: string
  readonly http: HttpClient
  readonly api: ApiClient
  readonly oauth: OAuth
  readonly credentials: CredentialStore
  readonly authentication: Authentication
}

export type OptionSpecs = NonNullable<ParseArgsConfig['options']>

export interface Arguments {
  readonly positionals: readonly string[]
  text(name: string): string | undefined
  /** All values of an option that may be given several times. */
  texts(name: string): readonly string[]
  flag(name: string): boolean
}

interface CommandOption {
  readonly type: 'string' | 'boolean'
  readonly help: string
  readonly value?: string
  readonly multiple?: boolean
}

interface CommandBase {
  readonly name: string
  readonly summary: string
  /** What follows `dropway ` on the command line. */
  readonly usage: string
  readonly options?: Readonly<Record<string, CommandOption>>
  /** Further lines of `dropway help <name>`. */
  readonly details?: readonly string[]
  /** Words that may follow, for completion. */
  readonly words?: readonly string[]
  readonly maxPositionals: number
}

export type Command = CommandBase &
  (
    | { readonly kind: 'local'; run(context: LocalContext, args: Arguments): Promise<void> }
    | {
        readonly kind: 'service'
        /** The command waits out a broken line or a restarting service for two minutes. */
        readonly patient?: boolean
        /** The service, when the command line names it. */
        addressFrom?(args: Arguments): string | undefined
        run(context: Context, args: Arguments): Promise<void>
      }
  )

export const dropOption = {
  type: 'string',
  value: 'slug|id',
  help: 'The drop; else the one that .dropway.json remembers',
} as const

export const yesOption = { type: 'boolean', help: 'Do not ask; the answer is yes' } as const
