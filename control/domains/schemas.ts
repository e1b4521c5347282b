import { z } from 'zod'
import { domainReasons, domainStates } from './rules.ts'

const record = z.object({ type: z.enum(['CNAME', 'ALIAS', 'A', 'AAAA', 'TXT']), name: z.string(), value: z.string() })

const single = z.object({
  domain: z.string(),
  state: z.enum(domainStates),
  reason: z.enum(domainReasons).nullable(),
  /** The reason in words, and what to do. */
  detail: z.string(),
  /** What to set next at the DNS provider. */
  record,
  /** Every record that makes the domain work. */
  records: z.array(record),
  checked_at: z.string().nullable(),
  next_check_at: z.string().nullable(),
  certificate: z.object({ not_after: z.string() }).nullable(),
  /** Set on the half of an apex/www pair that redirects. */
  redirect_to: z.string().nullable(),
  created_at: z.string(),
})

export const domainSchema = single.extend({
  /** The other half of an apex/www pair. */
  pair: single.nullable(),
})

export const addDomainSchema = z.strictObject({
  domain: z.string().min(1).max(253),
  /** False: leave the www (or apex) counterpart alone. */
  pair: z.boolean().optional(),
})

export type SingleDomainView = z.infer<typeof single>
export type DomainView = z.infer<typeof domainSchema>
export type AddDomain = z.infer<typeof addDomainSchema>
