/**
 * Organisations: tenants that own drops and plans. Everyone has a personal one; further ones are shared.
 * An organisation that the caller does not belong to answers like a missing one; so does, for a connected app, every
 * one but that which it was allowed to act for.
 */
import { errors } from '../../../shared/contracts/errors.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { requireProved, type Actor } from '../../ground/actor.ts'
import { transaction, type Sql } from '../../ground/database/sql.ts'
import { changeRoutes } from '../../ground/routing/changes.ts'
import { orUpgrade } from '../../ground/terms/plans.ts'
import { hasSecondFactor, showsSecondFactor } from '../access/second-factor.ts'
import { recordAudit } from '../audit/audit.ts'
import type { OrganisationsDependencies } from './dependencies.ts'
import { createInvitations, type Invitations } from './invitations.ts'
import { createMembers, type Members } from './members.ts'
import { changeAsMember, lockAsMember, requireMembership } from './membership.ts'
import {
  findMembership,
  insertOrganisation,
  listMemberships,
  listOwned,
  lockPerson,
  markOrganisationDeleted,
  listPublicDrops,
  listWithoutFactor,
  setName,
  setPolicy,
  setSecondFactorRequired,
  setSessionOrganisation,
  type MembershipRow,
  type PublicDrop,
} from './queries.ts'
import {
  hasAllFree,
  MAX_FREE_ORGANISATIONS,
  mayReach,
  parseName,
  requireWholeAccount,
  type VisibilityPolicy,
} from './rules.ts'

/** What may be changed of an organisation as a whole. */
export interface OrganisationChanges {
  readonly name?: string | undefined
  readonly visibilityPolicy?: VisibilityPolicy | undefined
}

export interface Organisations extends Members, Invitations {
  list(actor: Actor): Promise<MembershipRow[]>
  create(actor: Actor, name: string): Promise<MembershipRow>
  rename(actor: Actor, orgId: string, name: string): Promise<MembershipRow>
  /** Its name, and what it allows its drops to be; what is undefined stays. */
  change(actor: Actor, orgId: string, changes: OrganisationChanges): Promise<MembershipRow>
  /** Drops that anyone or a password can open, although the organisation allows that no longer. */
  stillPublic(organisation: Pick<MembershipRow, 'id' | 'visibilityPolicy'>): Promise<PublicDrop[]>
  /** Its drops are gone at once. A personal organisation goes with its account only. */
  remove(actor: Actor, orgId: string): Promise<void>
  /** Members without a second factor cannot act for it, nor see its drops, from their next request on, until they have one. */
  requireSecondFactor(actor: Actor, orgId: string, isRequired: boolean): Promise<MembershipRow>
  /** Makes it the one that the session acts for. */
  switchTo(actor: Actor, orgId: string): Promise<MembershipRow>
}

export function createOrganisations(deps: OrganisationsDependencies): Organisations {
  const { sql, clock, hooks } = deps
  const now = (): Date => new Date(clock.now())
  const change = createChange(deps)

  return {
    ...createMembers(deps),
    ...createInvitations(deps),

    list: async (actor) => (await listMemberships(sql, actor.userId)).filter(({ id }) => mayReach(actor, id)),

    async create(actor, text) {
      requireWholeAccount(actor)
      if (!actor.emailVerified) throw errors.emailNotVerified()
      const name = parseName(text)
      return transaction(sql, async (tx) => {
        if (!(await lockPerson(tx, actor.userId))) throw errors.unauthorized()
        const owned = await listOwned(tx, actor.userId)
        if (hasAllFree(owned)) {
          throw errors.limitReached(
            `You own ${MAX_FREE_ORGANISATIONS} organisations on the free plan. Delete one first${orUpgrade()}.`,
          )
        }
        const { country, currency } = owned.find((organisation) => organisation.personal)!
        const id = newId('org')
        await insertOrganisation(tx, {
          id,
          name,
          personal: false,
          country,
          currency,
          ownerId: actor.userId,
          now: now(),
        })
        await recordAudit(tx, {
          at: now(),
          orgId: id,
          actor,
          action: 'organisation.created',
          subject: id,
          detail: { name },
        })
        return requireMembership(tx, actor, id)
      })
    },

    rename: (actor, orgId, name) => change(actor, orgId, { name }),
    change,

    stillPublic: async ({ id, visibilityPolicy }) => (visibilityPolicy === 'no_public' ? listPublicDrops(sql, id) : []),

    requireSecondFactor: (...wanted) => requireSecondFactor(deps, ...wanted),

    async remove(actor, orgId) {
      const { changes } = await changeRoutes(sql, async (tx) => {
        const own = await lockAsMember(tx, actor, orgId, 'delete')
        requireProved(actor)
        if (own.personal)
          throw errors.conflict(
            'personal_organisation',
            'This is your personal organisation. It is deleted with your account.',
          )
        await recordAudit(tx, {
          at: now(),
          orgId,
          actor,
          action: 'organisation.deleted',
          subject: orgId,
          detail: { name: own.name },
        })
        await hooks.onOrganisationDeleted(tx, orgId, now())
        await markOrganisationDeleted(tx, orgId, now())
      })
      await hooks.propagate(changes)
    },

    async switchTo(actor, orgId) {
      if (actor.via.kind !== 'session')
        throw errors.forbidden('A token belongs to one organisation. Only a dashboard session can switch.')
      const target = await findMembership(sql, orgId, actor.userId)
      if (!target) throw errors.notFound('organisation')
      // The one door that says why it is closed.
      if (target.requiresSecondFactor)
        await requireFactor(sql, actor, `${target.name} asks its members for a second factor. Turn yours on`)
      await setSessionOrganisation(sql, actor.via.sessionId, orgId)
      return target
    },
  }
}

/** What members without one have opened of its drops closes, and opens again with the end of it. */
async function requireSecondFactor(
  { sql, clock, hooks }: OrganisationsDependencies,
  actor: Actor,
  orgId: string,
  isRequired: boolean,
): Promise<MembershipRow> {
  const { value: changed, changes } = await changeRoutes(sql, async (tx) => {
    const at = new Date(clock.now())
    const own = await lockAsMember(tx, actor, orgId, 'manage_admins')
    requireProved(actor)
    if (own.personal) throw errors.conflict('personal_organisation', 'A personal organisation has no other members.')
    if (isRequired) await requireFactor(tx, actor, 'Turn on a second factor for your own account first')
    await setSecondFactorRequired(tx, orgId, isRequired)
    for (const userId of await listWithoutFactor(tx, orgId))
      await (isRequired ? hooks.onMemberLeft(tx, userId, orgId, at) : hooks.onMemberBack(tx, userId, at))
    const detail = { required: isRequired ? 'yes' : 'no' }
    const action = 'organisation.second_factor_required'
    await recordAudit(tx, { at, orgId, actor, action, subject: orgId, detail })
    return { ...own, requiresSecondFactor: isRequired }
  })
  await hooks.propagate(changes)
  return changed
}

/** The caller has a second factor; a session also has shown it, where that is a passkey. */
async function requireFactor(sql: Sql, { userId, via }: Actor, advice: string): Promise<void> {
  if (!(await hasSecondFactor(sql, userId)))
    throw errors.forbidden(`${advice}: a passkey or a code generator, at /account/ways-in.`)
  if (via.kind === 'session' && !(await showsSecondFactor(sql, via.sessionId))) throw errors.stepUpRequired()
}

/** Changes an organisation as a whole. */
function createChange({ sql, clock }: Pick<OrganisationsDependencies, 'sql' | 'clock'>): Organisations['change'] {
  return (actor, orgId, { name: text, visibilityPolicy }) =>
    changeAsMember(sql, actor, orgId, 'rename', async (tx, own) => {
      const at = new Date(clock.now())
      const name = text === undefined ? own.name : parseName(text)
      if (text !== undefined) {
        await setName(tx, orgId, name)
        const detail = { from: own.name, to: name }
        await recordAudit(tx, { at, orgId, actor, action: 'organisation.renamed', subject: orgId, detail })
      }
      if (visibilityPolicy === undefined || visibilityPolicy === own.visibilityPolicy) return { ...own, name }
      await setPolicy(tx, orgId, visibilityPolicy)
      const detail = { from: own.visibilityPolicy, to: visibilityPolicy }
      await recordAudit(tx, { at, orgId, actor, action: 'organisation.policy_changed', subject: orgId, detail })
      return { ...own, name, visibilityPolicy }
    })
}
