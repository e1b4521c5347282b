/** REST: /api/v1/drops… – no credentials. */
import { MAX_TITLE_CHARS } from '../../../shared/contracts/limits.ts'
import type { Clock } from '../../../shared/running/clock.ts'
import { z } from 'zod'
import type { ControlConfig } from '../../ground/config.ts'
import { WithHeaders, type ApiRouteFactory } from '../../ground/http/api.ts'
import { described } from '../../ground/http/operations/described.ts'
import type { Request, Route } from '../../ground/http/route.ts'
import type { Publishing } from '../publishing/contract.ts'
import { propagationHeaders } from '../sites/propagation.ts'
import { accessFormFields, accessUntilSchema, expiresInSchema, untilOf } from '../viewers/access.ts'
import { receiveSingle } from '../sites/versions/upload-request.ts'
import { reportSchema } from '../sites/schemas.ts'
import type { Anonymous, Publisher } from './anonymous.ts'
import type { BrowserCookie } from './browser-cookie.ts'
import { signalsOf } from './signals.ts'

/** JSON may write a byte of the text as six (`\\u0001`); the cap itself is counted on the text. */
const JSON_OVERHEAD = 6

/** Ours have 43. */
const MAX_CLAIM_CHARS = 200

const time = (description: string) => described(z.iso.datetime(), description, '2026-11-22T09:00:00.000Z')
const url = described(z.string(), 'Its address.', 'https://quiet-otter-4821.dropway.example')
const slug = described(z.string(), 'The name in its address.', 'quiet-otter-4821')
const id = described(z.string(), 'Id of the drop.', 'st_4f9kq2m7x1')

const dropSchema = z
  .object({
    url,
    id,
    slug,
    claim_url: described(
      z.string(),
      'Opened by someone with an account, it makes the drop theirs. Its token also deletes it.',
      'https://dropway.example/claim?token=9d2c4b7e',
    ),
    expires_at: time('When it ends, unless it was claimed.'),
    report: reportSchema,
  })
  .meta({ id: 'AnonymousDrop' })

const dropEntrySchema = z.object({
  state: described(z.enum(['live', 'expired', 'removed']), 'What visitors meet.', 'live'),
  claimable: described(z.boolean(), 'Signing up from this browser makes it yours.', true),
  id,
  slug,
  url,
  title: described(z.string(), 'Title of the page.', 'Hello'),
  created_at: time('When it was published.'),
  expires_at: time('When it ends, unless it was claimed.'),
  views: described(z.int(), 'How often it was seen.', 3),
})

const markdownSchema = z.strictObject({
  markdown: described(z.string().min(1, 'must not be empty'), "CommonMark with GitHub's tables and lists.", '# Hello'),
  title: described(z.string().max(MAX_TITLE_CHARS), 'Title of the page; else its first heading.', 'Hello').optional(),
  access_until: accessUntilSchema.optional(),
  expires_in: expiresInSchema.optional(),
})

const tag = 'Anonymous drops'

export function anonymousRoutes({
  apiRoute,
  anonymous,
  publishing,
  browserCookie,
  config,
  clock,
}: {
  apiRoute: ApiRouteFactory
  anonymous: Anonymous
  publishing: Pick<Publishing, 'receive'>
  browserCookie: BrowserCookie
  config: Pick<ControlConfig, 'baseUrl'>
  clock: Clock
}): Route[] {
  /** Who publishes, admitted by the limits and the bot check, and the cookie to remember them by. */
  async function admit(request: Request): Promise<{ publisher: Publisher; headers: Record<string, string> }> {
    const { id, setCookie } = browserCookie.readOrCreate(request)
    const publisher = { ip: request.ip, anonymousId: id, signals: signalsOf(request, config.baseUrl) }
    await anonymous.admit(publisher)
    return { publisher, headers: setCookie === undefined ? {} : { 'set-cookie': setCookie } }
  }

  return [
    apiRoute({
      method: 'POST',
      path: '/api/v1/drops',
      access: 'public',
      needs: 'nothing',
      tag,
      summary: 'Publish one .html or .md file without an account',
      status: 201,
      admit,
      form: z.object({
        file: described(z.file(), 'One .html or .md file. Its filename says what it is.'),
        title: described(z.string(), 'Title of a page made from Markdown.').optional(),
        access_until: accessFormFields.access_until,
        expires_in: accessFormFields.expires_in,
      }),
      formSamples: { page: { file: 'page.html' } },
      output: dropSchema,
      async run({ request, admitted: { publisher, headers } }) {
        const { prepared, fields, options } = await receiveSingle(request, publishing, {
          owner: { kind: 'network', ip: request.ip },
          capBytes: anonymous.capBytes,
        })
        const until = untilOf(options.access ?? {}, clock.now())
        const { value, pending } = await anonymous.publish(publisher, prepared, fields.get('title') ?? '', until)
        return new WithHeaders(value, { ...headers, ...propagationHeaders(pending) })
      },
    }),
    apiRoute({
      method: 'POST',
      path: '/api/v1/drops-md',
      access: 'public',
      needs: 'nothing',
      tag,
      summary: 'Publish Markdown without an account',
      status: 201,
      admit,
      body: markdownSchema,
      maxBodyBytes: anonymous.capBytes * JSON_OVERHEAD,
      output: dropSchema,
      async run({ body, admitted: { publisher, headers } }) {
        const { value, pending } = await anonymous.publishText(publisher, {
          filename: 'index.md',
          content: body.markdown,
          title: body.title,
          until: untilOf(body, clock.now()),
        })
        return new WithHeaders(value, { ...headers, ...propagationHeaders(pending) })
      },
    }),
    apiRoute({
      method: 'GET',
      path: '/api/v1/drops',
      access: 'public',
      needs: 'nothing',
      tag,
      summary: 'The drops that this browser made',
      status: 200,
      output: z.array(dropEntrySchema),
      async run({ request }) {
        const id = browserCookie.read(request)
        return id === undefined ? [] : anonymous.list(id)
      },
    }),
    apiRoute({
      method: 'DELETE',
      path: '/api/v1/drops',
      access: 'public',
      needs: 'nothing',
      tag,
      summary: 'Delete the drop of a claim link for good',
      status: 204,
      query: z.strictObject({
        token: described(z.string().max(MAX_CLAIM_CHARS), 'The token at the end of its `claim_url`.', '9d2c4b7e'),
      }),
      output: undefined,
      run: ({ query }) => anonymous.delete({ claim: query.token }),
    }),
  ]
}
