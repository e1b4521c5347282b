/**
 * What pages, routes and the command line can ask of accounts. Implemented by createAccounts (accounts.ts).
 * Every refusal is an ApiError (shared/contracts/errors.ts) whose message may be shown as it is.
 */
import type { Sql } from '../../ground/database/sql.ts'
import type { Changed, RouteChanges, RoutingTransaction } from '../../ground/routing/changes.ts'
import type { Request } from '../../ground/http/route.ts'
import type { Actor } from '../../ground/actor.ts'
import type { Browser, NewSession } from '../access/sessions.ts'

/** The circumstances of a form, gathered from the request by `accounts.circumstancesOf(request)`. */
export interface Circumstances extends Browser {
  readonly acceptLanguage: string | undefined
  /** What the trusted proxy says about the visitor's country. */
  readonly geoCountry: string | undefined
  /** The browser's signed anonymous cookie, already verified: its drops are claimed. */
  readonly anonymousId: string | undefined
}

export interface SignedIn {
  readonly userId: string
  readonly orgId: string
  readonly email: string
  readonly emailVerified: boolean
  /** Put it into `set-cookie` of the reply. */
  readonly setCookie: string
  /** How many anonymous drops of this browser now belong to the account. */
  readonly claimed: number
}

export interface SessionEntry {
  readonly id: string
  readonly ip: string
  readonly userAgent: string
  readonly createdAt: Date
  readonly lastSeenAt: Date
  readonly expiresAt: Date
  readonly current: boolean
}

/** Who the provider says has come. */
export interface LinkedPerson {
  readonly provider: NonNullable<NewSession['provider']>
  /** The address has brought them to the account of someone whom the provider removed: they are a different person. */
  readonly isSuccessor: boolean
}

export type Readmitted =
  | { readonly kind: 'readmitted'; readonly userId: string }
  /** No provider has put them out. */
  | { readonly kind: 'not_out' }
  | { readonly kind: 'unknown' }

export type LinkKind = 'verify' | 'reset' | 'email_change'

export interface Accounts {
  circumstancesOf(request: Request): Circumstances

  /**
   * Creates the user and a personal organisation, signs in at once, claims this browser's drops, mails the link.
   * The answer is the same when the address has an account: that sign-up gets one of its own which can never be
   * verified, and the owner of the address a mail.
   * 403 `sign_up_closed` for whom SIGNUP does not let in; `token` is that of an invitation, which also proves the address.
   */
  signUp(
    input: { email: string; password: string; country?: string; token?: string | undefined },
    circumstances: Circumstances,
  ): Promise<SignedIn>
  /**
   * 401 `wrong_credentials` alike for an unknown e-mail and a wrong password. After too many attempts 429
   * `proof_required` with a challenge; the next attempt brings its answer along (`proof`), which is good for one.
   */
  signIn(
    input: { email: string; password: string; proof?: string | undefined; code?: string | undefined },
    circumstances: Circumstances,
  ): Promise<SignedIn>
  /**
   * The operator's sign-in provider vouches for this address. `userId`: who they were here before; otherwise the account
   * with that address, if it is verified, else a new one, where SIGNUP lets them have it. An account that was never
   * verified is never joined (409 `email_taken`). `link` notes who they are there, in the same transaction. Of a successor's
   * account, what the former person held ends: sessions, tokens, apps, factors, the password and what they opened.
   */
  signInProved(
    person: {
      readonly email: string
      readonly userId: string | undefined
      readonly token: string | undefined
      readonly isOfKnownGroup: boolean
    },
    circumstances: Circumstances,
    link: (tx: RoutingTransaction, user: { readonly userId: string; readonly email: string }) => Promise<LinkedPerson>,
  ): Promise<SignedIn>
  /** Where the account has a second factor `signIn` throws 401 `second_factor_required` with `pending`; this goes on. */
  continueSignIn(input: { pending: string; code: string }, circumstances: Circumstances): Promise<SignedIn>
  /** Neither e-mail nor password: the device has checked who holds it. Counts as the second factor. */
  signInWithPasskey(credential: unknown, circumstances: Circumstances): Promise<SignedIn>
  /** Everything but the password is lost: a day from now it suffices, unless a mail stops that. */
  requestRecovery(pending: string): Promise<{ dueAt: Date }>
  /** Answers with the cookie that clears the session. Never fails: an unknown session is already signed out. */
  signOut(sessionSecret: string | undefined): Promise<{ setCookie: string }>
  /** Ends every session of the account, the calling one too. */
  signOutEverywhere(actor: Actor): Promise<{ setCookie: string; ended: number }>

  listSessions(actor: Actor): Promise<SessionEntry[]>
  revokeSession(actor: Actor, sessionId: string): Promise<void>

  /** What the link in the mail would do; changes nothing. Undefined when it is unknown or too old. */
  peekVerification(token: string): Promise<{ email: string; isVerified: boolean } | undefined>
  /** Uses the link. Twice is fine. 400 `invalid_link` when unknown or too old. */
  verifyEmail(token: string): Promise<{ email: string }>
  /** Sends the link again; does nothing when verified already. 429 when asked too often. */
  resendVerification(actor: Actor): Promise<void>

  /** Always resolves alike, whether or not there is such an account. 429 only per network. */
  requestReset(email: string, circumstances: Circumstances): Promise<void>
  /** Does this link still work? For the page with the form behind it. */
  isLinkValid(kind: LinkKind, token: string): Promise<boolean>
  /**
   * Sets the password, ends every session, API token, connected app and what was opened as a member, signs in: a person
   * who resets may have lost the account to someone else. Proves the mailbox, hence verifies the e-mail too.
   */
  resetPassword(
    input: { token: string; password: string; code?: string | undefined },
    circumstances: Circumstances,
  ): Promise<SignedIn>
  /** Does the account behind this link have a second factor, which choosing a new password asks for too? */
  asksForCode(kind: LinkKind, token: string): Promise<boolean>
  /**
   * Ends every other session and what was opened as a member, and API tokens and connected apps when asked to; the
   * calling session gets a new cookie.
   */
  changePassword(
    actor: Actor,
    input: { currentPassword: string; newPassword: string; endTokensAndApps: boolean },
    circumstances: Circumstances,
  ): Promise<SignedIn>

  /** Mails a link to the new address; nothing changes until it is opened. Says nothing about who else has that address. */
  requestEmailChange(actor: Actor, input: { newEmail: string; password: string }): Promise<void>
  confirmEmailChange(token: string): Promise<{ email: string }>

  /** Removes the account, its sessions, tokens, own organisations and their drops (410 gone at once). */
  deleteAccount(actor: Actor, input: { password: string }): Promise<{ setCookie: string }>
  /** The same for a person whom the operator's provider has just vouched for again, where there are no passwords. */
  deleteVouchedAccount(userId: string, circumstances: Pick<Circumstances, 'ip'>): Promise<{ setCookie: string }>

  /**
   * Accounts that were never verified, pay nothing and work with no one are told of their end and closed with their
   * drops. Resolves how many were closed, with the routes of their drops; the caller tells the edges.
   */
  closeUnverified(): Promise<Changed<number>>

  /** Removes what has run out: sessions, links, counters. A job. */
  sweep(): Promise<void>

  /**
   * For the operator's command: ends every session, token, app and passkey, what was opened as a member, and the password
   * itself; a link to choose a new
   * one goes to the mailbox, unless passwords are off. The second factor stays. Undefined when there is no such account.
   */
  endAccess(email: string): Promise<{ userId: string; sessions: number; tokens: number } | undefined>

  /**
   * For the operator's command: lets a person in again whom the sign-in provider has put out. Passwords, passkeys, tokens,
   * apps and what they opened as a member work again. No provider is asked about them until they sign in with it.
   */
  readmit(email: string): Promise<Readmitted>

  /** For the operator's command: creates an account without a browser. */
  createAccount(input: {
    email: string
    password?: string
    verified: boolean
    country?: string
  }): Promise<{ userId: string; orgId: string; email: string }>
}

/** What other capabilities do when something happens to an account. Inside the transaction of the event. */
export interface AccountHooks {
  /** Notes the sign-in, resets the clock of the owner's free drops and recovers the expired ones. */
  onSignIn(tx: RoutingTransaction, userId: string, now: Date): Promise<void>
  /** The owner's drops go from 503 to live. */
  onVerified(tx: RoutingTransaction, userId: string): Promise<void>
  /** Moves the browser's anonymous drops into the organisation; resolves how many. */
  claim(
    tx: RoutingTransaction,
    from: { anonymousId: string; orgId: string; userId: string; isNewAccount: boolean },
  ): Promise<number>
  /** Deletes the organisation's drops, domains and subscription. */
  onOrganisationDeleted(tx: RoutingTransaction, orgId: string, now: Date): Promise<void>
  /** What the person has opened as a member of organisations is closed to them; who still is one comes in anew. */
  onMemberLeft(tx: RoutingTransaction, userId: string, orgId: string | undefined, now: Date): Promise<void>
  /** What the person had opened as a member of organisations is open to them again. */
  onMemberBack(tx: RoutingTransaction, userId: string, now: Date): Promise<void>
  /** What the person said about drops goes with the account. */
  onAccountClosed(tx: RoutingTransaction, userId: string): Promise<void>
  /** Ends the person's connected apps. */
  endConnectedApps(sql: Sql, userId: string, now: Date): Promise<void>
  /** After the commit: tells the edges. */
  propagate(changes: RouteChanges): Promise<unknown>
}
