/** The authorization endpoint: a person, signed in, says yes or no. Works without JavaScript. */
import { ApiError, errors } from '../../../shared/contracts/errors.ts'
import type { Access } from '../../people/access/access.ts'
import type { Actor } from '../../ground/actor.ts'
import type { Csrf } from '../../people/access/csrf.ts'
import { seeOther } from '../../ground/http/reply.ts'
import type { Reply, Request, Route } from '../../ground/http/route.ts'
import type { Organisations } from '../../people/organisations/organisations.ts'
import type { ConsentPages } from './consent.ts'
import type { AuthorizationRequest, OAuth } from './oauth.ts'
import { paths } from './routes.ts'
import { returnPlace, UntrustedRequest } from './rules.ts'

interface AuthorizeDependencies extends ConsentPages {
  oauth: OAuth
  access: Pick<Access, 'sessionActor'>
  csrf: Pick<Csrf, 'requireCsrf' | 'standing'>
  organisations: Pick<Organisations, 'list'>
}

/** What the form sends back, so that the decision is checked against the request anew. */
const REQUEST_FIELDS = [
  'response_type',
  'client_id',
  'redirect_uri',
  'state',
  'scope',
  'resource',
  'code_challenge',
  'code_challenge_method',
]

/** The organisation that the page showed: when another was chosen since, the page is shown again. */
const SHOWN_ORGANISATION = 'organisation'

export function authorizeRoutes({
  oauth,
  access,
  csrf,
  consent,
  unknownProgram,
  verifyFirst,
  proveFirst,
  organisations,
}: AuthorizeDependencies): Route[] {
  /** Checks the parameters; errors go back to a client that is known, and are shown here otherwise. */
  async function checked(
    parameters: URLSearchParams,
    actor: Actor | undefined,
    request: Request,
  ): Promise<{ request: AuthorizationRequest } | { reply: Reply }> {
    const outcome = await oauth.checkRequest(parameters, request.ip).catch((error: unknown) => {
      throw error instanceof UntrustedRequest ? errors.invalidRequest(error.message) : error
    })
    if ('request' in outcome) return outcome
    if ('unregistered' in outcome) {
      const { code, message } = outcome.unregistered
      const answer = { error: code, error_description: message, state: outcome.state }
      return {
        reply: await unknownProgram(request, {
          words: message,
          returnTo: oauth.redirect(outcome.redirectUri, answer),
        }),
      }
    }
    const { error, redirectUri, state } = outcome
    if (!(await oauth.isKnownClient(actor, outcome)))
      throw errors.invalidRequest(`The app asked for something that we do not understand: ${error.message}`)
    return {
      reply: seeOther(oauth.redirect(redirectUri, { error: error.code, error_description: error.message, state })),
    }
  }

  async function ask(request: Request): Promise<Reply> {
    const actor = await access.sessionActor(request)
    const outcome = await checked(request.query, actor, request)
    if ('reply' in outcome) return outcome.reply
    if (!actor) return seeOther(`/signin?next=${encodeURIComponent(`${paths.authorize}?${request.query}`)}`)
    if (!actor.emailVerified) return verifyFirst(request, actor.email)
    const organisation = (await organisations.list(actor)).find((candidate) => candidate.id === actor.orgId)
    const { client, redirectUri } = outcome.request
    return consent(request, {
      clientName: client.name,
      verifiedHost: client.verifiedHost,
      redirectUri,
      returnsTo: returnPlace(redirectUri),
      // The scheme, not the origin: browsers hold the whole chain of redirects against the form, and clients go on
      // from their redirect address to others.
      redirectSource: new URL(redirectUri).protocol,
      organisation: organisation?.name ?? actor.orgId,
      email: actor.email,
      scopes: outcome.request.scopes,
      action: paths.authorize,
      hidden: { ...Object.fromEntries(requestFields(request.query)), [SHOWN_ORGANISATION]: actor.orgId },
    })
  }

  async function decide(request: Request): Promise<Reply> {
    const form = await request.form()
    const standing = csrf.standing(request, form)
    if (standing === 'foreign') csrf.requireCsrf(request, form)
    const actor = await access.sessionActor(request)
    const parameters = requestFields(form)
    // The session has ended or is another one, or another organisation was chosen: the question is asked again.
    if (!actor || standing === 'stale' || form.get(SHOWN_ORGANISATION) !== actor.orgId)
      return seeOther(`${paths.authorize}?${parameters}`)
    const outcome = await checked(parameters, actor, request)
    if ('reply' in outcome) return outcome.reply
    if (form.get('decision') === 'allow')
      return oauth.allow(actor, outcome.request).then(
        (location) => seeOther(location),
        (error: unknown) => {
          if (error instanceof ApiError && error.code === 'step_up_required')
            return proveFirst(`${paths.authorize}?${parameters}`)
          throw error
        },
      )
    const { redirectUri, state } = outcome.request
    return seeOther(
      oauth.redirect(redirectUri, { error: 'access_denied', error_description: 'The person said no.', state }),
    )
  }

  return [
    { method: 'GET', path: paths.authorize, handle: ask },
    { method: 'POST', path: paths.authorize, handle: decide },
  ]
}

function requestFields(parameters: URLSearchParams): URLSearchParams {
  return new URLSearchParams([...parameters].filter(([name]) => REQUEST_FIELDS.includes(name)))
}
