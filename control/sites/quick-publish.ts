/**
 * Content in hand, one call to a live address: creates the site or updates the one that has the slug.
 * MCP tools, pasted text and templates come through here.
 */
import { Readable } from 'node:stream'
import { errors } from '../../shared/errors.ts'
import { plans } from '../../shared/plans.ts'
import type { Actor } from '../accounts/actor.ts'
import type { Publishing, PreparedVersion } from '../publishing/contract.ts'
import type { SiteView, VersionView } from './schemas.ts'
import type { Propagated, Sites } from './sites.ts'
import type { Versions } from './versions.ts'

export type QuickContent =
  | { readonly kind: 'text'; readonly format: 'html' | 'markdown'; readonly content: string }
  | { readonly kind: 'files'; readonly files: readonly { readonly path: string; readonly bytes: Buffer }[] }

export interface QuickPublishInput {
  readonly content: QuickContent
  readonly slug?: string | undefined
  readonly title?: string | undefined
  readonly password?: string | undefined
  readonly message?: string | undefined
}

export interface QuickPublished {
  readonly site: SiteView
  readonly version: VersionView
  readonly created: boolean
}

export type QuickPublish = ReturnType<typeof createQuickPublish>

export function createQuickPublish({
  sites,
  versions,
  publishing,
}: {
  sites: Pick<Sites, 'get'>
  versions: Pick<Versions, 'publishBySlug'>
  publishing: Pick<Publishing, 'receive'>
}) {
  return async (actor: Actor, input: QuickPublishInput): Promise<Propagated<QuickPublished>> => {
    if (input.password !== undefined && !plans[actor.plan].password) throw errors.planFeature('Password protection')
    const prepared = await prepare(publishing, actor, input)
    const wanted = { slug: input.slug, name: input.title }
    const options = { message: input.message, password: input.password }
    const { value, pending } = await versions.publishBySlug(actor, wanted, prepared, options)
    const { siteId, ...published } = value
    return { value: { site: await sites.get(actor, siteId), ...published }, pending }
  }
}

async function prepare(
  publishing: Pick<Publishing, 'receive'>,
  actor: Actor,
  { content, title }: QuickPublishInput,
): Promise<PreparedVersion> {
  const intake = publishing.receive({
    owner: { kind: 'organisation', id: actor.orgId },
    capBytes: plans[actor.plan].uploadBytes,
  })
  try {
    if (content.kind === 'text')
      await intake.addSingle(
        content.format === 'html' ? 'index.html' : 'index.md',
        Readable.from([Buffer.from(content.content)]),
        { title },
      )
    else for (const file of content.files) await intake.addFile(file.path, Readable.from([file.bytes]))
    return await intake.finish({ title })
  } finally {
    await intake.abort()
  }
}
