import { MAX_HOST_CHARS } from '../../../shared/contracts/limits.ts'
import { z } from 'zod'
import { described } from '../../ground/http/operations/described.ts'
import { recordActions, recordTypes } from './doctor/diagnose.ts'
import { domainReasons, domainStates } from './rules.ts'

const SAMPLE_RECORD = {
  action: 'add' as const,
  host: 'www',
  zone: 'example.com',
  name: 'www.example.com',
  type: 'CNAME' as const,
  value: 'my-page.dropway.example',
  found: [],
}

const record = z
  .object({
    action: described(z.enum(recordActions), 'What to do with it.', 'add'),
    host: described(
      z.string(),
      'As DNS providers want it typed: relative to the zone, `@` for the zone itself.',
      'www',
    ),
    zone: described(z.string(), 'The domain whose records these are.', 'example.com'),
    name: described(z.string(), 'The whole name.', 'www.example.com'),
    type: described(z.enum(recordTypes), 'Kind of record.', 'CNAME'),
    value: described(
      z.string(),
      'What is to stand there; of a record to remove, what stands there now.',
      'my-page.dropway.example',
    ),
    found: described(z.array(z.string()).readonly(), 'What stands there now.', []),
  })
  .meta({ id: 'DnsRecord' })

const timeOrNull = (description: string, example: string | null) =>
  described(z.string().nullable(), description, example)

const single = z
  .object({
    domain: described(z.string(), 'The name.', 'www.example.com'),
    unicode: described(
      z.string().nullable(),
      'An international name as its owner writes it; null where that is the same.',
      null,
    ),
    state: described(z.enum(domainStates), 'How far it is.', 'awaiting_dns'),
    reason: described(z.enum(domainReasons).nullable(), 'Why it is not ready.', null),
    detail: described(z.string(), 'The reason in words, and what to do.', 'Set this record at your DNS provider.'),
    record: described(record, 'What to set next at the DNS provider.', SAMPLE_RECORD),
    records: described(
      z.array(record),
      'Everything that is missing or wrong in the zone. Setting it, and nothing else, makes the domain work.',
      [SAMPLE_RECORD],
    ),
    alternative: described(
      record.nullable(),
      'One record that may stand in for the A and AAAA records, where the DNS provider offers it.',
      null,
    ),
    warnings: described(z.array(z.string()), 'What works, but should be looked at.', []),
    checked_at: timeOrNull('When DNS was last looked at.', '2026-11-15T09:00:00.000Z'),
    next_check_at: timeOrNull('When it is looked at next.', '2026-11-15T09:00:10.000Z'),
    next_try_at: timeOrNull('When the certificate authority is asked again, after it refused.', null),
    certificate: described(z.object({ not_after: z.string() }).nullable(), 'The certificate in use.', null),
    redirect_to: described(z.string().nullable(), 'Set on the half of an apex/www pair that redirects.', null),
    created_at: described(z.string(), 'When it was added.', '2026-11-15T09:00:00.000Z'),
  })
  .meta({ id: 'SingleDomain' })

export const domainSchema = single
  .extend({
    pair: described(single.nullable(), 'The other half of an apex/www pair.', null),
  })
  .meta({ id: 'Domain' })

export const addDomainSchema = z.strictObject({
  domain: described(
    z.string().min(1).max(MAX_HOST_CHARS),
    'A name that you own; `*.docs.example.com` for every name directly below one, where the plan allows it.',
    'www.example.com',
  ),
  pair: described(z.boolean(), 'False: leave the www (or apex) counterpart alone.').optional(),
})

export type ApiSingleDomain = z.infer<typeof single>
export type ApiDomain = z.infer<typeof domainSchema>
export type AddDomain = z.infer<typeof addDomainSchema>
