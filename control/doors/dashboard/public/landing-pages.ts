/** `/` and anonymous publishing. */
import { errors, type ApiError } from '../../../../shared/contracts/errors.ts'
import { html } from '../../../../shared/pages/html.ts'
import { json, seeOther } from '../../../ground/http/reply.ts'
import type { Reply, Request, Route } from '../../../ground/http/route.ts'
import { currencyOf, resolveCountry } from '../../../people/organisations/countries.ts'
import type { Publisher } from '../../../drops/anonymous/anonymous.ts'
import { isFragment, requestOf, type AccountRequest, type PageRequest } from '../frame/callers.ts'
import { orShow, type Handlers } from '../frame/handlers.ts'
import type { Answer } from '../frame/returned-forms.ts'
import type { Page } from '../frame/layout.ts'
import { createOwnPublishing } from '../publish/own-drops.ts'
import { receivePublishForm } from '../publish/received.ts'
import type { DashboardServices } from '../frame/services.ts'
import { messagePage } from '../parts/message-page.ts'
import { claimPage } from '../sign-in/sign-in-view.ts'
import { deleteDrop, landingPage } from './landing-view.ts'
import { anonymousResult, resultAddress } from '../parts/publish-result.ts'

export function landingRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  const { anonymous, browserCookie, botCheck, clock, config } = services
  const own = createOwnPublishing(services, handlers)
  const stamp = (): string => botCheck.startToken(clock.now())

  async function publishOwn(asked: AccountRequest, sent: URLSearchParams): Promise<Reply> {
    const location = await own.publishNew(asked, sent)
    return isFragment(asked.request) ? json(201, { location }) : seeOther(location)
  }

  async function publish(asked: PageRequest, sent: URLSearchParams): Promise<Reply> {
    const { request, viewer } = asked
    // A form from before they signed in elsewhere: it is a drop of their account all the same.
    if (asked.actor) return publishOwn(requestOf(asked, asked.actor), sent)
    const browser = browserCookie.readOrCreate(request)
    let publisher: Publisher | undefined
    const prepared = await receivePublishForm(request, {
      publishing: services.publishing,
      owner: { kind: 'network', ip: request.ip },
      capBytes: anonymous.capBytes,
      fields: sent,
      async admit(early) {
        handlers.requireOwnForm(asked, early)
        publisher = publisherOf(request, browser.id, early)
        await anonymous.admit(publisher)
      },
    })
    if (!prepared) throw errors.invalidRequest('Choose a file, or paste some text first.')
    const { value: drop } = await anonymous.publish(publisher!, prepared, sent.get('title') ?? '')
    const cookies: Record<string, string[]> =
      browser.setCookie === undefined ? {} : { 'set-cookie': [...viewer.cookies, browser.setCookie] }
    const location = resultAddress(drop)
    return isFragment(request) ? json(201, { location }, cookies) : seeOther(location, cookies)
  }

  /** The drops of this browser that no account has. */
  async function dropsOf(request: Request): Promise<Awaited<ReturnType<typeof anonymous.list>>> {
    const id = browserCookie.read(request)
    return id === undefined ? [] : anonymous.list(id)
  }

  async function showResult({ request, viewer }: PageRequest): Promise<Answer> {
    const id = request.query.get('drop')
    const drop = (await dropsOf(request)).find((entry) => entry.id === id && entry.state === 'live')
    if (!drop) return seeOther('/')
    const claim = request.query.get('claim') ?? ''
    return {
      title: 'Your page is live',
      scripts: ['copy'],
      body: html`${anonymousResult({
        url: drop.url,
        expiresAt: drop.expires_at,
        claimUrl: claim === '' ? undefined : `${config.baseUrl}/claim?token=${encodeURIComponent(claim)}`,
        now: clock.now(),
        remove: deleteDrop(viewer, drop),
      })}`,
    }
  }

  async function showClaim({ viewer, actor }: PageRequest, token: string): Promise<Page> {
    const drop = await anonymous.findClaim(token)
    if (!drop) return usedUpClaimPage()
    const organisation =
      actor && (await services.organisations.list(actor)).find((entry) => entry.id === actor.orgId)?.name
    return claimPage(viewer, { token, drop, organisation, ways: config })
  }

  return [
    handlers.page('/', async ({ request, viewer }) => {
      const drops = await dropsOf(request)
      const { geoCountry: geo, acceptLanguage } = services.accounts.circumstancesOf(request)
      const currency = currencyOf(resolveCountry({ geo, acceptLanguage }))
      const page = landingPage(viewer, {
        stamp: stamp(),
        drops,
        now: clock.now(),
        lifetimes: config,
        currency,
        house: config,
      })
      return { ...page, canonical: '/' }
    }),
    handlers.page('/published', showResult),
    handlers.form('/drop/delete', { on: '/' }, async ({ request, form }) => {
      const anonymousId = browserCookie.read(request)
      if (anonymousId === undefined) throw errors.notFound()
      await anonymous.delete({ anonymousId, siteId: form.get('id') ?? '' })
      return seeOther('/')
    }),
    {
      method: 'POST',
      path: '/drop',
      async handle(request) {
        const asked = await handlers.readUploader(request)
        const sent = new URLSearchParams()
        const answer = await orShow(
          () => publish(asked, sent),
          (problem) =>
            isFragment(request)
              ? json(problem.status, problem.toBody(), problem.headers)
              : handlers.comeBack(asked, { on: '/' }, sent, withoutScript(problem)),
        )
        return handlers.reply(asked.viewer, answer)
      },
    },
    handlers.page('/drop', () => seeOther('/')),
    handlers.page('/claim', (asked) => showClaim(asked, asked.request.query.get('token') ?? '')),
    handlers.accountForm('/claim', { on: '/claim', keeps: ['token'], verified: false }, async ({ actor, form }) => {
      const { siteId } = await anonymous.claimLink(actor, form.get('token') ?? '')
      return seeOther(`/sites/${siteId}?done=${actor.emailVerified ? 'claimed' : 'claimed-hidden'}`)
    }),
  ]
}

/** The text form of the page has no headers to carry the signals: its fields do. */
function publisherOf(request: Request, anonymousId: string, fields: URLSearchParams): Publisher {
  return {
    ip: request.ip,
    anonymousId,
    signals: {
      honeypot: fields.get('website') ?? undefined,
      started: fields.get('stamp') ?? undefined,
      proof: request.header('dropway-proof'),
      isBrowser: true,
    },
  }
}

function usedUpClaimPage(): Page {
  return messagePage({
    title: 'This claim link does not work any more',
    lead: 'It was used already, or the drop has expired.',
    actions: html`<a class="button primary" href="/">Publish a page</a>`,
    status: 404,
  })
}

/** Only a script can prove that it is not a flood. */
function withoutScript(problem: ApiError): ApiError {
  return problem.code === 'proof_required'
    ? problem.saying(
        'We could not tell you from a robot. Wait a second and publish again, turn on JavaScript, or sign up.',
      )
    : problem
}
