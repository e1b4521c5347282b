/** What `doctor` found: one thing that was asked, how it is, and what to do about it. */
import type { ControlConfig } from '../../../ground/config.ts'

export interface Finding {
  readonly check: string
  readonly state: 'ok' | 'warning' | 'problem'
  readonly detail: string
  /** What to do about it. */
  readonly mend?: string
}

export type Check = (config: ControlConfig) => Promise<Finding[]> | Finding[]

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
