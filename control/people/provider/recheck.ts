/** Asking the provider after people whom it vouched for, and what follows from its answers. */
import type { Clock } from '../../../shared/running/clock.ts'
import type { Log } from '../../../shared/running/log.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import { changeRoutes, type RoutingTransaction } from '../../ground/routing/changes.ts'
import type { ProviderSettings } from '../../ground/terms/provider.ts'
import * as queries from '../access/provider-queries.ts'
import { endSessionsOf } from '../access/sessions.ts'
import type { OrganisationHooks } from '../organisations/dependencies.ts'
import { followGroups } from '../organisations/grouped.ts'
import type { Checked, ProviderClient } from './client.ts'
import { roleOfGroups, type ProviderGrant } from './rules.ts'

interface RecheckDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly log: Log
  readonly secrets: Pick<Secrets, 'seal' | 'open'>
  readonly settings: ProviderSettings
  readonly client: Pick<ProviderClient, 'check'>
  readonly hooks: Pick<OrganisationHooks, 'onMemberLeft' | 'propagate'>
}

/** What was found out about the person who was due; `nobody` was. */
type Recheck = Checked['kind'] | 'nobody'

interface Answer {
  readonly due: queries.DueIdentity
  readonly checked: Checked
  /** The grant as it was left by the question. */
  readonly sealedGrant: string | null
}

/**
 * One person who is due, in two transactions. The first asks, and keeps what the answer gave: it locks this one row, which
 * other controls pass by, so nothing makes it begin anew and no refresh token is sent twice. The second does what follows
 * from the answer, and may be repeated.
 */
export async function recheckNext(deps: RecheckDependencies, before: Date): Promise<Recheck> {
  const answer = await transaction(deps.sql, (tx) => ask(tx, deps, before))
  if (!answer) return 'nobody'
  const { checked } = answer
  if (checked.kind === 'unknown')
    deps.log.warn({ err: checked.cause }, 'the sign-in provider could not say about a person, who stays in')
  else if (checked.kind !== 'valid' || (checked.groups !== undefined && deps.settings.groups.size > 0)) {
    const { changes } = await changeRoutes(deps.sql, (tx) => act(tx, deps, { ...answer, checked }))
    await deps.hooks.propagate(changes)
  }
  return checked.kind
}

/** A removal is noted with what it ends, in the second transaction: until that is done, the person is asked after again. */
async function ask(
  tx: Sql,
  { clock, secrets, settings, client }: RecheckDependencies,
  before: Date,
): Promise<Answer | undefined> {
  const due = await queries.lockDueIdentity(tx, settings.issuer, before)
  if (!due) return undefined
  const now = new Date(clock.now())
  const grant = openGrant(secrets, due)
  const checked: Checked = grant ? await client.check(grant, due.subject) : { kind: 'run_out' }
  if (checked.kind !== 'valid') {
    await queries.postpone(tx, due.id, now)
    return { due, checked, sealedGrant: due.sealedGrant }
  }
  const sealedGrant = sealGrant(secrets, due.id, checked.grant)
  await queries.markChecked(tx, due.id, { sealedGrant, now })
  return { due, checked, sealedGrant }
}

/** Nothing follows from an answer that is no longer about the person's grant. */
async function act(
  tx: RoutingTransaction,
  { clock, settings, hooks }: RecheckDependencies,
  { due, checked, sealedGrant }: Answer & { readonly checked: Exclude<Checked, { kind: 'unknown' }> },
): Promise<void> {
  const { issuer, name, groups } = settings
  const { id, subject, userId, email } = due
  const now = new Date(clock.now())
  if (!(await queries.lockUnchanged(tx, id, sealedGrant))) return
  switch (checked.kind) {
    case 'valid': {
      if (checked.groups === undefined) return
      const role = roleOfGroups(checked.groups, groups)
      return followGroups(tx, { issuer, name, userId, email, role, now }, hooks)
    }
    case 'removed':
      await queries.markRemoved(tx, id, now)
      await queries.deleteProviderSessions(tx, { issuer, subject })
      return putOut(tx, userId, { now, hooks })
    case 'run_out':
      await queries.markRunOut(tx, id, now)
      await queries.deleteProviderSessions(tx, { issuer, subject })
      return
    default:
      checked satisfies never
  }
}

/**
 * Where the one whom the provider removed was all that the account is there, every session ends, however it began, and what
 * they opened as a member; tokens and apps are refused while it lasts (`isRemovedOf`).
 */
async function putOut(
  tx: RoutingTransaction,
  userId: string,
  { now, hooks }: { now: Date; hooks: Pick<OrganisationHooks, 'onMemberLeft'> },
): Promise<void> {
  if (!(await queries.isRemoved(tx, userId))) return
  await endSessionsOf(tx, userId)
  await hooks.onMemberLeft(tx, userId, undefined, now)
}

const grantContext = (identityId: string): string => `provider grant ${identityId}`

export function sealGrant(secrets: Pick<Secrets, 'seal'>, identityId: string, grant: ProviderGrant): string {
  return secrets.seal(JSON.stringify(grant), grantContext(identityId))
}

/** Undefined where there is none, or none that the key of now opens. */
export function openGrant(
  secrets: Pick<Secrets, 'open'>,
  { id, sealedGrant }: queries.IdentityRow,
): ProviderGrant | undefined {
  if (sealedGrant === null) return undefined
  try {
    return JSON.parse(secrets.open(sealedGrant, grantContext(id)).toString('utf8')) as ProviderGrant
  } catch {
    return undefined
  }
}
