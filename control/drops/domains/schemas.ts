import { MAX_HOST_CHARS } from '../../../shared/limits.ts'
import { z } from 'zod'
import { recordActions, recordTypes } from './doctor/diagnose.ts'
import { domainReasons, domainStates } from './rules.ts'

const record = z.object({
  action: z.enum(recordActions),
  /** As DNS providers want it typed: relative to the zone, `@` for the zone itself. */
  host: z.string(),
  zone: z.string(),
  /** The whole name. */
  name: z.string(),
  type: z.enum(recordTypes),
  /** What is to stand there; of a record to remove, what stands there now. */
  value: z.string(),
  /** What stands there now. */
  found: z.array(z.string()).readonly(),
})

const single = z.object({
  domain: z.string(),
  /** An international name as its owner writes it; null where that is the same. */
  unicode: z.string().nullable(),
  state: z.enum(domainStates),
  reason: z.enum(domainReasons).nullable(),
  /** The reason in words, and what to do. */
  detail: z.string(),
  /** What to set next at the DNS provider. */
  record,
  /** Everything that is missing or wrong in the zone. Setting it, and nothing else, makes the domain work. */
  records: z.array(record),
  /** One record that may stand in for the A and AAAA records, where the DNS provider offers it. */
  alternative: record.nullable(),
  /** What works, but should be looked at. */
  warnings: z.array(z.string()),
  checked_at: z.string().nullable(),
  next_check_at: z.string().nullable(),
  /** When the certificate authority is asked again, after it refused. */
  next_try_at: z.string().nullable(),
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
  domain: z.string().min(1).max(MAX_HOST_CHARS),
  /** False: leave the www (or apex) counterpart alone. */
  pair: z.boolean().optional(),
})

export type ApiSingleDomain = z.infer<typeof single>
export type ApiDomain = z.infer<typeof domainSchema>
export type AddDomain = z.infer<typeof addDomainSchema>
