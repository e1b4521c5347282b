/**
 * One order at an ACME CA (RFC 8555), from the account to the chain:
 *   1. the CA must answer at all, else nothing is counted against the name
 *   2. order → authorizations → every proof is shown, over HTTP or in the DNS → the CA is told → it has looked
 *   3. a fresh P-256 key signs the request, the chain is fetched
 */
import { readFileSync } from 'node:fs'
import { Agent } from 'node:https'
import acme from 'acme-client'
import type { Redis } from 'ioredis'
import type { CertificateBundle } from '../../shared/certificates/bundle.ts'
import { certifiedNames } from '../../shared/certificates/own-names.ts'
import { SECOND_MS, systemClock, type Clock } from '../../shared/running/clock.ts'
import type { Secrets } from '../../shared/secrets/secrets.ts'
import type { Dns01 } from '../dns/dns01.ts'
import { forgetRegistration, openAccount } from './account.ts'
import { takeProofsTurn } from './order-lock.ts'
import { createDnsProver, createHttpProver, type OpenChallenge, type Prover } from './provers.ts'
import { parseRetryAfter, renewalId, renewalInfoSchema, type RenewalAdvice } from './renewal-info.ts'
import { IssueError, type CertificateSource } from '../source.ts'

const REQUEST_TIMEOUT_MS = 15 * SECOND_MS
/** How the CA's word is awaited: from 250 ms apart to 4 s apart, about a minute in all. */
const BACKOFF = { backoffAttempts: 20, backoffMin: 250, backoffMax: 4000 }
/** A CA may hand out a used nonce many times in a row when several edges ask at once. */
const MAX_BAD_NONCE_RETRIES = 30
/** RFC 5280 §5.3.1 cessationOfOperation. */
const REASON_CESSATION = 5

export interface AcmeSettings {
  readonly directoryUrl: string
  readonly email: string | undefined
  /** Root of a private CA's own HTTPS. */
  readonly caFile: string | undefined
}

export interface AcmeSourceDependencies {
  readonly redis: Redis
  readonly secrets: Secrets
  readonly clock: Clock
  readonly acme: AcmeSettings
  /** How names are proven by DNS, and which are the service's own; undefined where that is not set up. */
  readonly dns?: { readonly client: Dns01; readonly names: readonly string[] } | undefined
}

type Order = Awaited<ReturnType<acme.Client['createOrder']>>
type Challenge = Awaited<ReturnType<acme.Client['getAuthorizations']>>[number]['challenges'][number]

export function createAcmeSource({
  redis,
  secrets,
  clock,
  acme: settings,
  dns,
}: AcmeSourceDependencies): CertificateSource {
  configureTransport(settings.caFile)
  let client: acme.Client | undefined
  const http = createHttpProver(redis)

  const isOwn = (name: string): boolean => dns?.names.includes(name) === true

  /** Only a wildcard must be proven by DNS; a host of ours whose zone is not the operator's to change is not. */
  async function proverOf(name: string): Promise<Prover> {
    const isWildcard = name.startsWith('*.')
    if (!dns && isWildcard)
      throw new IssueError('internal', 'wildcards are proven by DNS: set DNS01 on every edge, as on control')
    const isByDns = dns !== undefined && (isWildcard || (isOwn(name) && (await dns.client.covers(name))))
    return isByDns ? createDnsProver(dns.client, () => takeProofsTurn(redis)) : http
  }

  async function openClient(): Promise<acme.Client> {
    if (client) return client
    const account = await openAccount({
      redis,
      secrets,
      directoryUrl: settings.directoryUrl,
      async register(key) {
        const fresh = newClient(settings.directoryUrl, { key, url: undefined })
        await fresh.createAccount({
          termsOfServiceAgreed: true,
          ...(settings.email === undefined ? {} : { contact: [`mailto:${settings.email}`] }),
        })
        return fresh.getAccountUrl()
      },
    })
    return (client = newClient(settings.directoryUrl, account))
  }

  async function order(name: string, replaces: string | undefined): Promise<CertificateBundle> {
    const ca = await openClient()
    // The name above a customer's wildcard is another matter: it may lead elsewhere.
    const names = isOwn(name) ? certifiedNames(name) : [name]
    const prover = await proverOf(name)
    const placed = await placeOrder(ca, names, replaces)
    await authorize(ca, placed, prover)
    const key = await acme.crypto.createPrivateEcdsaKey('P-256')
    const [, request] = await acme.crypto.createCsr({ altNames: names }, key)
    const finalized = await ca.finalizeOrder(placed, request)
    return { cert: await ca.getCertificate(finalized), key: key.toString() }
  }

  return {
    async obtain(name, previous) {
      const { renewalInfo } = await requireDirectory(settings.directoryUrl)
      try {
        return await order(name, previous && renewalInfo !== undefined ? renewalId(previous.cert) : undefined)
      } catch (error) {
        const failure = asIssueError(error)
        if (failure.reason === 'ca_refused') {
          client = undefined
          await forgetRegistration({ redis, secrets, directoryUrl: settings.directoryUrl })
        }
        throw failure
      }
    },
    async revoke({ cert }) {
      const ca = await openClient()
      await ca.revokeCertificate(cert, { reason: REASON_CESSATION })
    },
    renewalAdvice: ({ cert }) => readRenewalInfo(settings.directoryUrl, cert, clock),
  }
}

/** All proofs of an order are there before the CA is told of the first: a resolver may keep what it has read. */
async function authorize(ca: acme.Client, placed: Order, prover: Prover): Promise<void> {
  const asked: { challenge: Challenge; open: OpenChallenge }[] = []
  for (const { status, identifier, challenges } of await ca.getAuthorizations(placed)) {
    if (status === 'valid') continue
    const challenge = challenges.find(({ type }) => type === prover.type)
    if (!challenge)
      throw new IssueError('ca_refused', `the CA offers no ${prover.type} challenge for ${identifier.value}`)
    const answer = await ca.getChallengeKeyAuthorization(challenge)
    asked.push({ challenge, open: { host: identifier.value, token: challenge.token, answer } })
  }
  const open = asked.map((one) => one.open)
  try {
    await prover.announce(open)
    for (const { challenge } of asked) {
      await ca.completeChallenge(challenge)
      await ca.waitForValidStatus(challenge)
    }
  } catch (error) {
    throw (await challengeFailure(ca, placed)) ?? error
  } finally {
    await prover.withdraw(open).catch(() => {})
  }
}

/** acme-client has one HTTP transport for the whole process; it is set up here and nowhere else. */
function configureTransport(caFile: string | undefined): void {
  const defaults = acme.axios.defaults as typeof acme.axios.defaults & { acmeSettings: Record<string, number> }
  defaults.timeout = REQUEST_TIMEOUT_MS
  // The retry schedule is ours. The client's own would sleep for as long as Retry-After says, with the lock in hand.
  defaults.acmeSettings['retryMaxAttempts'] = 0
  const { response } = acme.axios.interceptors
  response.clear()
  response.use(null, onRejected)
  if (caFile !== undefined) defaults.httpsAgent = new Agent({ ca: readFileSync(caFile), keepAlive: false })
}

interface CaResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly data: unknown
  /** What acme-client keeps of a request's own `validateStatus`, to make every answer pass through an interceptor. */
  readonly config: { readonly retryValidateStatus?: ((status: number) => boolean) | null }
}

/**
 * Takes the place of acme-client's interceptor, which only retries (we do not let it) and throws a TypeError about a missing
 * answer where there is none, so that no one learns why.
 */
function onRejected(error: unknown): unknown {
  const { response } = error as { readonly response?: CaResponse }
  if (response === undefined) throw noAnswer(error)
  requireAnswer(response)
  const isValid = response.config.retryValidateStatus
  if (isValid && !isValid(response.status)) throw error
  return response
}

/** What a CA refuses, it gives a type to; a CA that is overloaded or limits us says for how long. acme-client drops both. */
function requireAnswer({ status, headers, data }: CaResponse): void {
  const problem = (data ?? {}) as Problem
  const kind = kindOf(problem)
  if (status === 429 || status >= 500)
    throw new IssueError('ca_unavailable', problem.detail ?? `status ${status}`, {
      problem: kind,
      retryAfterMs: parseRetryAfter(headers['retry-after'], systemClock.now()),
    })
  // A refused nonce is acme-client's own business.
  if (status < 400 || kind === undefined || kind === 'badNonce') return
  // `unauthorized` is about a domain when a challenge failed, and about our account when a request did.
  throw kind === 'unauthorized' ? refusal('ca_refused', problem) : asRefusal(problem)
}

function noAnswer(cause: unknown): IssueError {
  const message = `the certificate authority does not answer: ${messageOf(cause)}`
  return new IssueError('ca_unavailable', message, { cause, hasAnswered: false })
}

function newClient(directoryUrl: string, account: { key: string; url: string | undefined }): acme.Client {
  const client = new acme.Client({ directoryUrl, accountKey: account.key, accountUrl: account.url, ...BACKOFF })
  // Not in its types; its own 5 are too few, see above.
  const http = Reflect.get(client, 'http') as { maxBadNonceRetries: number }
  http.maxBadNonceRetries = MAX_BAD_NONCE_RETRIES
  return client
}

interface Directory {
  readonly renewalInfo?: string
}

async function requireDirectory(url: string): Promise<Directory> {
  try {
    return (await acme.axios.get<Directory>(url)).data
  } catch (error) {
    throw error instanceof IssueError ? error : noAnswer(error)
  }
}

/** With the word that it replaces another (RFC 9773 §5); a CA may refuse that, not having issued the other one. */
async function placeOrder(ca: acme.Client, names: readonly string[], replaces: string | undefined): Promise<Order> {
  const identifiers = names.map((value) => ({ type: 'dns', value }))
  const wish: Parameters<acme.Client['createOrder']>[0] = { identifiers }
  if (replaces === undefined) return ca.createOrder(wish)
  try {
    return await ca.createOrder({ ...wish, replaces } as typeof wish)
  } catch (error) {
    if (asIssueError(error).reason === 'ca_unavailable') throw error
    return ca.createOrder(wish)
  }
}

async function readRenewalInfo(directoryUrl: string, cert: string, clock: Clock): Promise<RenewalAdvice | undefined> {
  const { renewalInfo } = await requireDirectory(directoryUrl)
  const id = renewalId(cert)
  if (renewalInfo === undefined || id === undefined) return undefined
  const reply = await acme.axios.get<unknown>(`${renewalInfo.replace(/\/$/, '')}/${id}`)
  return {
    window: renewalInfoSchema.parse(reply.data),
    retryAfterMs: parseRetryAfter(reply.headers['retry-after'], clock.now()),
  }
}

/** What the CA itself says about the failed challenge, in its own words. */
async function challengeFailure(ca: acme.Client, placed: Order): Promise<IssueError | undefined> {
  const authorizations = await ca.getAuthorizations(placed).catch(() => [])
  for (const { challenges } of authorizations) {
    const error = challenges.map((challenge) => (challenge as { error?: Problem }).error).find((problem) => problem)
    if (error) return asRefusal(error)
  }
  return undefined
}

interface Problem {
  readonly type?: string
  readonly detail?: string
}

/** RFC 8555 §6.7 */
const REASONS: ReadonlyMap<string, IssueError['reason']> = new Map([
  ['dns', 'dns'],
  ['caa', 'caa_forbids'],
  ['connection', 'challenge_unreachable'],
  ['unauthorized', 'challenge_wrong'],
  ['incorrectResponse', 'challenge_wrong'],
])

/** A CA's words are quoted to the owner, no longer than this. */
const MAX_DETAIL_CHARS = 500

function asRefusal(problem: Problem): IssueError {
  return refusal(reasonOf(problem), problem)
}

function refusal(reason: IssueError['reason'], problem: Problem): IssueError {
  const detail = (problem.detail ?? 'no reason given').slice(0, MAX_DETAIL_CHARS)
  return new IssueError(reason, detail, { problem: kindOf(problem) })
}

function kindOf({ type }: Problem): string | undefined {
  return type?.replace('urn:ietf:params:acme:error:', '')
}

function reasonOf(problem: Problem): IssueError['reason'] {
  // Some CAs report CAA and look-up failures under a broader type; the text is then the only sign.
  if (/\bCAA\b/.test(problem.detail ?? '')) return 'caa_forbids'
  return REASONS.get(kindOf(problem) ?? '') ?? 'ca_refused'
}

function asIssueError(error: unknown): IssueError {
  if (error instanceof IssueError) return error
  const isTransport = (error as { isAxiosError?: boolean }).isAxiosError === true
  return new IssueError(isTransport ? 'ca_unavailable' : 'ca_refused', messageOf(error), { cause: error })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
