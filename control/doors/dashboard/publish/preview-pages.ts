/** The frame beside the editor: shows pasted text as it would be published. */
import { limitKeyOfIp } from '../../../../shared/http/ip.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { MAX_TEXT_FORM_BYTES } from '../../../../shared/contracts/limits.ts'
import { filenameOfText, formatOfText } from '../../../drops/publishing/files/pasted-text.ts'
import { plans } from '../../../ground/terms/plans.ts'
import type { Reply, Request, Route } from '../../../ground/http/route.ts'
import type { Limit } from '../../../ground/http/limits/sliding-window.ts'
import type { Handlers } from '../frame/handlers.ts'
import { formatOf } from './received.ts'
import { createFrameNotes, sandboxed } from '../frame/sandbox.ts'
import { addField } from '../frame/typed-fields.ts'
import type { DashboardServices } from '../frame/services.ts'

/** A person who types without pause sees about one per second; an office behind one address has a few of them. */
const PREVIEW_LIMIT: Limit = { points: 900, windowSeconds: 300 }

export function previewRoutes({ csrf, publishing, config, limiter }: DashboardServices, handlers: Handlers): Route[] {
  const { say, refuse } = createFrameNotes(config)

  /** What strangers may not publish they may not render here either. */
  async function requireWelcome(request: Request): Promise<void> {
    if (!config.allowsAnonymous && !(await handlers.read(request)).actor) throw errors.anonymousOff()
  }

  /** Markdown is rendered as a publish renders it, so that what is shown is what will be; nothing of it is stored. */
  async function renderMarkdown(ip: string, text: string): Promise<string> {
    if (Buffer.byteLength(text) > plans.anonymous.uploadBytes) throw errors.uploadTooLarge(plans.anonymous.uploadBytes)
    return publishing.renderMarkdown({ kind: 'network', ip }, { filename: filenameOfText(text, 'markdown'), text })
  }

  async function preview(request: Request): Promise<Reply> {
    await requireWelcome(request)
    const fields = await readFields(request, (early) => csrf.requireCsrf(request, early))
    await limiter.consume('preview', limitKeyOfIp(request.ip), PREVIEW_LIMIT)
    const text = fields.get('text') ?? ''
    if (text.trim() === '') return say('Preview', 'Nothing to show yet.')
    const format = formatOf(fields) ?? formatOfText(text)
    return sandboxed('scripts', format === 'html' ? text : await renderMarkdown(request.ip, text))
  }

  return [
    {
      method: 'GET',
      path: '/preview',
      refuse,
      async handle(request) {
        await requireWelcome(request)
        return say('Preview', 'Paste HTML or Markdown and see it here.')
      },
    },
    { method: 'POST', path: '/preview', refuse, handle: preview },
  ]
}

/**
 * The publish form is multipart and may carry files; only its fields matter here. `admit` sees the first of them, where
 * our forms have their token, before any other is collected.
 */
async function readFields(request: Request, admit: (fields: URLSearchParams) => void): Promise<URLSearchParams> {
  const isMultipart = /^multipart\//i.test(request.header('content-type') ?? '')
  const fields = isMultipart ? new URLSearchParams() : await request.form(MAX_TEXT_FORM_BYTES)
  let isAdmitted = false
  const admitOnce = (): void => {
    if (!isAdmitted) admit(fields)
    isAdmitted = true
  }
  if (isMultipart)
    await request.multipart(async (part) => {
      if (part.kind === 'field') addField(fields, part)
      admitOnce()
    })
  admitOnce()
  return fields
}
