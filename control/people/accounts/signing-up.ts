import { addressOfNobody, parseEmail } from '../../ground/mail/address.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { hashPassword } from '../../../shared/secrets/password.ts'
import { randomSecret } from '../../../shared/secrets/secrets.ts'
import { recordAudit } from '../audit/audit.ts'
import { transaction, type Sql } from '../../ground/database/sql.ts'
import { changeRoutes } from '../../ground/routing/changes.ts'
import { createPersonalOrganisation, findHomeOrganisation } from '../organisations/personal.ts'
import type { Accounts, SignedIn } from './contract.ts'
import { currencyOf, resolveCountry } from '../organisations/countries.ts'
import type { PartDependencies } from './dependencies.ts'
import { findUser, findUserByEmail, insertUser, lockUser, type Namesake, type UserRow } from './queries.ts'
import { endFormerPerson, hashedAndTagged } from './passwords.ts'
import { enter } from './signing-in.ts'
import { passwordTag, requireGoodPassword } from './rules.ts'
import { deviceOf } from '../access/devices.ts'
import { beginSession } from '../access/sessions.ts'
import { noteDevice } from '../factors/devices.ts'

type SigningUpDependencies = Pick<
  PartDependencies,
  'sql' | 'hooks' | 'throttle' | 'links' | 'now' | 'secrets' | 'newcomers' | 'enqueueMail' | 'baseUrl' | 'factors'
>

interface WantedUser {
  readonly email: string
  readonly passwordHash: string
  readonly country: string
  readonly verified: boolean
  readonly ip: string
}

type CreatedUser = Pick<SignedIn, 'userId' | 'orgId' | 'email'>

export function createSigningUp(
  deps: SigningUpDependencies,
): Pick<Accounts, 'signUp' | 'signInProved' | 'createAccount'> {
  const { sql, hooks, throttle, links, now, secrets, newcomers, factors } = deps

  return {
    async signUp(input, circumstances) {
      const email = parseEmail(input.email)
      const newcomer = { email, token: input.token }
      // Asked again in the transaction: a refusal should cost neither a hash nor anyone's allowance.
      await newcomers.admit(sql, newcomer)
      requireGoodPassword(input.password, email)
      await throttle.require('signUpPerNetwork', limitKeyOfIp(circumstances.ip))
      const mayTellOwner = await throttle.admit('signUpAgainMailPerAddress', email)
      const passwordHash = await hashPassword(input.password)
      const country = resolveCountry({
        geo: circumstances.geoCountry,
        form: input.country,
        acceptLanguage: circumstances.acceptLanguage,
      })
      const { value: signedIn, changes } = await changeRoutes(sql, async (tx) => {
        const admitted = await newcomers.admit(tx, newcomer)
        const { provesAddress } = admitted
        const wanted = { email, passwordHash, country, verified: provesAddress, ip: circumstances.ip }
        const own = await createUser(tx, wanted, now())
        // Whoever has the link has read the mail, and may know.
        if (!own && provesAddress) throw errors.emailTaken()
        const created =
          own ??
          (await createUser(tx, wanted, now(), {
            typedEmail: email,
            passwordTag: passwordTag(secrets, email, input.password),
          }))
        if (!created) throw new Error('A namesake has an address of its own, and it was taken')
        await admitted.settle(tx, created.userId)
        const { setCookie } = await beginSession(tx, created, circumstances, now())
        await noteDevice(tx, { userId: created.userId, device: deviceOf(circumstances.userAgent), now: now() })
        const claimed =
          circumstances.anonymousId === undefined
            ? 0
            : await hooks.claim(tx, { anonymousId: circumstances.anonymousId, ...created, isNewAccount: true })
        // After the claim: the mail names what is hidden until its link is opened.
        if (own && !provesAddress) await links.send(tx, 'verify', created)
        else if (!own && mayTellOwner) await links.tellOwner(tx, email)
        return { ...created, emailVerified: provesAddress, setCookie, claimed }
      })
      if (signedIn.claimed > 0) await hooks.propagate(changes)
      return signedIn
    },

    async signInProved({ email: address, userId, token, isOfKnownGroup }, circumstances, link) {
      const email = parseEmail(address)
      // Nobody knows it: there is no signing in with a password unless a reset sets one.
      const nobodys = await hashedAndTagged(secrets, email, randomSecret(32))
      const passwordHash = nobodys.hash
      const country = resolveCountry({ geo: circumstances.geoCountry, acceptLanguage: circumstances.acceptLanguage })

      async function createProved(tx: Sql): Promise<UserRow> {
        const newcomer = { email, token, hasProvedAddress: true, isOfKnownGroup }
        const admitted = await newcomers.admit(tx, newcomer)
        const wanted = { email, passwordHash, country, verified: true, ip: circumstances.ip }
        const created = await createUser(tx, wanted, now())
        if (!created) throw errors.emailTaken()
        await admitted.settle(tx, created.userId)
        return { id: created.userId, email, shownEmail: email, passwordHash, verifiedAt: now() }
      }

      const { value: signedIn, changes } = await changeRoutes(sql, async (tx) => {
        const known = userId === undefined ? await findUserByEmail(tx, email) : await findUser(tx, userId)
        // Whoever made it never showed that the address is theirs: it stays theirs, and apart.
        if (known && userId === undefined && known.verifiedAt === null) throw errors.unverifiedNamesake()
        const user = known ? await lockUser(tx, known.id) : await createProved(tx)
        if (!user) throw errors.wrongCredentials('This account was closed.')
        const { provider, isSuccessor } = await link(tx, { userId: user.id, email: user.email })
        if (isSuccessor) await endFormerPerson(tx, { user, password: nobodys, ip: circumstances.ip }, deps)
        const orgId = await findHomeOrganisation(tx, user.id)
        await factors.applyRecovery(tx, { userId: user.id, email: user.email, orgId })
        return enter(tx, { user, circumstances, at: now(), isProved: false, provider }, deps)
      })
      await hooks.propagate(changes)
      return signedIn
    },

    async createAccount(input) {
      const email = parseEmail(input.email)
      if (input.password !== undefined) requireGoodPassword(input.password, email)
      // Without a password there is no signing in with one; a reset sets the first.
      const passwordHash = await hashPassword(input.password ?? randomSecret(32))
      const country = resolveCountry({ form: input.country })
      return transaction(sql, async (tx) => {
        const { verified } = input
        const created = await createUser(tx, { email, passwordHash, country, verified, ip: 'operator' }, now())
        // Only an operator hears this, who may know.
        if (!created) throw errors.emailTaken()
        if (!verified) await links.send(tx, 'verify', created)
        return created
      })
    },
  }
}

/** Undefined when the address is taken. */
async function createUser(
  tx: Sql,
  wanted: WantedUser,
  at: Date,
  namesake?: Namesake,
): Promise<CreatedUser | undefined> {
  const { email, passwordHash, country } = wanted
  const userId = newId('usr')
  const row = { id: userId, email, passwordHash, verifiedAt: wanted.verified ? at : null, now: at }
  const isNew = await insertUser(tx, namesake ? { ...row, email: addressOfNobody(`taken-${userId}`) } : row, namesake)
  if (!isNew) return undefined
  const orgId = await createPersonalOrganisation(tx, {
    userId,
    email,
    country,
    currency: currencyOf(country),
    now: at,
  })
  await recordAudit(tx, {
    at,
    orgId,
    actor: { userId, email, ip: wanted.ip },
    action: 'account.created',
    subject: userId,
  })
  return { userId, orgId, email }
}
