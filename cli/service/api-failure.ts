/** The service's refusal, as the error that the user sees. */
import { CliError, exitCodes, type ExitCode } from '../terminal/failure.ts'
import { plain } from '../terminal/terminal.ts'

export class ApiFailure extends CliError {
  readonly status: number
  /** When the service says how long to wait. */
  readonly retryAfterMs: number | undefined
  constructor(status: number, code: string, detail: string, retryAfterMs?: number) {
    super(detail, exitCodeOf(status, code), code)
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

function exitCodeOf(status: number, code: string): ExitCode {
  if (status === 401) return exitCodes.notSignedIn
  if (code === 'plan_limit' || code === 'plan_feature' || code === 'upload_too_large') return exitCodes.planLimit
  return status >= 500 ? exitCodes.unreachable : exitCodes.failed
}

export function toFailure(status: number, text: string, retryAfter?: string): ApiFailure {
  const body = parseObject(text)
  const code = typeof body['error'] === 'string' ? plain(body['error']) : `http_${status}`
  const detail = typeof body['detail'] === 'string' ? plain(body['detail']) : `The service answered ${status}.`
  const id = typeof body['id'] === 'string' ? ` (${plain(body['id'])})` : ''
  const hint = status === 401 ? ' Run "dropway login", or set DROPWAY_TOKEN to a valid API token.' : ''
  const seconds = Number(retryAfter)
  return new ApiFailure(status, code, `${detail}${id}${hint}`, seconds > 0 ? seconds * 1000 : undefined)
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
