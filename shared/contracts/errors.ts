import { nearestName } from '../values/nearest-name.ts'

/**
 * The one catalogue of errors that a caller can meet: code, status and a message that says what to do.
 * Throw them; control/ground/http turns them into `{ error, detail }`.
 */

/** A message may quote what was sent; no reader needs more of it, and a megabyte must not come back as one. */
const MAX_DETAIL_CHARS = 2000

/** What is away now is usually back by then. */
export const RETRY_SECONDS = 2

export class ApiError extends Error {
  readonly status: number
  readonly code: string
  /** Further fields of the body (`portal_url`, `id`). */
  readonly fields: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    code: string,
    detail: string,
    extra: { fields?: Readonly<Record<string, unknown>>; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(detail.length <= MAX_DETAIL_CHARS ? detail : `${detail.slice(0, MAX_DETAIL_CHARS - 1)}…`)
    this.status = status
    this.code = code
    this.fields = extra.fields ?? {}
    this.headers = extra.headers ?? {}
  }

  toBody(): Record<string, unknown> {
    return { error: this.code, detail: this.message, ...this.fields }
  }

  /** The same error in other words. */
  saying(detail: string): ApiError {
    return new ApiError(this.status, this.code, detail, { fields: this.fields, headers: this.headers })
  }
}

/** What else can be in the way of a change. Each has its row in the page of error codes, like all codes of this file. */
export type ConflictCode =
  | 'already_enrolled'
  | 'already_member'
  | 'already_sent'
  | 'domain_taken'
  | 'expired'
  | 'not_confirmed'
  | 'organisation_has_members'
  | 'owner_not_verified'
  | 'owner_role'
  | 'paused'
  | 'personal_organisation'

export const errors = {
  invalidRequest: (detail: string) => new ApiError(400, 'invalid_request', detail),
  invalidJson: (detail = 'The body is not valid JSON.') => new ApiError(400, 'invalid_json', detail),
  unsupportedBundle: (name: string) =>
    new ApiError(
      400,
      'unsupported_file_type',
      `"${name}" is not a .zip. Send one .zip in "file", or single files in "files" with "paths".`,
    ),
  missingFilename: () =>
    new ApiError(
      400,
      'invalid_request',
      'The field "file" has no filename. Send it as a file, with a name that says what it is, such as page.html.',
    ),
  /** `takes`: without an account only pages are taken. */
  unsupportedFileType: (name: string, takes: 'page' | 'anything') =>
    new ApiError(
      400,
      'unsupported_file_type',
      takes === 'page'
        ? `"${name}" cannot be published as a single file without an account. Use .html, .htm, .md or .markdown. A folder, a .zip, a PDF, an image, a video or a text needs an account.`
        : `"${name}" cannot be published by itself. Use a page (.html, .md), a PDF, an image, a video, a sound or a text file. A folder or a .zip with an index.html is published as a bundle (POST …/upload-bundle).`,
    ),
  headersTooLarge: (maxBytes: number) =>
    new ApiError(431, 'headers_too_large', `The headers of a request may have ${maxBytes / 1024} kB together.`),
  documentNotMeant: (name: string) =>
    new ApiError(
      400,
      'unsupported_file_type',
      `"${name}" is no page. Use .html, .htm, .md or .markdown, or send as=document before the file, and a small page shows it.`,
    ),
  /** `what` begins the sentence: "A folder". */
  needsAccount: (what: string) =>
    new ApiError(
      400,
      'invalid_request',
      `${what} needs an account. Without one, publish one file at a time: .html, .htm, .md or .markdown.`,
    ),
  missingIndex: (detail = 'The bundle has no index.html at its root. Add one, or upload the folder that holds it.') =>
    new ApiError(400, 'missing_index', detail),
  /** `field`: its name, blank where it has none. */
  noText: (field: string) =>
    new ApiError(
      400,
      'invalid_request',
      `${field === '' ? '' : `${field}: `}holds U+0000 or half of a surrogate pair, which are no characters. Leave them out.`,
    ),
  /** RFC 3629. */
  notUtf8: (what: string) => new ApiError(400, 'invalid_request', `The ${what} is not valid UTF-8.`),
  tooManyFields: (most: number) =>
    new ApiError(400, 'invalid_request', `The form has more than ${most} fields. Send only those that it asks for.`),
  tooManyFiles: (most: number) => new ApiError(400, 'invalid_request', `A bundle holds at most ${most} files.`),
  archiveRejected: (detail: string) => new ApiError(400, 'archive_rejected', detail),
  /** `blocked`: path and what it looks like, of each. */
  secretFiles: (blocked: readonly { path: string; what: string }[]) =>
    new ApiError(
      400,
      'secret_files',
      `Nothing was published: ${blocked
        .slice(0, 5)
        .map(({ path, what }) => `"${path}" looks like ${what}`)
        .join(
          ', ',
        )}${blocked.length > 5 ? ` and ${blocked.length - 5} more like these` : ''}. Leave it out, or allow secrets if everyone may read it.`,
      { fields: { blocked } },
    ),
  contentRejected: (detail: string) => new ApiError(400, 'content_rejected', detail),
  unauthorized: (detail = 'Send a valid API token: Authorization: Bearer dw_…', headers: Record<string, string> = {}) =>
    new ApiError(401, 'unauthorized', detail, { headers: { 'www-authenticate': 'Bearer', ...headers } }),
  /** The same words for an unknown e-mail and a wrong password. */
  wrongCredentials: (detail = 'The e-mail or the password is not right.') =>
    new ApiError(401, 'wrong_credentials', detail),
  /** The password was right. `pending` stands for it while the code is typed. */
  secondFactorRequired: (pending: string) =>
    new ApiError(401, 'second_factor_required', 'Enter the code of your generator, or a recovery code.', {
      fields: { pending },
    }),
  wrongCode: () =>
    new ApiError(401, 'wrong_code', 'This code is not right, or it was used before. Wait for the next one.'),
  stepUpRequired: () =>
    new ApiError(403, 'step_up_required', 'Prove that it is you first: enter a code at /account/prove.', {
      fields: { prove: '/account/prove' },
    }),
  emailNotVerified: () =>
    new ApiError(403, 'email_not_verified', 'Open the link in the verification mail first, or ask for a new one.'),
  forbidden: (detail: string) => new ApiError(403, 'forbidden', detail),
  /** `instead`: what to do, as a sentence. */
  anonymousOff: (instead = 'Sign in first.') =>
    new ApiError(403, 'anonymous_off', `Publishing without an account is switched off here. ${instead}`),
  /** The sign-in provider's answer is refused, or it has refused the person. `why`: a sentence about it. */
  providerRefused: (why: string) =>
    new ApiError(401, 'provider_refused', `Your organisation's sign-in did not work. ${why}`),
  /** The provider was asked without a page of its own, and would have to show one. */
  providerAsks: () =>
    new ApiError(401, 'provider_refused', "Your organisation's sign-in has a question for you.", {
      fields: { asks: true },
    }),
  providerAway: () =>
    new ApiError(503, 'provider_away', "Your organisation's sign-in does not answer just now. Try again shortly.", {
      headers: { 'retry-after': '10' },
    }),
  passwordSignInOff: () =>
    new ApiError(403, 'password_sign_in_off', "Passwords are switched off here. Use your organisation's sign-in."),
  /** `why`: who may have an account here. */
  signUpClosed: (why: string) => new ApiError(403, 'sign_up_closed', why),
  /** RFC 6750 §3.1. `needs`: a scope, or what no scope covers. */
  insufficientScope: (needs: string, has: string) => {
    const isScope = ['read', 'publish', 'manage'].includes(needs)
    return new ApiError(
      403,
      'insufficient_scope',
      isScope
        ? `This needs the scope ${needs}; the token has ${has}. Use a token with that scope.`
        : 'No scope of a token covers this. Do it in the dashboard.',
      {
        fields: { needs: isScope ? needs : 'session' },
        headers: { 'www-authenticate': `Bearer error="insufficient_scope"${isScope ? `, scope="${needs}"` : ''}` },
      },
    )
  },
  /** `upgrade`: which plans have it, as a sentence; blank where none is sold. */
  planFeature: (feature: string, upgrade: string) =>
    new ApiError(403, 'plan_feature', `${feature} is not part of your plan.${upgrade}`),
  /** What the organisation has decided for all of its drops. */
  policy: () =>
    new ApiError(
      403,
      'policy',
      'Your organisation allows no public drops: only named viewers may see them. Use access_mode "viewers", or ask an admin to change visibility_policy.',
    ),
  planLimit: (detail: string) => new ApiError(403, 'plan_limit', detail),
  /** A bound that every plan has: no upgrade moves it. */
  limitReached: (detail: string) => new ApiError(403, 'limit_reached', detail),
  invalidLink: (detail = 'This link does not work any more. Ask for a new one.') =>
    new ApiError(400, 'invalid_link', detail),
  notFound: (what = 'drop') => new ApiError(404, 'not_found', `There is no such ${what}, or it is not yours.`),
  noSuchFile: (path: string, paths: readonly string[]) => {
    const nearest = nearestName(path, paths.slice(0, 2000))
    const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`
    return new ApiError(404, 'not_found', `There is no file "${path}" in the live version.${hint}`)
  },
  methodNotAllowed: (allow: string) =>
    new ApiError(405, 'method_not_allowed', `This address answers ${allow}.`, { headers: { allow } }),
  slugTaken: (slug: string) => new ApiError(409, 'slug_taken', `The address "${slug}" is taken. Choose another.`),
  slugReserved: (slug: string) =>
    new ApiError(409, 'slug_reserved', `The address "${slug}" is reserved. Choose another.`),
  slugPrefixed: (slug: string) =>
    new ApiError(
      409,
      'slug_reserved',
      `The address "${slug}" has two hyphens in a row, which international names and previews have. Choose another, or use one hyphen.`,
    ),
  conflict: (code: ConflictCode, detail: string) => new ApiError(409, code, detail),
  /** A provider vouches for an address whose account here was never verified. */
  unverifiedNamesake: () =>
    new ApiError(
      409,
      'email_taken',
      'There is an account with this address that was never verified. Open the link in its verification mail, or reset its password; then sign in again.',
    ),
  emailTaken: () =>
    new ApiError(409, 'email_taken', 'There is an account with this e-mail already. Sign in, or reset its password.'),
  subscriptionExists: (portalUrl: string) =>
    new ApiError(409, 'subscription_exists', 'There is already a subscription. Change it in the billing portal.', {
      fields: { portal_url: portalUrl },
    }),
  versionChanged: (detail: string) => new ApiError(412, 'version_changed', detail),
  wouldRemoveFiles: (slug: string, version: number, paths: readonly string[]) =>
    new ApiError(
      409,
      'would_remove_files',
      `This would remove ${paths.length} of the files of "${slug}" (version ${version}): ${paths.slice(0, 10).join(', ')}${paths.length > 10 ? ', …' : ''}.`,
      { fields: { removed: paths.slice(0, 100) } },
    ),
  uploadTooLarge: (capBytes: number) =>
    new ApiError(
      413,
      'upload_too_large',
      `The upload is larger than ${capBytes / 1_000_000} MB. Make it smaller, or publish it from an account with a plan that allows more.`,
    ),
  bodyTooLarge: (maxBytes: number) =>
    new ApiError(413, 'upload_too_large', `The body is larger than ${maxBytes} bytes.`),
  fieldsTooLarge: (maxBytes: number) =>
    new ApiError(
      413,
      'upload_too_large',
      `The text fields of the form are larger than ${maxBytes / 1_000_000} MB. Send content as files, many files as one .zip.`,
    ),
  fieldTooLarge: (maxBytes: number) =>
    new ApiError(413, 'upload_too_large', `A field of the form is larger than ${maxBytes} bytes.`),
  bodyTooSlow: () => new ApiError(408, 'timeout', 'The body arrived too slowly, or stopped. Send it again.'),
  requestTooSlow: () => new ApiError(408, 'invalid_request', 'The request did not arrive in time. Try again.'),
  addressTooLong: () =>
    new ApiError(414, 'address_too_long', 'The address of this request is too long. Send less in its query.'),
  misdirected: () =>
    new ApiError(421, 'misdirected_request', 'This connection was opened for another host. Open a new one.'),
  unsupportedMediaType: (expected: string) => new ApiError(400, 'invalid_request', `Send the body as ${expected}.`),
  /** RFC 9110 §8.4 and §15.5.16. */
  unsupportedEncoding: () =>
    new ApiError(
      415,
      'unsupported_encoding',
      'The body is compressed (Content-Encoding). Send it as it is; files in it may be compressed, as in a .zip.',
      { headers: { 'accept-encoding': 'identity' } },
    ),
  rateLimited: (retryAfterSeconds: number, detail = 'Too many requests. Wait, then try again.') =>
    new ApiError(429, 'rate_limited', detail, {
      headers: { 'retry-after': String(Math.max(1, Math.ceil(retryAfterSeconds))) },
    }),
  /** The field `challenge` and `bits` say what to solve (shared/secrets/proof-of-work.ts). */
  proofRequired: (challenge: { challenge: string; bits: number }) =>
    new ApiError(
      429,
      'proof_required',
      'Many wrong passwords were tried here lately, perhaps by someone else. Your browser has to do a small calculation before the next try.',
      { fields: { ...challenge }, headers: { 'retry-after': '1' } },
    ),
  /** As proofRequired, for a publish without an account that looks automated. */
  publishProofRequired: (challenge: { challenge: string; bits: number } | undefined) =>
    new ApiError(
      403,
      'proof_required',
      'Find a nonce so that sha256("<challenge>:<nonce>") starts with that many zero bits, and send the text in the header dropway-proof.',
      { fields: { ...challenge } },
    ),
  paymentsNotConfigured: (detail: string) => new ApiError(503, 'payments_not_configured', detail),
  paymentsUnavailable: () =>
    new ApiError(503, 'payments_unavailable', 'The payment processor does not answer. Try again in a moment.', {
      headers: { 'retry-after': '10' },
    }),
  internal: (id: string) =>
    new ApiError(500, 'internal', 'Something failed on our side. Try again; if it stays, quote this id.', {
      fields: { id },
    }),
  /** Every control and the database are well, and an edge cannot serve what was published: it was taken back. */
  notServed: (reason: string) =>
    new ApiError(
      503,
      'not_served',
      `Nothing was published: an edge cannot serve this version (${reason}). Visitors see what they saw before. Try again; if it stays, tell the operator of the service that "admin doctor" says more.`,
      { headers: { 'retry-after': '5' } },
    ),
  unavailable: (detail: string) =>
    new ApiError(503, 'unavailable', detail, { headers: { 'retry-after': String(RETRY_SECONDS) } }),
  /** The edge has no answer from control: `status` is 502, 503 or 504. */
  noAnswer: (status: number, id: string) =>
    new ApiError(status, 'unavailable', 'The service does not answer just now. Try again shortly.', {
      fields: { id },
      headers: { 'retry-after': String(RETRY_SECONDS) },
    }),
  /** An error that another thread or the service has made, made again here. */
  relayed: ({ status, code, detail }: { readonly status: number; readonly code: string; readonly detail: string }) =>
    new ApiError(status, code, detail),
}
