/**
 * Signing in as a workflow of a forge, without a secret: the forge says who runs (OpenID Connect), and the service
 * exchanges that for a token which publishes to one drop for a quarter of an hour (RFC 8693).
 */
import { toFailure } from '../api-failure.ts'
import type { HttpClient } from '../http-client.ts'
import { CliError, exitCodes } from '../../terminal/failure.ts'

/** Where the forge's word comes from. */
export type WorkflowIdentity =
  /** GitLab and others put the token into the environment, made for this service's address. */
  | { readonly kind: 'token'; readonly token: string }
  /** GitHub and Forgejo give one out on request. */
  | { readonly kind: 'request'; readonly url: string; readonly bearer: string }

export function readWorkflowIdentity(env: Readonly<Record<string, string | undefined>>): WorkflowIdentity | undefined {
  const token = env['DROPWAY_ID_TOKEN']?.trim()
  if (token) return { kind: 'token', token }
  const [url, bearer] = [env['ACTIONS_ID_TOKEN_REQUEST_URL'], env['ACTIONS_ID_TOKEN_REQUEST_TOKEN']]
  return url && bearer && URL.canParse(url) ? { kind: 'request', url, bearer } : undefined
}

/** The token of this run, made for the service at `origin`. */
async function tokenOf(identity: WorkflowIdentity, origin: string, http: HttpClient): Promise<string> {
  if (identity.kind === 'token') return identity.token
  const url = new URL(identity.url)
  url.searchParams.set('audience', origin)
  const reply = await http.send(url.href, {
    method: 'GET',
    headers: { authorization: `Bearer ${identity.bearer}`, accept: 'application/json' },
  })
  const { value } = (reply.status === 200 ? JSON.parse(await reply.text()) : {}) as { value?: unknown }
  if (typeof value === 'string') return value
  throw new CliError(
    `The forge gave no token to this job (${reply.status}). Let the job ask for one: permissions: id-token: write.`,
    exitCodes.failed,
    'no_identity',
  )
}

/** A token for one drop, named by its slug or id; with `preview` for that preview of it alone. */
export async function exchangeIdentity(
  identity: WorkflowIdentity,
  { origin, site, preview, http }: { origin: string; site: string; preview?: string | undefined; http: HttpClient },
): Promise<string> {
  const form = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    subject_token: await tokenOf(identity, origin, http),
    site,
    ...(preview === undefined ? {} : { preview }),
  })
  const reply = await http.send(`${origin}/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: form.toString(),
  })
  if (reply.status === 400)
    throw new CliError(
      `${site} does not accept this workflow. Let the drop trust it (${origin}, the drop's settings, "Publish from CI"), or set DROPWAY_TOKEN. Why it was refused is in the organisation's audit log.`,
      exitCodes.notSignedIn,
      'not_trusted',
    )
  if (reply.status !== 200) throw toFailure(reply.status, await reply.text())
  return (JSON.parse(await reply.text()) as { access_token: string }).access_token
}
