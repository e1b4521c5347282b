/** `/templates`: choose, fill, publish, edit again. */
import { errors } from '../../../../shared/contracts/errors.ts'
import { plans } from '../../../ground/terms/plans.ts'
import type { Actor } from '../../../ground/actor.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import { paramsOf, type Route } from '../../../ground/http/route.ts'
import type { PreparedVersion, UploadOwner } from '../../../drops/publishing/contract.ts'
import { receiveText } from '../../../drops/publishing/intake/take-in.ts'
import type { ApiSite } from '../../../drops/sites/schemas.ts'
import type { FormRequest, Handlers } from '../frame/handlers.ts'
import type { Answer } from '../frame/returned-forms.ts'
import { findTemplateFill, saveTemplateFill } from './queries.ts'
import { createFrameNotes, sandboxed } from '../frame/sandbox.ts'
import type { DashboardServices } from '../frame/services.ts'
import { findTemplate, templates } from './designs/all.ts'
import { readValues, type Template } from './designs/template.ts'
import { resultAddress } from '../parts/publish-result.ts'
import { templatePage, templatesPage } from './template-view.ts'

const SAMPLE_PATH = '/templates/:name/sample'

export function templateRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  const { sites, versions, publishing, anonymous, browserCookie, clock, config, sql } = services
  const { refuse } = createFrameNotes(config)

  function requireTemplate({ name }: { name: string }): Template {
    const template = findTemplate(name)
    if (!template) throw errors.notFound('template')
    return template
  }

  const prepare = (page: string, owner: UploadOwner, capBytes: number): Promise<PreparedVersion> =>
    receiveText(publishing, { owner, capBytes }, { filename: 'index.html', content: page })

  async function publishNew(actor: Actor, template: Template, prepared: PreparedVersion): Promise<string> {
    const message = `From the template ${template.title}`
    return (await versions.publishNew(actor, {}, prepared, { message })).value.siteId
  }

  async function publishOwned(actor: Actor, template: Template, form: URLSearchParams): Promise<Answer> {
    const values = readValues(template, form)
    const edited = form.get('site') ?? undefined
    const site = edited === undefined ? undefined : await sites.get(actor, edited)
    const prepared = await prepare(
      template.render(values),
      { kind: 'organisation', id: actor.orgId },
      plans[actor.plan].uploadBytes,
    )
    if (site) await versions.publish(actor, site.id, prepared, { message: `${template.title} edited` })
    const siteId = site?.id ?? (await publishNew(actor, template, prepared))
    await saveTemplateFill(sql, siteId, { template: template.name, fields: values }, new Date(clock.now()))
    return seeOther(`/sites/${siteId}?done=published`)
  }

  async function publishAnonymous({ request, viewer, form }: FormRequest, template: Template): Promise<Answer> {
    const values = readValues(template, form)
    const browser = browserCookie.readOrCreate(request)
    const publisher = {
      ip: request.ip,
      anonymousId: browser.id,
      // Filling in a template takes a person and is bound to a CSRF token; the limits apply all the same.
      signals: { honeypot: form.get('website') ?? undefined, started: undefined, proof: undefined, isBrowser: false },
    }
    await anonymous.admit(publisher)
    const prepared = await prepare(template.render(values), { kind: 'network', ip: request.ip }, anonymous.capBytes)
    const { value: drop } = await anonymous.publish(publisher, prepared, '')
    await saveTemplateFill(sql, drop.id, { template: template.name, fields: values }, new Date(clock.now()))
    const cookies = [...viewer.cookies, ...(browser.setCookie === undefined ? [] : [browser.setCookie])]
    return seeOther(resultAddress(drop), { 'set-cookie': cookies })
  }

  async function editedSite(actor: Actor | undefined, siteId: string | null): Promise<ApiSite | undefined> {
    if (!actor || !siteId) return undefined
    return sites.get(actor, siteId)
  }

  return [
    handlers.page('/templates', () => templatesPage(templates)),
    handlers.page('/templates/:name', async ({ request, viewer, actor, params }) => {
      const template = requireTemplate(params)
      const site = await editedSite(actor, request.query.get('site'))
      const fill = site && (await findTemplateFill(sql, site.id))
      return templatePage(viewer, {
        template,
        site,
        anonymousLifetimeMs: config.anonymousLifetimeMs,
        values: fill?.template === template.name ? fill.fields : template.sample,
      })
    }),
    handlers.form('/templates/:name', { on: '/templates/:name', keeps: ['site'], carriesText: true }, (asked) => {
      const template = requireTemplate(asked.params)
      const missing = template.fields.find(
        (field) => field.required && (asked.form.get(field.name) ?? '').trim() === '',
      )
      if (missing) throw errors.invalidRequest(`${missing.name}: fill in “${missing.label}” first.`)
      return asked.actor ? publishOwned(asked.actor, template, asked.form) : publishAnonymous(asked, template)
    }),
    {
      method: 'GET',
      path: SAMPLE_PATH,
      refuse,
      handle: (request) => sample(requireTemplate(paramsOf(SAMPLE_PATH, request))),
    },
    handlers.form(
      '/templates/:name/preview',
      { on: '/templates/:name', carriesText: true, refuse },
      ({ params, form, actor }) => {
        if (!actor && !config.allowsAnonymous) throw errors.anonymousOff()
        const template = requireTemplate(params)
        return sandboxed('still', template.render(readValues(template, form)))
      },
    ),
  ]
}

function sample(template: Template): ReturnType<typeof sandboxed> {
  return sandboxed('still', template.render(template.sample))
}
