/** Who may see a drop, as its owner says it: the mode, the words of the API for it, and what a policy forbids. */
import { z } from 'zod'
import { VIEWERS_ONLY } from '../../../shared/contracts/admission.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { isHostname } from '../../../shared/http/hosts.ts'
import { parseDuration } from '../../../shared/settings/env.ts'
import { described } from '../../ground/http/operations/described.ts'
import { parseEmail } from '../../ground/mail/address.ts'
import type { VisibilityPolicy } from '../../people/organisations/rules.ts'

export const ACCESS_MODES = ['public', 'password', 'viewers'] as const
export type AccessMode = (typeof ACCESS_MODES)[number]

export const VIEWER_ROLES = ['view', 'comment'] as const
export type ViewerRole = (typeof VIEWER_ROLES)[number]

export interface NamedViewer {
  readonly kind: 'email' | 'domain'
  readonly value: string
}

/** What a publish or a change says about access; what is undefined stays as it is. */
export interface WantedAccess {
  readonly mode?: AccessMode | undefined
  readonly viewers?: readonly NamedViewer[] | undefined
  readonly guestLink?: boolean | undefined
  /** Whether new viewers get a mail. */
  readonly invite?: boolean | undefined
  readonly until?: Date | null | undefined
}

/** Viewers of one call; a table of 500 viewers comes in five. */
export const MAX_NAMED_AT_ONCE = 100
/** `36500d`: nobody means more, and a date has an end. */
const MAX_DURATION_MS = 3_153_600_000_000

export function accessModeOf({ password_hash }: { readonly password_hash: string | null }): AccessMode {
  if (password_hash === null) return 'public'
  return password_hash === VIEWERS_ONLY ? 'viewers' : 'password'
}

/** Throws `policy` where the organisation forbids the mode. */
export function requireAllowed(policy: VisibilityPolicy, mode: AccessMode): void {
  if (policy === 'no_public' && mode !== 'viewers') throw errors.policy()
}

/** The mode of a drop that is made, or published for the first time, without a word about it. */
export function defaultMode(policy: VisibilityPolicy): AccessMode {
  return policy === 'open' ? 'public' : 'viewers'
}

/** `7d` from now; throws for what is no duration. */
export function momentAfter(text: string, now: number): Date {
  const ms = parseDuration(text)
  if (ms === undefined || ms <= 0 || ms > MAX_DURATION_MS)
    throw errors.invalidRequest(`expires_in: "${text.slice(0, 40)}" is no duration such as 12h or 7d.`)
  return new Date(now + ms)
}

const DOMAIN = 'domain: send a name such as example.com'

/** Lower case; throws for what is neither. Names of countries alone would let in half a world. */
export function namedViewer(viewer: ViewerInput): NamedViewer {
  if ('email' in viewer) return { kind: 'email', value: parseEmail(viewer.email) }
  const value = viewer.domain.trim().toLowerCase().replace(/^@/, '')
  if (value.length > 253 || !value.includes('.') || !isHostname(value)) throw errors.invalidRequest(DOMAIN)
  return { kind: 'domain', value }
}

/** `ada@example.com`, or `@example.com` and `example.com` for everyone there: as forms and commands write it. */
export function viewerOfText(text: string): NamedViewer {
  const given = text.trim()
  return namedViewer(given.lastIndexOf('@') > 0 ? { email: given } : { domain: given })
}

export function viewersOfText(text: string): NamedViewer[] {
  const parts = text.split(/[\s,;]+/).filter((part) => part !== '')
  if (parts.length > MAX_NAMED_AT_ONCE) throw errors.invalidRequest(TOO_MANY)
  return parts.map(viewerOfText)
}

const TOO_MANY = `viewers: at most ${MAX_NAMED_AT_ONCE} at once`
const email = described(z.string().max(400), 'A person, by mail address.', 'ada@example.com')
const domain = described(z.string().max(400), 'Everyone with an address at this domain; not at its subdomains.')
export const viewerInputSchema = z.union([z.strictObject({ email }), z.strictObject({ domain })])
type ViewerInput = z.infer<typeof viewerInputSchema>

/** In JSON a viewer is an object, or a text as on a command line. */
const viewerItem = z.union([viewerInputSchema, z.string().max(400)])

export const accessModeSchema = described(
  z.enum(ACCESS_MODES),
  'Who can open it: everyone, who knows the password, or the viewers that you name.',
  'viewers',
)
/** Years of other lengths Postgres refuses, or gives back as others: `0001` comes out as 2001. */
const [FIRST_YEAR, LAST_YEAR] = [1970, 9999]

function isStorableTime(text: string): boolean {
  const year = new Date(text).getUTCFullYear()
  return year >= FIRST_YEAR && year <= LAST_YEAR
}

export const accessUntilSchema = described(
  z.iso
    .datetime({ offset: true })
    .refine(isStorableTime, `send a time of the years ${FIRST_YEAR} to ${LAST_YEAR}`)
    .nullable(),
  'When visitors meet 410; null for never.',
  '2026-12-24T18:00:00.000Z',
)
/** Without a sample: a call says one of the two. */
export const expiresInSchema = described(z.string().max(40), 'The same as a duration from now, such as 7d.')

/** What every way to publish takes, as JSON. */
export const accessFields = {
  access_mode: accessModeSchema.optional(),
  viewers: described(z.array(viewerItem).max(MAX_NAMED_AT_ONCE, TOO_MANY), 'Who may see it.', [
    { email: 'ada@example.com' },
  ]).optional(),
  guest_link: described(z.boolean(), 'Makes a guest link; the answer shows it once.', true).optional(),
  invite: described(z.boolean(), 'Mails new viewers that they may look; true unless you say false.').optional(),
  access_until: accessUntilSchema.optional(),
  expires_in: expiresInSchema.optional(),
}

/** The same as fields of a form. */
export const accessFormFields = {
  access_mode: accessModeSchema.optional(),
  viewers: described(z.string(), 'Who may see it: addresses and domains, separated by commas.').optional(),
  guest_link: described(z.enum(['true', 'false']), 'Makes a guest link; the answer shows it once.').optional(),
  invite: described(z.enum(['true', 'false']), 'Mails new viewers that they may look; true unless false.').optional(),
  access_until: described(z.string(), 'When visitors meet 410.').optional(),
  expires_in: expiresInSchema.optional(),
}

const accessSchema = z.object(accessFields)
export type AccessInput = z.infer<typeof accessSchema>

/** Throws for what contradicts itself. Naming viewers, or wanting a guest link, means that others do not see it. */
export function wantedAccess(input: AccessInput, now: number): WantedAccess | undefined {
  const { access_mode, guest_link, invite } = input
  const viewers = input.viewers?.map((viewer) =>
    typeof viewer === 'string' ? viewerOfText(viewer) : namedViewer(viewer),
  )
  const isShared = (viewers !== undefined && viewers.length > 0) || guest_link === true
  if (isShared && access_mode !== undefined && access_mode !== 'viewers')
    throw errors.invalidRequest(`viewers: only a drop with access_mode "viewers" has them, not "${access_mode}".`)
  const mode = access_mode ?? (isShared ? 'viewers' : undefined)
  const until = untilOf(input, now)
  if (mode === undefined && until === undefined) return undefined
  return { mode, viewers, guestLink: guest_link, invite, until }
}

export function untilOf(
  { access_until, expires_in }: Pick<AccessInput, 'access_until' | 'expires_in'>,
  now: number,
): Date | null | undefined {
  if (access_until !== undefined && expires_in !== undefined)
    throw errors.invalidRequest('expires_in: send either access_until or expires_in.')
  if (expires_in !== undefined) return momentAfter(expires_in, now)
  return access_until == null ? access_until : new Date(access_until)
}

const formSchema = z.object({
  access_mode: z.enum(ACCESS_MODES).optional(),
  viewers: z.string().optional(),
  guest_link: z.enum(['true', 'false']).optional(),
  invite: z.enum(['true', 'false']).optional(),
  access_until: accessUntilSchema.optional(),
  expires_in: z.string().optional(),
})

/** The fields of a form that say something about access, as the JSON of the same. */
export function accessOfForm(fields: ReadonlyMap<string, string>): AccessInput {
  const given = Object.fromEntries(Object.keys(formSchema.shape).flatMap((name) => named(name, fields.get(name))))
  const parsed = formSchema.safeParse(given)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw errors.invalidRequest(`${issue?.path.join('.')}: ${issue?.message}`)
  }
  const { viewers, guest_link, invite, ...rest } = parsed.data
  const input: AccessInput = {
    ...rest,
    ...(viewers === undefined ? {} : { viewers: viewersOfText(viewers).map(textOfViewer) }),
    ...(guest_link === undefined ? {} : { guest_link: guest_link === 'true' }),
    ...(invite === undefined ? {} : { invite: invite === 'true' }),
  }
  // Refused before content is taken in.
  wantedAccess(input, 0)
  return input
}

function named(name: string, value: string | undefined): [string, string][] {
  return value === undefined || value === '' ? [] : [[name, value]]
}

export function textOfViewer({ kind, value }: NamedViewer): string {
  return kind === 'email' ? value : `@${value}`
}
