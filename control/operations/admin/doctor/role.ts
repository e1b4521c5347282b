/** Which part of the service this machine runs, so that `doctor` asks for nothing that belongs elsewhere. Pure. */
import type { Env } from '../../../../shared/settings/env.ts'

export const machineRoles = ['all', 'control', 'edge'] as const
export type MachineRole = (typeof machineRoles)[number]

export interface FoundRole {
  readonly role: MachineRole
  /** Why it was taken for that. */
  readonly because: string
}

/**
 * In this order: what the operator says; a supervisor that runs here has everything; an edge has no database; a control
 * has one elsewhere; anything else is one machine for all.
 */
export function roleOf(env: Env, said: MachineRole | undefined, hasSupervisor: boolean): FoundRole {
  const has = (name: string): boolean => (env[name] ?? '').trim() !== '' || (env[`${name}_FILE`] ?? '').trim() !== ''
  if (said !== undefined) return { role: said, because: 'as --role says' }
  if (hasSupervisor) return { role: 'all', because: '"npm start" runs here' }
  if (has('CONTROL_URLS') && !has('DATABASE_URL'))
    return { role: 'edge', because: 'CONTROL_URLS is set and DATABASE_URL is not' }
  if (has('DATABASE_URL') && has('REDIS_URL'))
    return { role: 'control', because: 'DATABASE_URL and REDIS_URL are set, and no "npm start" runs here' }
  return { role: 'all', because: 'nothing says that a part runs elsewhere' }
}
