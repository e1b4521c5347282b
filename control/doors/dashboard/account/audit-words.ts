/** The audit log as a person tells it: who did what to which drop, without ids. The API has every fact. */
import { plans, type PlanName } from '../../../ground/terms/plans.ts'
import type { AuditAction } from '../../../people/audit/audit.ts'

export interface Deed {
  readonly action: string
  readonly subject: string
  readonly detail: Readonly<Record<string, unknown>>
}

/** What a drop is called, by its id; undefined when it is gone. */
export type DropNames = ReadonlyMap<string, string>

interface Facts {
  readonly subject: string
  /** The drop that it was done to. */
  readonly drop: string
  /** A fact of the entry as text; empty when it has none. */
  fact(name: string): string
}

const DEEDS: Readonly<Record<AuditAction, (facts: Facts) => string>> = {
  'account.created': () => 'Created the account',
  'account.deleted': () => 'Deleted the account',
  'account.signed_in': () => 'Signed in',
  'account.email_verified': () => 'Verified the e-mail address',
  'account.email_changed': ({ fact }) => `Changed the e-mail address${after(' from ', fact('from'))}`,
  'account.password_changed': () => 'Changed the password',
  'account.password_reset': () => 'Reset the password by mail',
  'account.access_ended': ({ fact }) =>
    fact('by') === 'successor'
      ? 'Ended what the former person held: the sign-in provider gave the address to another'
      : 'Ended every way into the account',
  'account.readmitted': () => 'Let the account in again that the sign-in provider had put out',
  'account.passkey_added': ({ fact }) => `Added the passkey ${quoted(fact('name'))}`,
  'account.passkey_removed': ({ fact }) => `Removed the passkey ${quoted(fact('name'))}`,
  'account.second_factor_added': () => 'Turned on the second factor',
  'account.second_factor_removed': () => 'Turned off the second factor',
  'account.recovery_codes_renewed': () => 'Made new recovery codes',
  'account.recovery_requested': () => 'Asked to sign in without the second factor, a day later',
  'account.recovery_stopped': () => 'Kept the second factor that was said to be lost',
  'token.created': ({ fact }) => `Created the API token ${quoted(fact('name'))}`,
  'token.revoked': ({ fact }) => `Revoked the API token ${quoted(fact('name'))}`,
  'organisation.created': ({ fact }) => `Created the organisation ${quoted(fact('name'))}`,
  'organisation.renamed': ({ fact }) =>
    `Renamed the organisation from ${quoted(fact('from'))} to ${quoted(fact('to'))}`,
  'organisation.policy_changed': ({ fact }) => `Changed who may see drops to ${quoted(fact('to'))}`,
  'organisation.second_factor_required': ({ fact }) =>
    fact('required') === 'yes' ? 'Asks members for a second factor' : 'No longer asks members for a second factor',
  'organisation.deleted': ({ fact }) => `Deleted the organisation ${quoted(fact('name'))}`,
  'organisation.transferred': ({ subject }) => `Made ${subject} the owner`,
  'member.invited': ({ subject, fact }) => `Invited ${subject}${after(' as ', fact('role'))}`,
  'member.invitation_revoked': ({ subject }) => `Withdrew the invitation of ${subject}`,
  'member.joined': ({ fact }) => `Joined${after(' as ', fact('role'))}`,
  'member.role_changed': ({ subject, fact }) => `Made ${subject} ${fact('to')} instead of ${fact('from')}`,
  'member.removed': ({ subject }) => `Removed ${subject}`,
  'member.left': () => 'Left the organisation',
  'site.created': ({ drop }) => `Created ${drop}`,
  'site.updated': ({ drop, fact }) => `Changed ${settingsInWords(fact('fields'))} of ${drop}`,
  'site.published': ({ drop, fact }) => `Published version ${fact('version')} of ${drop}`,
  'site.promoted': ({ drop, fact }) => `Made version ${fact('version')} of ${drop} live again`,
  'preview.published': ({ drop, fact }) =>
    `Published version ${fact('version')} of ${drop} to the preview ${fact('name')}`,
  'preview.removed': ({ drop, fact }) => `Removed the preview ${fact('name')} of ${drop}`,
  'webhook.created': ({ fact }) => `Added a webhook to ${fact('host')}`,
  'webhook.deleted': ({ fact }) => `Deleted the webhook to ${fact('host')}`,
  'webhook.rotated': ({ fact }) => `Replaced the secret of the webhook to ${fact('host')}`,
  'site.deleted': ({ drop }) => `Deleted ${drop}`,
  'site.chosen': () => 'Chose the drops that stay live',
  'site.removed': ({ drop }) => `Removed ${drop} for good, after it had expired`,
  'site.taken_down': ({ drop, fact }) => `Took down ${drop}${after(': ', fact('reason'))}`,
  'site.restored': ({ drop }) => `Restored ${drop}`,
  'viewer.added': ({ drop }) => `Let people see ${drop}`,
  'viewer.removed': ({ drop }) => `Took a viewer off ${drop}`,
  'viewer.reminded': ({ drop }) => `Reminded a viewer of ${drop}`,
  'guest_link.added': ({ drop }) => `Made a guest link to ${drop}`,
  'guest_link.removed': ({ drop }) => `Ended a guest link to ${drop}`,
  'thread.opened': ({ drop }) => `Opened a comment on ${drop}`,
  'thread.resolved': ({ drop }) => `Resolved a comment on ${drop}`,
  'thread.reopened': ({ drop }) => `Reopened a comment on ${drop}`,
  'thread.message_removed': ({ drop }) => `Deleted a comment on ${drop}`,
  'thread.comments_removed': ({ drop }) => `Removed the comments of a guest link to ${drop}`,
  'domain.added': ({ subject, drop }) => `Added the domain ${subject} to ${drop}`,
  'domain.removed': ({ subject, drop }) => `Removed the domain ${subject} from ${drop}`,
  'domain.made_main': ({ subject, drop }) => `Made ${subject} the main name of ${drop}`,
  'billing.plan_changed': ({ subject, fact }) =>
    `Changed the plan to ${planInWords(subject)}${after(' from ', planInWords(fact('from')))}`,
  'publisher.added': ({ drop, fact }) => `Let a workflow of ${fact('repository')} publish to ${drop}`,
  'publisher.removed': ({ drop, fact }) => `No longer lets a workflow of ${fact('repository')} publish to ${drop}`,
  'publisher.refused': ({ drop, fact }) => `Refused a workflow that wanted to publish to ${drop} (${fact('reason')})`,
  'oauth.allowed': ({ subject }) => `Let the app ${quoted(subject)} in`,
  'oauth.revoked': ({ subject }) => `Revoked the app ${quoted(subject)}`,
}

const WAYS: ReadonlyMap<unknown, string> = new Map([
  ['token', 'with an API token'],
  ['oauth', 'through a connected app'],
])

const SYSTEMS: ReadonlyMap<string, string> = new Map([
  ['lifecycle', 'The service, by the clock'],
  ['stripe', 'The service, after a payment'],
  ['operator', 'The operator'],
  ['workflow', 'An unknown workflow'],
])

export function whoInWords(actor: string): string {
  return SYSTEMS.get(actor) ?? actor
}

/** Entries from before the list of actions was closed keep their own words. */
export function deedInWords({ action, subject, detail }: Deed, drops: DropNames): string {
  const fact = (name: string): string => factInWords(detail[name])
  const dropId = action.startsWith('domain.') ? fact('site') : subject
  const drop = drops.get(dropId) ?? (fact('slug') || fact('host') || 'a drop that is deleted')
  const tell = Object.hasOwn(DEEDS, action) ? DEEDS[action as AuditAction] : undefined
  const words = tell ? tell({ subject, drop, fact }) : action.replaceAll(/[._]/g, ' ')
  return `${words}${after(', ', WAYS.get(detail['via']) ?? '')}`
}

function factInWords(value: unknown): string {
  if (Array.isArray(value)) return value.join(', ')
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

function after(before: string, text: string): string {
  return text === '' ? '' : before + text
}

function quoted(text: string): string {
  return `“${text}”`
}

function planInWords(name: string): string {
  return Object.hasOwn(plans, name) ? plans[name as PlanName].label : name
}

const SETTINGS: ReadonlyMap<string, string> = new Map([
  ['slug', 'the address'],
  ['name', 'the name'],
  ['spa_fallback', 'the behaviour'],
  ['gallery', 'the place in the gallery'],
  ['password', 'the password'],
  ['analytics', 'the analytics'],
])

function settingsInWords(fields: string): string {
  const words = new Set(fields.split(', ').map((field) => SETTINGS.get(field) ?? 'the settings'))
  return [...words].join(', ').replace(/, (?=[^,]*$)/, ' and ')
}
