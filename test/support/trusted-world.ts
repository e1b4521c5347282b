/** A drop whose owner trusts a workflow of a forge, on a stack that trusts the stand-in of the forges' issuers. */
import { randomUUID } from 'node:crypto'
import type { JWTPayload } from 'jose'
import { apiFor } from './api.ts'
import type { Answer } from './client.ts'
import { startIssuer, type IssuerName, type IssuerStandIn } from './issuer-stand-in.ts'
import { startStack, type Account, type OwnStack } from './stack.ts'

const TOKEN_SECONDS = 300

export interface TrustedWorld {
  readonly stack: OwnStack
  readonly issuer: IssuerStandIn
  readonly owner: Account
  readonly siteId: string
  readonly slug: string
  /** Lets the owner trust a workflow of this issuer. */
  trust(name: IssuerName, more?: Record<string, unknown>): Promise<Answer>
  /** What GitHub says of a run on the trusted branch. */
  claimsOf(name?: IssuerName): JWTPayload
  /** What a run says of itself; when and for whom the forge adds when it is asked. */
  jobClaims(name: IssuerName): JWTPayload
  stop(): Promise<void>
}

export async function startTrustedWorld(): Promise<TrustedWorld> {
  const issuer = await startIssuer()
  const stack = await startStack({ database: 'shared', env: { TRUSTED_ISSUERS: issuer.issuers } })
  const owner = await stack.createAccount('business')
  const { id: siteId, slug } = (await apiFor(stack, owner).create()).json()

  function claimsOf(name: IssuerName = 'good'): JWTPayload {
    const now = Math.floor(Date.now() / 1000)
    return {
      iss: issuer.issuer(name),
      aud: stack.baseUrl,
      sub: 'repo:octo/site:environment:production',
      iat: now,
      nbf: now,
      exp: now + TOKEN_SECONDS,
      jti: randomUUID(),
      repository: 'octo/site',
      repository_id: '101',
      repository_owner: 'octo',
      repository_owner_id: '7',
      ref: 'refs/heads/main',
      workflow_ref: 'octo/site/.github/workflows/deploy.yml@refs/heads/main',
      environment: 'production',
      event_name: 'push',
      sha: 'abc123abc123abc123abc123abc123abc123abcd',
      actor: 'ada',
    }
  }

  return {
    stack,
    issuer,
    owner,
    siteId,
    slug,
    claimsOf,
    trust: (name, more = {}) =>
      stack.fetch(`/api/v1/sites/${siteId}/publishers`, {
        token: owner.token,
        json: {
          provider: 'github',
          issuer: issuer.issuer(name),
          repository: 'octo/site',
          workflow: 'deploy.yml',
          branch: 'main',
          environment: 'production',
          repository_id: '101',
          owner_id: '7',
          ...more,
        },
      }),
    jobClaims(name) {
      const { iss: _iss, aud: _aud, iat: _iat, nbf: _nbf, exp: _exp, jti: _jti, ...claims } = claimsOf(name)
      return claims
    },
    async stop() {
      await stack.stop()
      await issuer.close()
    },
  }
}
