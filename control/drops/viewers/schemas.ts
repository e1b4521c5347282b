/** Viewers and guest links as the API shows them. */
import { z } from 'zod'
import { described } from '../../ground/http/operations/described.ts'
import { MAX_NAME_CHARS } from '../../../shared/contracts/limits.ts'
import {
  accessUntilSchema,
  expiresInSchema,
  MAX_NAMED_AT_ONCE,
  textOfViewer,
  VIEWER_ROLES,
  viewerInputSchema,
} from './access.ts'
import type { GuestLinkRow, NewGuestLink, ViewerRow } from './lists.ts'

const SAMPLE_TIME = '2026-11-15T09:00:00.000Z'
const time = (description: string) => described(z.iso.datetime(), description, SAMPLE_TIME)
const timeOrNull = (description: string) => described(z.iso.datetime().nullable(), description, SAMPLE_TIME)
const role = described(z.enum(VIEWER_ROLES), 'What they may do.', 'view')
/** No drop is opened by more; a mistyped number is refused. */
const MAX_USES = 1_000_000

export const viewerSchema = z
  .object({
    id: described(z.string(), 'Id of the viewer.', 'vw_1mk3v8s2kd'),
    kind: described(z.enum(['email', 'domain']), 'A person, or everyone at a domain.', 'email'),
    value: described(z.string(), 'The address or the domain.', 'ada@example.com'),
    role,
    created_at: time('When it was added.'),
    invited_at: timeOrNull('When a mail said so; null without one.'),
    first_opened_at: timeOrNull('When they first looked; null: not opened yet.'),
    last_opened_at: timeOrNull('When they last looked.'),
    visits: described(z.int(), 'Pages that they opened.', 3),
  })
  .meta({ id: 'Viewer' })
export type ApiViewer = z.infer<typeof viewerSchema>

export const viewersSchema = z.object({ viewers: described(z.array(viewerSchema), 'Who may see the drop.') })

export const addViewersSchema = z.strictObject({
  viewers: described(
    z.array(viewerInputSchema).min(1).max(MAX_NAMED_AT_ONCE),
    'Whom to add; whole or not at all. Who is there already stays.',
    [{ email: 'ada@example.com' }],
  ),
  role: role.optional(),
  invite: described(z.boolean(), 'Mails those who are new.').default(true),
})

export const guestLinkSchema = z
  .object({
    id: described(z.string(), 'Id of the guest link.', 'gl_1mk3v8s2kd'),
    name: described(z.string(), 'Your label for it.', 'For the printer'),
    url: described(z.string(), 'The link itself: shown once, when it is made.').optional(),
    role,
    expires_at: timeOrNull('When it ends, with everyone who came in by it; null for never.'),
    max_uses: described(z.int().nullable(), 'How many browsers it admits; null for any number.', 10),
    uses: described(z.int(), 'How many it has admitted.', 2),
    last_opened_at: timeOrNull('When someone last looked by it.'),
    created_at: time('When it was made.'),
  })
  .meta({ id: 'GuestLink' })
export type ApiGuestLink = z.infer<typeof guestLinkSchema>

export const guestLinksSchema = z.object({
  guest_links: described(z.array(guestLinkSchema), 'The links that open the drop.'),
})

export const addGuestLinkSchema = z.strictObject({
  name: described(z.string().max(MAX_NAME_CHARS), 'Your label for it.', 'For the printer').optional(),
  role: role.optional(),
  expires_at: accessUntilSchema.optional(),
  expires_in: expiresInSchema.optional(),
  max_uses: described(z.int().min(1).max(MAX_USES).nullable(), 'How many browsers it admits.', 10).optional(),
})

const iso = (date: Date | null): string | null => date?.toISOString() ?? null

export function showViewer(row: ViewerRow): ApiViewer {
  const { id, kind, value } = row
  return {
    id,
    kind,
    value,
    role: row.role,
    created_at: row.created_at.toISOString(),
    invited_at: iso(row.invited_at),
    first_opened_at: iso(row.first_opened_at),
    last_opened_at: iso(row.last_opened_at),
    visits: row.visits,
  }
}

export function showGuestLink(row: GuestLinkRow | NewGuestLink): ApiGuestLink {
  return {
    id: row.id,
    name: row.name,
    ...('url' in row ? { url: row.url } : {}),
    role: row.role,
    expires_at: iso(row.expires_at),
    max_uses: row.max_uses,
    uses: row.uses,
    last_opened_at: iso(row.last_opened_at),
    created_at: row.created_at.toISOString(),
  }
}

/** As people write it: an address, or `@` and a domain. */
export function nameViewer({ kind, value }: Pick<ApiViewer, 'kind' | 'value'>): string {
  return textOfViewer({ kind, value })
}
