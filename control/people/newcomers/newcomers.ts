/**
 * Newcomers: who may have an account. Every way to one asks here, in the transaction that makes it: the form, and the
 * sign-in of a provider. Only the operator's `admin create-account` does not.
 */
import { errors } from '../../../shared/contracts/errors.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { hashSecret, randomSecret, type Secrets } from '../../../shared/secrets/secrets.ts'
import type { Clock } from '../../../shared/running/clock.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import { parseEmail } from '../../ground/mail/address.ts'
import { ACCOUNT_PATHS, linkTo } from '../../ground/mail/links.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import { showsSignUp, type SignUpPolicy } from '../../ground/terms/sign-up.ts'
import { isInvited, organisationInvites } from '../organisations/personal.ts'
import * as queries from './queries.ts'
import { SIGN_UP_LINK_MS, welcomeOf, type Invited } from './rules.ts'

/** A person who wants an account. */
export interface Newcomer {
  readonly email: string
  /** The secret of a link that they came with. */
  readonly token?: string | undefined
  /** They have proved the address by other means, so that an invitation to it counts without its link. */
  readonly hasProvedAddress?: boolean
  /** The operator has given a role to a group that they belong to: that invites them. */
  readonly isOfKnownGroup?: boolean
}

export interface Admitted {
  /** The link was mailed to the address, or the operator vouches for it. */
  readonly provesAddress: boolean
  /** Nobody was here before, and this person runs the service. */
  readonly isFirstOwner: boolean
  /** Uses up the link that they came with, once their account is there. Throws when another was faster. */
  settle(tx: Sql, userId: string): Promise<void>
}

export interface Newcomers {
  readonly policy: SignUpPolicy
  /** What a link is good for, for the page behind it; undefined when it does not work (any more). */
  peek(token: string): Promise<{ readonly email: string | undefined } | undefined>
  /** Throws 403 `sign_up_closed` unless this person may have an account. */
  admit(sql: Sql, newcomer: Newcomer): Promise<Admitted>
  /** Makes a link for one address, and mails it. */
  invite(email: string): Promise<{ readonly email: string; readonly link: string; readonly until: Date }>
  /** The link of the first owner: where strangers cannot sign up and there is no account yet. The same until it is used. */
  ownerLink(): Promise<string | undefined>
}

interface NewcomersDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly baseUrl: string
  readonly secrets: Pick<Secrets, 'sign'>
  readonly enqueueMail: EnqueueMail
  readonly policy: SignUpPolicy
}

/** Ours have 43. */
const MAX_TOKEN_CHARS = 200

export function createNewcomers({
  sql,
  clock,
  baseUrl,
  secrets,
  enqueueMail,
  policy,
}: NewcomersDependencies): Newcomers {
  const now = (): Date => new Date(clock.now())
  const ownerToken = (id: string): string => secrets.sign('first-owner', id)

  /** The operator's link that a newcomer came with, where it is meant for them. */
  async function linkOf(
    db: Sql,
    { email, token, hasProvedAddress }: Newcomer,
  ): Promise<queries.SignUpLinkRow | undefined> {
    const hash = token === undefined || token.length > MAX_TOKEN_CHARS ? undefined : hashSecret(token)
    const brought = hash === undefined ? undefined : await queries.findOpenSignUpLink(db, hash, now())
    const link = brought ?? (hasProvedAddress ? await queries.findOpenSignUpLinkTo(db, email, now()) : undefined)
    if (link === undefined || (link.email !== null && link.email !== email)) return undefined
    // An account that was made since is the first one, and this link would make a second owner.
    return link.kind === 'owner' && (await queries.hasAccounts(db)) ? undefined : link
  }

  async function invitedBy(db: Sql, newcomer: Newcomer, hasLink: boolean): Promise<Invited> {
    if (hasLink) return 'by_operator'
    if (policy.kind !== 'invited') return 'by_nobody'
    const { email, token, hasProvedAddress, isOfKnownGroup } = newcomer
    const isByLink =
      token !== undefined &&
      token.length <= MAX_TOKEN_CHARS &&
      (await organisationInvites(db, { token, email, now: now() }))
    const isByAddress = hasProvedAddress === true && (isOfKnownGroup === true || (await isInvited(db, email, now())))
    return isByLink || isByAddress ? 'by_organisation' : 'by_nobody'
  }

  return {
    policy,

    async peek(token) {
      if (token === '' || token.length > MAX_TOKEN_CHARS) return undefined
      const link = await queries.findOpenSignUpLink(sql, hashSecret(token), now())
      if (!link || (link.kind === 'owner' && (await queries.hasAccounts(sql)))) return undefined
      return { email: link.email ?? undefined }
    },

    async admit(db, newcomer) {
      const link = await linkOf(db, newcomer)
      const invited = await invitedBy(db, newcomer, link !== undefined)
      const welcome = welcomeOf(policy, newcomer.email, invited)
      if (!welcome.isWelcome) throw errors.signUpClosed(welcome.why)
      return {
        provesAddress: invited !== 'by_nobody',
        isFirstOwner: link?.kind === 'owner',
        async settle(tx, userId) {
          if (!link) return
          if (!(await queries.useSignUpLink(tx, link.id, { userId, now: now() }))) throw errors.invalidLink()
          if (link.kind === 'owner') await queries.grantStaff(tx, userId)
        },
      }
    },

    async invite(address) {
      const email = parseEmail(address)
      const token = randomSecret()
      const until = new Date(clock.now() + SIGN_UP_LINK_MS)
      const link = linkTo(baseUrl, ACCOUNT_PATHS.signUp, token)
      await transaction(sql, async (tx) => {
        await queries.deleteOpenSignUpLinksTo(tx, email)
        const id = newId('sul')
        await queries.insertSignUpLink(tx, {
          id,
          kind: 'person',
          tokenHash: hashSecret(token),
          email,
          now: now(),
          expiresAt: until,
        })
        await enqueueMail(tx, {
          eventKey: `sign_up_invitation:${id}`,
          to: email,
          template: 'sign_up_invitation',
          data: { link, until },
        })
      })
      return { email, link, until }
    },

    async ownerLink() {
      if (showsSignUp(policy) || (await queries.hasAccounts(sql))) return undefined
      const id = newId('sul')
      await queries.insertSignUpLink(sql, {
        id,
        kind: 'owner',
        tokenHash: hashSecret(ownerToken(id)),
        email: null,
        now: now(),
        expiresAt: null,
      })
      // Another control, or an earlier start, may have made it: all of them say the same.
      const made = await queries.findOwnerLink(sql)
      if (!made || made.isUsed) return undefined
      const token = ownerToken(made.id)
      // SECRET_KEY may be another than when it was made.
      await queries.renewOwnerLink(sql, made.id, hashSecret(token))
      return linkTo(baseUrl, ACCOUNT_PATHS.signUp, token)
    },
  }
}

/** Forgets who was invited by the operator, once that account is gone for good. */
export const eraseSignUpLinksTo = (sql: Sql, addresses: readonly string[]): Promise<void> =>
  queries.deleteSignUpLinksTo(sql, addresses)
