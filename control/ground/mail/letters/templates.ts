/** Every mail that the service sends, as data: one text for both parts. Plain ASCII, so that links survive any mail path. */
import { durationInWords } from '../../terms/durations.ts'
import { HOUSE_LOOK, type Look } from '../../../../shared/pages/look.ts'
import { mailDocument, type MailItem } from './document.ts'

/** What a new owner takes over: a plan as people call it, and until when it is paid. */
export interface Bill {
  readonly plan: string
  readonly until: Date | null
}

export interface MailData {
  /** `drops`: what visitors do not see until then. */
  verify: { link: string; until: Date; drops: readonly NamedDrop[] }
  /** For the owner of an address that someone signed up with again. */
  sign_up_again: { signInLink: string; resetLink: string }
  reset: { link: string; until: Date }
  email_change: { link: string; until: Date }
  email_changed: { newEmail: string }
  password_changed: { resetLink: string; tokensAndAppsEnded: boolean }
  invitation: { link: string; until: Date; organisation: string; inviter: string; role: string }
  /** From the operator: this address may have an account. */
  sign_up_invitation: { link: string; until: Date }
  token_ending: { name: string; at: Date; link: string }
  second_factor_changed: { what: 'on' | 'off'; link: string }
  /** `at`: when the password, or the sign-in provider, alone suffices. `by`: how the one who asked had come. */
  factor_recovery: { at: Date; by: 'password' | 'session'; link: string }
  factor_recovery_stopped: { by: 'mail' | 'session' | 'code' | 'passkey'; link: string }
  new_device: { device: string; ip: string; at: Date; link: string }
  /** `at`: when each expires. */
  expiring: ClockNotice
  /** `at`: until when each can be brought back. */
  expired: ClockNotice
  /** `at`: when each is removed for good. */
  removal: ClockNotice
  /** A plan has ended, and with it what visitors saw of these. `kept`: how many drops stay live. */
  paused: {
    plan: string
    organisation: string
    at: Date
    drops: readonly NamedDrop[]
    domains: readonly string[]
    kept: number
    chooseLink: string
  }
  /** The account was never verified. `at`: when it is closed, with these drops. */
  unverified: { email: string; at: Date; drops: readonly NamedDrop[]; link: string }
  receipt: {
    plan: string
    amount: string
    paidAt: Date
    periodEnd: Date
    invoiceLink: string | undefined
    billingLink: string
  }
  /** `until`: the plan stays that long without the payment. */
  past_due: { plan: string; amount: string; until: Date; billingLink: string }
  organisation_received: {
    organisation: string
    from: string
    bill: Bill | undefined
    billingLink: string
    organisationLink: string
  }
  organisation_handed_over: { organisation: string; to: string; bill: Bill | undefined }
  takedown: { url: string; reason: string; contact: string }
  account_deleted: { email: string }
  /** `until`: the end of its certificate. */
  domain_stopped: { domain: string; url: string; visitorsSee: string; until: Date | null; link: string }
  /** `cause`: what the certificate authority said. */
  domain_renewal: { domain: string; endsAt: Date; cause: string; link: string }
  domain_moved_away: { domain: string; link: string }
  domain_moved_here: { domain: string; link: string }
  /** `since`: nothing has arrived since then. */
  webhook_off: { url: string; since: Date; link: string }
  /** `drop`: its name or slug. The link admits one browser without a code. */
  viewer_invitation: {
    link: string
    until: Date
    drop: string
    inviter: string
    isReminder: boolean
    /** Where they comment, if they may; one browser, by this link or by the other. */
    reviewLink?: string | undefined
  }
  /** A code and a link, of which either admits one browser; for the review page the link leads to where the code is entered. */
  viewer_code: { code: string; link: string; until: Date; drop: string; isForReview?: boolean }
  /** Someone who is not on the list would like to see the drop. */
  access_request: { link: string; email: string; drop: string }
  /** Someone named this person in a comment. */
  thread_mention: { link: string; drop: string; name: string; body: string }
  /** What was said about a drop since the last mail. */
  thread_digest: { link: string; drop: string; messages: readonly ToldMessage[]; more: number }
}

export interface ToldMessage {
  readonly name: string
  readonly page: string
  readonly body: string
}

interface NamedDrop {
  readonly name: string
  readonly url: string
}

interface ClockNotice {
  readonly drops: readonly (NamedDrop & { readonly at: Date })[]
  /** How long a free drop stays online after a sign-in or a publish. */
  readonly idleMs: number
  readonly signInLink: string
}

export type MailTemplate = keyof MailData

export interface RenderedMail {
  readonly subject: string
  readonly text: string
  readonly html: string
}

interface Letter {
  readonly subject: string
  readonly paragraphs: readonly [string, ...string[]]
  /** What the mail is about, one by one; after the first paragraph. */
  readonly items?: readonly MailItem[]
  readonly action?: { readonly label: string; readonly url: string }
  /** Why the reader gets this. */
  readonly footer: string
}

const MAX_SUBJECT_CHARS = 200

const UNASKED = 'If you did not ask for this, ignore this mail: nothing changes.'
const STOPPED_BY: Readonly<Record<MailData['factor_recovery_stopped']['by'], string>> = {
  mail: 'with the link in our mail',
  session: 'by someone who is signed in',
  code: 'by someone who gave a code',
  passkey: 'by someone who showed a passkey',
}
const toOwner = (service: string): string => `You get this mail because you publish on ${service}.`
const toDomain = (service: string): string => `You get this mail because you use this domain on ${service}.`
const toViewer = (service: string): string =>
  `You get this mail because someone shared something with you on ${service}. If you do not know them, ignore it.`
const toPayer = (service: string): string => `You get this mail because you pay for a plan on ${service}.`

const toHook = (service: string): string => `You get this mail because your organisation has a webhook on ${service}.`

const letters: { readonly [Name in MailTemplate]: (data: MailData[Name], service: string) => Letter } = {
  verify: ({ link, until, drops }, service) => ({
    subject: 'Verify your e-mail address',
    paragraphs: [
      drops.length > 0
        ? `Welcome to ${service}. Until you open the link below and confirm your address, visitors see a notice instead of what you published:`
        : `Welcome to ${service}. Open the link below to confirm your address. What you publish is visible from then on.`,
      ...(drops.length > 0 ? ['A second after you confirm, everything is visible again, at the same address.'] : []),
      `The link works until ${formatTime(until)}.`,
    ],
    items: drops.map((drop) => ({ ...drop, note: 'hidden until you confirm your address' })),
    action: { label: 'Verify my address', url: link },
    footer: UNASKED,
  }),
  sign_up_again: ({ signInLink, resetLink }, service) => ({
    subject: `You have a ${service} account already`,
    paragraphs: [
      `Someone, perhaps you, just signed up at ${service} with this address. It has an account already, which stays as it is: nobody else has come into it, and nobody else can verify this address.`,
      'If it was you, sign in with the password that you chose then, in the same browser: what you published there without an account comes along.',
      `If you have forgotten the password, choose a new one: ${resetLink}`,
    ],
    action: { label: 'Sign in', url: signInLink },
    footer: 'If it was not you, there is nothing to do.',
  }),
  reset: ({ link, until }, service) => ({
    subject: 'Choose a new password',
    paragraphs: [
      `Someone, hopefully you, asked to reset the password of your ${service} account.`,
      `The link works once, until ${formatTime(until)}. You will be signed out everywhere else, and your API tokens and connected apps end.`,
    ],
    action: { label: 'Choose a new password', url: link },
    footer: UNASKED,
  }),
  email_change: ({ link, until }, service) => ({
    subject: 'Confirm your new e-mail address',
    paragraphs: [
      `Open the link to use this address for your ${service} account from now on.`,
      `The link works once, until ${formatTime(until)}.`,
    ],
    action: { label: 'Use this address', url: link },
    footer: UNASKED,
  }),
  second_factor_changed: ({ what, link }, service) => ({
    subject: what === 'on' ? 'Your second factor is on' : 'Your second factor is off',
    paragraphs: [
      what === 'on'
        ? `Signing in to your ${service} account now also asks for a code. Keep the recovery codes where you find them without your phone.`
        : `Signing in to your ${service} account no longer asks for a second factor.`,
      'If that was not you, end what you do not recognise at once, and change your password if you have one.',
    ],
    action: { label: 'See all ways in', url: link },
    footer: 'You get this mail because it is about the safety of your account.',
  }),
  factor_recovery: ({ at, by, link }, service) => ({
    subject: 'Someone wants to sign in without your second factor',
    paragraphs:
      by === 'password'
        ? [
            `Someone who knows your password says that your code generator and your recovery codes are lost. From ${formatTime(at)} on, the password alone will open your account.`,
            'If it was you, wait until then and sign in. If it was not, stop it with the button below, and change your password.',
          ]
        : [
            `Someone who is signed in to your ${service} account says that your second factor is lost. From ${formatTime(at)} on, signing in takes codes and passkeys away.`,
            'If it was you, wait until then and sign in again. If it was not, stop it with the button below, and sign out everywhere.',
          ],
    action: { label: 'Stop it', url: link },
    footer: 'You get this mail because it is about the safety of your account.',
  }),
  factor_recovery_stopped: ({ by, link }, service) => ({
    subject: 'Your second factor stays',
    paragraphs: [
      `Someone said that the second factor of your ${service} account was lost. That was stopped ${STOPPED_BY[by]}: nobody signs in without it.`,
      'Whoever asked for it can sign in to your account. If it was not you, sign out everywhere, and choose a new password if you have one.',
    ],
    action: { label: 'See all ways in', url: link },
    footer: 'You get this mail because it is about the safety of your account.',
  }),
  new_device: ({ device, ip, at, link }, service) => ({
    subject: 'A new sign-in to your account',
    paragraphs: [
      `Your ${service} account was signed in to with a browser that we had not seen before: ${device}, from ${ip}, on ${formatTime(at)}.`,
      'If that was you, there is nothing to do. If not, end that session and change your password.',
    ],
    action: { label: 'See all ways in', url: link },
    footer: 'You get this mail because it is about the safety of your account.',
  }),
  sign_up_invitation: ({ link, until }, service) => ({
    subject: `Your account at ${service}`,
    paragraphs: [
      `You are invited to publish on ${service}. Open the link below to make your account; it also confirms your address.`,
      `The link works once, until ${formatTime(until)}, and for this address only.`,
    ],
    action: { label: 'Make my account', url: link },
    footer: 'If you do not know what this is about, ignore this mail.',
  }),
  token_ending: ({ name, at, link }, service) => ({
    subject: `Your API token "${name}" ends soon`,
    paragraphs: [
      `The API token "${name}" ends on ${formatTime(at)}. What uses it is refused from then on.`,
      'If it is still needed, make another one and put it in its place before that.',
    ],
    action: { label: 'Make a new token', url: link },
    footer: `You get this mail because you made this token on ${service}.`,
  }),
  email_changed: ({ newEmail }, service) => ({
    subject: 'Your e-mail address was changed',
    paragraphs: [
      `Your ${service} account now uses ${newEmail}. This address no longer signs in.`,
      'If that was not you, answer this mail at once.',
    ],
    footer: 'You get this mail because this was the address of your account.',
  }),
  password_changed: ({ resetLink, tokensAndAppsEnded }, service) => ({
    subject: 'Your password was changed',
    paragraphs: [
      `The password of your ${service} account was changed, and every other session was signed out.`,
      tokensAndAppsEnded
        ? 'API tokens and connected apps were ended too: give your scripts new tokens and connect your apps again.'
        : 'API tokens and connected apps still work.',
      'If that was not you, reset it now.',
    ],
    action: { label: 'Reset my password', url: resetLink },
    footer: 'You get this mail because it concerns the safety of your account.',
  }),
  invitation: ({ link, until, organisation, inviter, role }, service) => ({
    subject: `Join ${organisation} on ${service}`,
    paragraphs: [
      `${inviter} invites you to publish with ${organisation} on ${service}, as ${/^[aeiou]/.test(role) ? 'an' : 'a'} ${role}.`,
      `The link works once, until ${formatTime(until)}.`,
    ],
    action: { label: 'Accept the invitation', url: link },
    footer: 'If you do not know the sender, ignore this mail.',
  }),
  expiring: ({ drops, idleMs, signInLink }, service) => ({
    subject: `${countOf(drops.length, 'expires', 'expire')}${onFirstDay(drops)}`,
    paragraphs: [
      `Free drops stay online for ${durationInWords(idleMs)} after you sign in or publish. You have done neither for a while, so visitors will soon see a page that says that ${drops.length === 1 ? 'this drop has' : 'these drops have'} expired:`,
      `Signing in or publishing once before then is enough to keep ${itOrThem(drops)} online. Drops of a paid plan do not expire.`,
    ],
    items: drops.map((drop) => ({ ...drop, note: `online until ${formatTime(drop.at)}` })),
    action: { label: `Sign in and keep ${itOrThem(drops)} online`, url: signInLink },
    footer: toOwner(service),
  }),
  expired: ({ drops, idleMs, signInLink }, service) => ({
    subject: countOf(drops.length, 'has expired', 'have expired'),
    paragraphs: [
      `You have not signed in or published for ${durationInWords(idleMs)}, so visitors now see a page that says that ${drops.length === 1 ? 'this drop has' : 'these drops have'} expired. Nothing is lost yet:`,
      `Sign in, and ${drops.length === 1 ? 'it is' : 'they are'} back at once, at the same address. After that date ${drops.length === 1 ? 'it is' : 'they are'} removed for good; we write to you once more before that.`,
    ],
    items: drops.map((drop) => ({ ...drop, note: `can be brought back until ${formatTime(drop.at)}` })),
    action: { label: `Sign in and bring ${itOrThem(drops)} back`, url: signInLink },
    footer: toOwner(service),
  }),
  removal: ({ drops, signInLink }, service) => ({
    subject: `${countOf(drops.length, 'will be', 'will be')} removed for good${onFirstDay(drops)}`,
    paragraphs: [
      `${drops.length === 1 ? 'This drop' : 'These drops'} expired a while ago, and will soon be deleted with every version:`,
      `This is our last mail about ${itOrThem(drops)}. Sign in before that date, and ${drops.length === 1 ? 'it is' : 'they are'} back at the same address.`,
    ],
    items: drops.map((drop) => ({ ...drop, note: `removed on ${formatTime(drop.at)}` })),
    action: { label: `Sign in and bring ${itOrThem(drops)} back`, url: signInLink },
    footer: toOwner(service),
  }),
  paused: ({ plan, organisation, at, drops, domains, kept, chooseLink }, service) => ({
    subject: `${service} ${plan} has ended: ${pausedOf(drops.length, domains.length)}`,
    paragraphs: [
      `${organisation} has been on the free plan since ${formatTime(at)}. It keeps ${plural(kept, 'drop')} live and has no custom domains. Visitors of ${drops.length + domains.length === 1 ? 'this address see a page that says that it is' : 'these addresses see a page that says that they are'} paused:`,
      'Nothing is deleted, and paused drops do not expire. You can choose which drops stay live. With a paid plan, everything is back at once.',
    ],
    items: [
      ...drops.map((drop) => ({ ...drop, note: 'paused' })),
      ...domains.map((domain) => ({
        name: domain,
        url: `https://${domain.replace(/^\*\./, '')}`,
        note: 'paused; its certificate is kept',
      })),
    ],
    action: { label: 'Choose what stays live', url: chooseLink },
    footer: toOwner(service),
  }),
  unverified: ({ email, at, drops, link }, service) => ({
    subject: `Your account will be closed on ${formatDay(at)} unless you verify it`,
    paragraphs: [
      `You signed up to ${service} with ${email}, but never confirmed that the address is yours. On ${formatTime(at)} the account is closed${drops.length > 0 ? ', and what it published is deleted:' : '.'}`,
      drops.length > 0
        ? 'Open the link below and confirm your address, and everything is live within a second.'
        : 'Open the link below and confirm your address to keep it. If you do not need the account, do nothing.',
    ],
    items: drops.map((drop) => ({ ...drop, note: `not visible until you verify; deleted on ${formatTime(at)}` })),
    action: { label: 'Verify my address', url: link },
    footer: `You get this mail because someone signed up to ${service} with this address. If it was not you, do nothing.`,
  }),
  receipt: ({ plan, amount, paidAt, periodEnd, invoiceLink, billingLink }, service) => ({
    subject: `Receipt for ${service} ${plan}: ${amount}`,
    paragraphs: [
      `We received ${amount} for ${service} ${plan} on ${formatDay(paidAt)}. It is paid until ${formatDay(periodEnd)}.`,
      'Thank you.',
    ],
    action: invoiceLink ? { label: 'Open the invoice', url: invoiceLink } : { label: 'Open billing', url: billingLink },
    footer: toPayer(service),
  }),
  past_due: ({ plan, amount, until, billingLink }, service) => ({
    subject: 'Your payment did not go through',
    paragraphs: [
      `We could not collect ${amount} for ${service} ${plan}. Your plan stays active until ${formatDay(until)} while we try again.`,
      'Please check your card. Without a payment, the free plan applies after that date; nothing is deleted.',
    ],
    action: { label: 'Check my card', url: billingLink },
    footer: toPayer(service),
  }),
  organisation_received: ({ organisation, from, bill, billingLink, organisationLink }, service) => ({
    subject: `You now own ${organisation}`,
    paragraphs: [
      `${from} made you the owner of ${organisation} on ${service}.`,
      ...(bill
        ? [
            `Its plan is ${service} ${bill.plan}${bill.until ? `, paid until ${formatDay(bill.until)}` : ''}. The card of the former owner is no longer charged.`,
            `Please add your own means of payment${bill.until ? ' before then' : ' now'}. Without one the organisation returns to the free plan; nothing is deleted.`,
          ]
        : ['Its drops, members and settings are as they were.']),
    ],
    action: bill
      ? { label: 'Add a means of payment', url: billingLink }
      : { label: 'Open the organisation', url: organisationLink },
    footer: `You get this mail because an organisation on ${service} was handed to you.`,
  }),
  organisation_handed_over: ({ organisation, to, bill }, service) => ({
    subject: `${organisation} has a new owner`,
    paragraphs: [
      `You made ${to} the owner of ${organisation} on ${service}. You stay with it as an admin.`,
      ...(bill ? [`Its ${service} ${bill.plan} plan is no longer charged to you: your card was removed from it.`] : []),
      'If that was not you, answer this mail at once.',
    ],
    footer: 'You get this mail because you were the owner of the organisation.',
  }),
  takedown: ({ url, reason, contact }, service) => ({
    subject: 'One of your drops was taken down',
    paragraphs: [
      'Visitors of this drop now see a page that says that it was removed:',
      'If you think that this is a mistake, tell us, or answer this mail.',
    ],
    items: [{ name: 'Your drop', url, note: `Reason: ${reason}` }],
    action: { label: 'Tell us that this is a mistake', url: contact },
    footer: toOwner(service),
  }),
  account_deleted: ({ email }, service) => ({
    subject: 'Your account was deleted',
    paragraphs: [
      `The ${service} account ${email} and everything that it published are deleted.`,
      'Thank you for having been with us.',
    ],
    footer: 'This is the last mail that you get from us.',
  }),
  domain_stopped: ({ domain, url, visitorsSee, until, link }, service) => ({
    subject: `${domain} no longer leads to your drop`,
    paragraphs: [
      `The DNS records of ${domain} have changed: it no longer points to ${service}.`,
      visitorsSee,
      'If that is what you want, remove the domain from the drop. If not, the page shows which records to set.',
    ],
    items: until
      ? [
          {
            name: domain,
            url,
            note: `its certificate ends on ${formatTime(until)}, and cannot be renewed without the right records`,
          },
        ]
      : [],
    action: { label: 'See what to set', url: link },
    footer: toDomain(service),
  }),
  domain_renewal: ({ domain, endsAt, cause, link }, service) => ({
    subject: `The certificate of ${domain} ends on ${formatDay(endsAt)}`,
    paragraphs: [
      `The certificate of ${domain} cannot be renewed. It ends on ${formatTime(endsAt)}; browsers warn visitors from then on.`,
      `The certificate authority said: ${cause}`,
      'We go on trying. The page shows what is in the way.',
    ],
    action: { label: 'See what is in the way', url: link },
    footer: toDomain(service),
  }),
  domain_moved_away: ({ domain, link }, service) => ({
    subject: `${domain} has moved to another account`,
    paragraphs: [
      `Another ${service} account has proven that ${domain} is theirs. From now on it leads to their drop, not to yours.`,
      'If the domain is yours and you did not do that, someone else can change its DNS records: check who can, at your DNS provider. The page shows the record that brings the domain back.',
    ],
    action: { label: 'Open my domains', url: link },
    footer: toDomain(service),
  }),
  domain_moved_here: ({ domain, link }, service) => ({
    subject: `${domain} has moved to your account`,
    paragraphs: [
      `The DNS records of ${domain} prove that it is yours. It leads to your drop from now on; the account that used it before has been told.`,
    ],
    action: { label: 'Open my domains', url: link },
    footer: toDomain(service),
  }),
  webhook_off: ({ url, since, link }, service) => ({
    subject: 'A webhook was switched off',
    paragraphs: [
      `Nothing has arrived at ${url} since ${formatTime(since)}. After three days of failures ${service} has stopped trying.`,
      'Look at the last attempts, mend the receiver, and replace the secret of the webhook: that switches it on again.',
    ],
    action: { label: 'Look at the webhook', url: link },
    footer: toHook(service),
  }),
  viewer_invitation: ({ link, until, drop, inviter, isReminder, reviewLink }, service) => ({
    subject: isReminder ? `Still waiting for you: ${drop}` : `${inviter} shares ${drop} with you`,
    paragraphs: [
      isReminder
        ? `${inviter} shares ${drop} with you on ${service}, and you have not looked at it yet.`
        : `${inviter} would like you to see ${drop}. Only people whom they name can open it. You need no account.`,
      ...(reviewLink === undefined
        ? [`The link lets one browser in, until ${formatTime(until)}. Do not pass it on: it is yours.`]
        : [
            'Point at what should be different, and say why.',
            `The button lets one browser in, until ${formatTime(until)}, or this link does, which shows the page without comments. Do not pass them on: they are yours. ${link}`,
          ]),
    ],
    action: reviewLink === undefined ? { label: 'Open it', url: link } : { label: 'Look and comment', url: reviewLink },
    footer: toViewer(service),
  }),
  viewer_code: ({ code, link, until, drop, isForReview = false }) => ({
    subject: `${code} is your code for ${drop}`,
    paragraphs: [
      `Enter this code where you asked for it: ${code}`,
      isForReview
        ? `It works once, until ${formatTime(until)}.`
        : `Or use the link below. Either works once, until ${formatTime(until)}.`,
    ],
    action: { label: 'Open it', url: link },
    footer: 'If you did not ask for this, ignore this mail: nobody comes in without the code.',
  }),
  access_request: ({ link, email, drop }, service) => ({
    subject: `${email} asks to see ${drop}`,
    paragraphs: [
      `${email} would like to see ${drop}, which only the viewers that you name can open.`,
      'If you let them in, they are put on the list and get a mail. If not, do nothing.',
    ],
    action: { label: 'Let them in', url: link },
    footer: toOwner(service),
  }),
  thread_mention: ({ link, drop, name, body }) => ({
    subject: `${name} mentions you in a comment on ${drop}`,
    paragraphs: [`${name} wrote: ${shortened(body)}`, 'Comments are written by people who were let in to the drop.'],
    action: { label: 'Open it at the place', url: link },
    footer: 'You get this mail because you may see this drop and a comment names your address.',
  }),
  thread_digest: ({ link, drop, messages, more }) => ({
    subject: `${messages.length + more === 1 ? 'A new comment' : `${messages.length + more} new comments`} on ${drop}`,
    paragraphs: [
      `This was said about ${drop}:`,
      ...messages.map(({ name, page, body }) => `${name} on ${page}: ${shortened(body)}`),
      ...(more === 0 ? [] : [`And ${more} more.`]),
    ],
    action: { label: 'Read and answer', url: link },
    footer: 'The settings of the drop say how often you are told.',
  }),
}

export function renderMail<Name extends MailTemplate>(
  template: Name,
  data: MailData[Name],
  look: Look = HOUSE_LOOK,
): RenderedMail {
  const raw = letters[template](data, look.name)
  // What users named may hold line breaks; a header, a heading and a paragraph each are one line.
  const [first, ...others] = raw.paragraphs
  const letter: Letter = {
    ...raw,
    subject: oneLine(raw.subject).slice(0, MAX_SUBJECT_CHARS),
    paragraphs: [oneLine(first), ...others.map(oneLine)],
    ...(raw.items ? { items: raw.items.map((item) => ({ ...item, name: oneLine(item.name) })) } : {}),
  }
  return { subject: letter.subject, text: textOf(letter, look), html: asciiHtml(htmlOf(letter, look)) }
}

function textOf(
  { subject, paragraphs: [first, ...others], items = [], action, footer }: Letter,
  { name: service }: Look,
): string {
  const link = action ? [`${action.label}:\n${action.url}`] : []
  const list = items.map(({ name, url, note }) => `* ${name}\n  ${url}\n  ${note}`)
  return [subject, first, ...list, ...others, ...link, `-- \n${service}\n${footer}`].join('\n\n') + '\n'
}

function htmlOf({ subject, paragraphs, items, action, footer }: Letter, look: Look): string {
  const document = {
    preview: paragraphs[0],
    heading: subject,
    paragraphs,
    ...(items ? { items } : {}),
    ...(action ? { action } : {}),
    footer,
  }
  return mailDocument(document, look)
}

/** Names that users chose may hold any letter; as references the part stays 7-bit and no mail path rewrites it. */
function asciiHtml(html: string): string {
  return html.replace(/[^\p{ASCII}]/gu, (character) => `&#${character.codePointAt(0)};`)
}

/** As much of a comment as tells what it is about. */
const MAX_TOLD_CHARS = 300

function shortened(text: string): string {
  const line = oneLine(text)
  return line.length <= MAX_TOLD_CHARS ? line : `${line.slice(0, MAX_TOLD_CHARS)}...`
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

function countOf(drops: number, one: string, many: string): string {
  return drops === 1 ? `Your drop ${one}` : `${drops} of your drops ${many}`
}

function itOrThem(drops: readonly unknown[]): string {
  return drops.length === 1 ? 'it' : 'them'
}

function pausedOf(drops: number, domains: number): string {
  const parts = [plural(drops, 'drop'), plural(domains, 'domain')].filter((part) => part !== undefined)
  return `${parts.join(' and ')} ${drops + domains === 1 ? 'is' : 'are'} paused`
}

function plural(count: number, noun: string): string | undefined {
  return count === 0 ? undefined : count === 1 ? `1 ${noun}` : `${count} ${noun}s`
}

/** ` on 1 March 2026`; where the dates differ, the first of them and that it is the first. */
function onFirstDay(drops: readonly { at: Date }[]): string {
  const days = [...new Set(drops.toSorted((a, b) => a.at.getTime() - b.at.getTime()).map(({ at }) => formatDay(at)))]
  return days.length > 1 ? `, the first on ${days[0]}` : ` on ${days[0]}`
}

function formatDay(date: Date): string {
  return date.toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })
}

function formatTime(date: Date): string {
  return `${formatDay(date)}, ${date.toISOString().slice(11, 16)} UTC`
}
