/**
 * The programs that ask for access. They are public (RFC 8252): no secret is handed out. Two kinds:
 * 1. registered ones (RFC 7591): the id itself carries name and redirects, signed, so that it never lapses while some
 *    program remembers it, and nothing has to be kept for those that never come back;
 * 2. those that describe themselves in a document at an https address, which is then their id.
 */
import { LRUCache } from 'lru-cache'
import { DAY_MS, MINUTE_MS, type Clock } from '../../../shared/running/clock.ts'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import { randomSecret, type Secrets } from '../../../shared/secrets/secrets.ts'
import type { Pool } from '../../ground/database/sql.ts'
import type { RateLimiter } from '../../ground/http/limits/rate-limit.ts'
import * as queries from './queries.ts'
import {
  clientDocumentSchema,
  GRANT_TYPES,
  isClientDocumentUrl,
  OAuthError,
  registrationSchema,
  UnreachableDocument,
  UntrustedRequest,
} from './rules.ts'

/** Registrations of earlier releases are rows; unused for longer than the longest refresh token lives, they go. */
const IDLE_LIFETIME_MS = 90 * DAY_MS
/** A person connects a few apps a day, an office behind one address some dozens. */
const REGISTRATIONS = { points: 100, windowSeconds: 3600 }
/** Any caller can make us fetch a stranger's document; none shall make us flood that stranger. */
const DOCUMENTS = { points: 30, windowSeconds: 60 }
const DOCUMENT_LIMITS = { maxBytes: 64 * 1024, timeoutMs: 3000 }
/** Consent asks for the document twice, for the page and for the decision. */
const DOCUMENT_CACHE = { max: 200, ttl: 5 * MINUTE_MS }

const ID_PREFIX = 'cli_'
/** Two installations of one program are two clients: neither can use the other's codes and tokens. */
const NONCE_BYTES = 9
type Carried = [nonce: string, name: string, ...redirectUris: string[]]

export interface Client extends queries.ClientRow {
  /** The host whose document describes the client; a registered one has only named itself. */
  readonly verifiedHost?: string
}

export interface ClientsDependencies {
  sql: Pool
  clock: Clock
  secrets: Pick<Secrets, 'sign' | 'verify'>
  limiter: RateLimiter
  /** May clients describe themselves in a document? Without it they register. */
  readsClientDocuments: boolean
  /** Reads a client's document from the public internet. */
  fetchDocument(url: string, limits: { maxBytes: number; timeoutMs: number }): Promise<Buffer>
}

/** RFC 7591 §2, and the refreshing that every client of ours may do. */
const DEFAULT_GRANTS: readonly string[] = ['authorization_code', 'refresh_token']

/** RFC 7591 §3.2.1. */
export interface Registration {
  readonly client_id: string
  readonly client_id_issued_at: number
  readonly client_name: string
  readonly redirect_uris: readonly string[]
  readonly grant_types: readonly string[]
  readonly response_types: readonly string[]
  readonly token_endpoint_auth_method: 'none'
}

export interface Clients {
  register(body: unknown, ip: string): Promise<Registration>
  /** Throws UntrustedRequest when the client's own document does not speak for it. */
  find(clientId: string, ip: string): Promise<Client | undefined>
  /** Without asking anyone else: a document's address is a client as soon as it was allowed something. */
  mayExist(clientId: string): Promise<boolean>
  sweep(): Promise<void>
}

export function createClients({
  sql,
  clock,
  secrets,
  limiter,
  readsClientDocuments,
  fetchDocument,
}: ClientsDependencies): Clients {
  const documents = new LRUCache<string, Client>(DOCUMENT_CACHE)

  function idOf(name: string, redirectUris: readonly string[]): string {
    const carried = Buffer.from(JSON.stringify([randomSecret(NONCE_BYTES), name, ...redirectUris])).toString(
      'base64url',
    )
    return `${ID_PREFIX}${carried}.${secrets.sign('oauth-client', carried)}`
  }

  /** The registration that an id carries; undefined when it carries none, or not one of ours. */
  function readId(clientId: string): Client | undefined {
    const [carried = '', signature] = clientId.slice(ID_PREFIX.length).split('.')
    if (!clientId.startsWith(ID_PREFIX) || signature === undefined) return undefined
    if (!secrets.verify('oauth-client', carried, signature)) return undefined
    const [, name, ...redirectUris] = JSON.parse(Buffer.from(carried, 'base64url').toString()) as Carried
    return { id: clientId, name, redirect_uris: redirectUris }
  }

  async function registered(clientId: string): Promise<Client | undefined> {
    return readId(clientId) ?? (await queries.findClient(sql, clientId))
  }

  async function readDocument(clientId: string, ip: string): Promise<Client> {
    const known = documents.get(clientId)
    if (known) return known
    await limiter.consume('oauth-document', limitKeyOfIp(ip), DOCUMENTS)
    const bytes = await fetchDocument(clientId, DOCUMENT_LIMITS).catch((error: Error) => {
      throw new UnreachableDocument(
        `The client's metadata document could not be read: ${error.message}. It describes itself at ${new URL(clientId).host}, which does not answer us. Connect it again; it can register here instead.`,
      )
    })
    const document = clientDocumentSchema.safeParse(parseJson(bytes))
    if (!document.success || document.data.client_id !== clientId)
      throw new UntrustedRequest("The client's metadata document does not describe this client.")
    const client = {
      id: clientId,
      name: document.data.client_name ?? new URL(clientId).hostname,
      redirect_uris: document.data.redirect_uris,
      verifiedHost: new URL(clientId).host,
    }
    documents.set(clientId, client)
    return client
  }

  return {
    async register(body, ip) {
      await limiter.consume('oauth-register', limitKeyOfIp(ip), REGISTRATIONS)
      const parsed = registrationSchema.safeParse(body)
      if (!parsed.success) throw refusedRegistration(parsed.error.issues)
      const { client_name: name = 'Unnamed client', redirect_uris: redirectUris } = parsed.data
      return {
        client_id: idOf(name, redirectUris),
        client_id_issued_at: Math.floor(clock.now() / 1000),
        client_name: name,
        redirect_uris: redirectUris,
        grant_types: GRANT_TYPES.filter((type) => (parsed.data.grant_types ?? DEFAULT_GRANTS).includes(type)),
        response_types: redirectUris.length > 0 ? ['code'] : [],
        token_endpoint_auth_method: 'none',
      }
    },

    find(clientId, ip) {
      return readsClientDocuments && isClientDocumentUrl(clientId) ? readDocument(clientId, ip) : registered(clientId)
    },

    async mayExist(clientId) {
      return isClientDocumentUrl(clientId) || (await registered(clientId)) !== undefined
    },

    async sweep() {
      await queries.deleteIdleClients(sql, new Date(clock.now() - IDLE_LIFETIME_MS))
    },
  }
}

/** RFC 7591 §3.2.2. */
function refusedRegistration([issue]: readonly { path: PropertyKey[]; message: string }[]): OAuthError {
  if (!issue) return new OAuthError('invalid_client_metadata', 'The registration cannot be read.')
  const code = issue.path[0] === 'redirect_uris' ? 'invalid_redirect_uri' : 'invalid_client_metadata'
  return new OAuthError(code, issue.path.length === 0 ? issue.message : `${issue.path.join('.')}: ${issue.message}`)
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}
