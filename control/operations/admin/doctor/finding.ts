/** What `doctor` found: one thing that was asked, how it is, and what to do about it. */
import type { ControlConfig } from '../../../ground/config.ts'

export interface Finding {
  readonly check: string
  readonly state: 'ok' | 'warning' | 'problem'
  readonly detail: string
  /** What to do about it. */
  readonly mend?: string
}

/** What a machine of any role has. */
export type CommonConfig = Pick<
  ControlConfig,
  | 'dataDir'
  | 'redisUrl'
  | 'blobStore'
  | 'secretKey'
  | 'baseUrl'
  | 'sitesDomain'
  | 'dns01Kind'
  | 'serviceHost'
  | 'httpsPort'
  | 'httpPort'
>

export type Check<Config = CommonConfig> = (config: Config) => Promise<Finding[]> | Finding[]

export const START_IT =
  'Start Dropway with "npm start", or "npm run control" and "npm run edge" on machines of their own, with the same environment.'
export const CONNECT_TIMEOUT_MS = 2000
export const ANSWER_TIMEOUT_MS = 5000

export function messageOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return message || code || String(error)
}

export const ok = (check: string, detail: string): Finding => ({ check, state: 'ok', detail })
export const warning = (check: string, detail: string, mend: string): Finding => ({
  check,
  state: 'warning',
  detail,
  mend,
})
export const problem = (check: string, detail: string, mend: string): Finding => ({
  check,
  state: 'problem',
  detail,
  mend,
})
