/** Exit codes and the errors that carry them. Documented in README.md; scripts rely on them. */
import { plain } from './terminal.ts'

export const exitCodes = {
  ok: 0,
  /** The service refused, or something broke. */
  failed: 1,
  /** The command was typed wrongly, or there is nothing to act on. */
  usage: 2,
  /** Not signed in, or the token no longer works. */
  notSignedIn: 3,
  /** The service cannot be reached, or is out of order. */
  unreachable: 4,
  /** The plan's limits or features forbid it. */
  planLimit: 5,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** An error for people: one sentence that says what to do. */
export class CliError extends Error {
  readonly exitCode: ExitCode
  /** Machine-readable, for `--json`. */
  readonly code: string

  constructor(message: string, exitCode: ExitCode, code: string) {
    super(message)
    this.exitCode = exitCode
    this.code = code
  }
}

export function usageError(message: string): CliError {
  return new CliError(message, exitCodes.usage, 'usage')
}

export function noService(): CliError {
  return usageError(
    'No service is known yet. Sign in once with "dropway login https://<your service>", which remembers it, or set DROPWAY_URL.',
  )
}

/** What went wrong with a file of the person's, by its name: it is gone, or cannot be read. */
export function unreadable(name: string, error: unknown): CliError {
  if (error instanceof CliError) return error
  const { code, message } = error as NodeJS.ErrnoException
  return code === 'ENOENT'
    ? new CliError(
        `"${plain(name)}" is no longer there. Run the command again when the folder rests.`,
        exitCodes.failed,
        'file_gone',
      )
    : new CliError(`"${plain(name)}" cannot be read (${code ?? message}).`, exitCodes.failed, 'file_unreadable')
}

export function changedMeanwhile(name: string): CliError {
  return new CliError(
    `"${plain(name)}" changed while it was being sent. Run the command again when it rests.`,
    exitCodes.failed,
    'file_changed',
  )
}

/** Ctrl-C, as shells count it. */
export const INTERRUPTED = 130

export function notSignedIn(
  message = 'You are not signed in. Run "dropway login", or set DROPWAY_TOKEN to an API token.',
): CliError {
  return new CliError(message, exitCodes.notSignedIn, 'not_signed_in')
}
