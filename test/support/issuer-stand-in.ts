/**
 * Stands in for forges that sign who runs a job: OpenID discovery, published keys, and the address at which a job asks for
 * its token. Each name below is an issuer of its own on the same server; what is wrong with one is in its name.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWTPayload } from 'jose'
import { keepIdleConnections } from './idle-connections.ts'

const ISSUERS = ['good', 'other', 'slow', 'huge', 'redirecting', 'broken', 'impostor', 'elsewhere', 'plain'] as const
export type IssuerName = (typeof ISSUERS)[number]

export interface Signed {
  readonly issuer?: IssuerName
  readonly kid?: string
  readonly alg?: string
  readonly key?: CryptoKey
}

export interface IssuerStandIn {
  readonly origin: string
  /** For `TRUSTED_ISSUERS`. */
  readonly issuers: string
  issuer(name: IssuerName): string
  /** The key that is published as a PEM of nothing secret: an attacker has it too. */
  publicModulus(): string
  sign(claims: JWTPayload, by?: Signed): Promise<string>
  /** The old key is withdrawn, a new one published. */
  rotate(): Promise<void>
  /** How often keys were read. */
  reads(): number
  /** What a job finds in its environment; the token that it gets says these claims. */
  jobOf(name: IssuerName, claims: JWTPayload): Record<string, string>
  close(): Promise<void>
}

interface PublishedKey {
  readonly kid: string
  readonly privateKey: CryptoKey
  readonly jwk: Record<string, unknown>
}

async function newKey(kid: string): Promise<PublishedKey> {
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true })
  return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' } }
}

export async function startIssuer(): Promise<IssuerStandIn> {
  let key = await newKey('key-1')
  let reads = 0
  let runs = 0
  const jobs = new Map<string, { name: IssuerName; claims: JWTPayload }>()
  const open = new Set<ServerResponse>()

  const sign = (claims: JWTPayload, by: Signed = {}): Promise<string> =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: by.alg ?? 'RS256', kid: by.kid ?? key.kid, typ: 'JWT' })
      .sign(by.key ?? key.privateKey)

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://issuer')
    const [, name = '', ...rest] = url.pathname.split('/')
    const send = (body: unknown): void => void response.end(JSON.stringify(body))
    const issuer = `${origin()}/${name}`
    if (name === 'job') {
      const job = jobs.get(rest[0] ?? '')
      if (!job || request.headers.authorization !== `Bearer job-${rest[0]}`) return void response.writeHead(401).end()
      const aud = url.searchParams.get('audience') ?? 'nobody'
      const now = Math.floor(Date.now() / 1000)
      const claims = { iss: `${origin()}/${job.name}`, aud, iat: now, nbf: now, exp: now + 300, jti: `job-${++runs}` }
      return void sign({ ...claims, ...job.claims }).then((value) => send({ value }))
    }
    if (rest.join('/') === '.well-known/openid-configuration')
      return send({
        issuer: name === 'impostor' ? `${origin()}/good` : issuer,
        // An issuer of the operator's choice may be private; where it points to may not.
        jwks_uri: name === 'elsewhere' ? `http://127.0.0.2:${port()}/good/keys` : `${issuer}/keys`,
      })
    if (rest[0] !== 'keys') return void response.writeHead(404).end()
    reads++
    if (name === 'slow') return void open.add(response)
    if (name === 'huge') return send({ keys: [{ ...key.jwk, filler: 'x'.repeat(300_000) }] })
    if (name === 'redirecting') return void response.writeHead(302, { location: `${origin()}/good/keys` }).end()
    if (name === 'broken') return void response.end('<html>not a key set</html>')
    return send({ keys: [key.jwk] })
  })
  const port = (): number => (server.address() as AddressInfo).port
  const origin = (): string => `http://127.0.0.1:${port()}`
  keepIdleConnections(server)
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))

  return {
    origin: origin(),
    issuers: ISSUERS.filter((name) => name !== 'plain')
      .map((name) => `${origin()}/${name}`)
      .join(','),
    issuer: (name) => `${origin()}/${name}`,
    publicModulus: () => String(key.jwk['n']),
    sign,
    async rotate() {
      key = await newKey(`key-${key.kid}-next`)
    },
    reads: () => reads,
    jobOf(name, claims) {
      const id = String(jobs.size + 1)
      jobs.set(id, { name, claims })
      return {
        ACTIONS_ID_TOKEN_REQUEST_URL: `${origin()}/job/${id}?api-version=2.0`,
        ACTIONS_ID_TOKEN_REQUEST_TOKEN: `job-${id}`,
      }
    },
    async close() {
      for (const response of open) response.destroy()
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
