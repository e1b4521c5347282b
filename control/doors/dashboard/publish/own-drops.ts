/** Publishing by hand to drops of an account: what the forms of the dashboard and of the front page do. */
import { z } from 'zod'
import { errors } from '../../../../shared/contracts/errors.ts'
import { MAX_MESSAGE_CHARS } from '../../../../shared/contracts/limits.ts'
import { parse } from '../../../ground/http/api.ts'
import { previewName } from '../../../drops/sites/schemas.ts'
import { plans } from '../../../ground/terms/plans.ts'
import type { AccountRequest } from '../frame/callers.ts'
import type { Handlers } from '../frame/handlers.ts'
import type { DashboardServices } from '../frame/services.ts'
import type { PreparedVersion } from '../../../drops/publishing/contract.ts'
import type { Actor } from '../../../ground/actor.ts'
import { accessOfForm, type AccessInput } from '../../../drops/viewers/access.ts'
import type { WantedSite } from '../../../drops/sites/settings/reservation.ts'
import { receivePublishForm } from './received.ts'

const previewField = z.object({ preview: previewName.optional() })

/** Each returns where the result is shown, and fills in the fields of the form as they arrive. */
export interface OwnPublishing {
  /** A new drop; without content its address is reserved. */
  publishNew(asked: AccountRequest, fields: URLSearchParams): Promise<string>
  publishVersion(asked: AccountRequest, siteId: string, fields: URLSearchParams): Promise<string>
}

export function createOwnPublishing(
  { sites, versions, publishing }: Pick<DashboardServices, 'sites' | 'versions' | 'publishing'>,
  handlers: Pick<Handlers, 'requireOwnForm'>,
): OwnPublishing {
  function receive(asked: AccountRequest, fields: URLSearchParams): Promise<PreparedVersion | undefined> {
    const { request, actor } = asked
    return receivePublishForm(request, {
      publishing,
      owner: { kind: 'organisation', id: actor.orgId },
      capBytes: plans[actor.plan].uploadBytes,
      maxFiles: plans[actor.plan].filesPerVersion,
      fields,
      admit: () => handlers.requireOwnForm(asked, fields),
    })
  }

  /** The address alone. Whoever is named is invited when there is something to see. */
  async function reserve(actor: Actor, wanted: WantedSite, { access_mode, viewers }: AccessInput): Promise<string> {
    if (viewers !== undefined)
      throw errors.invalidRequest('viewers: choose files, or paste some text first; people are invited to see it.')
    const isPrivate = access_mode === undefined ? undefined : access_mode === 'viewers'
    return (await sites.create(actor, { ...wanted, isPrivate })).value.id
  }

  return {
    async publishNew(asked, fields) {
      const { actor } = asked
      const prepared = await receive(asked, fields)
      const slug = (fields.get('slug') ?? '').trim()
      const name = (fields.get('name') ?? '').trim()
      const wanted = { ...(slug === '' ? {} : { slug }), ...(name === '' ? {} : { name }) }
      const access = audienceOf(fields)
      if (!prepared) return `/sites/${await reserve(actor, wanted, access)}`
      const { value } = await versions.publishNew(actor, wanted, prepared, { access })
      return `/sites/${value.siteId}?done=published`
    },

    async publishVersion(asked, siteId, fields) {
      const { live_version_id: before } = await sites.get(asked.actor, siteId)
      const prepared = await receive(asked, fields)
      if (!prepared) throw errors.invalidRequest('Choose files, or paste some text first.')
      const named = (fields.get('preview') ?? '').trim()
      const { preview } = parse(previewField, named === '' ? {} : { preview: named })
      await versions.publish(asked.actor, siteId, prepared, {
        preview,
        message: (fields.get('message') ?? '').slice(0, MAX_MESSAGE_CHARS),
        ...ifVersionOf(fields),
        purge: fields.has('purge') ? 'older' : undefined,
      })
      if (preview !== undefined) return `/sites/${siteId}/versions?done=preview-published#previews`
      return `/sites/${siteId}?done=published${before === null ? '' : `&before=${before}`}`
    },
  }
}

/** Who may see a new drop; what the form leaves out is as the organisation has it. */
function audienceOf(fields: URLSearchParams): AccessInput {
  const said = ['access_mode', 'viewers'].map((name) => [name, (fields.get(name) ?? '').trim()] as const)
  const given = new Map(said)
  if (given.get('access_mode') === 'public' && given.get('viewers') !== '')
    throw errors.invalidRequest('viewers: choose “Only members and people I name”, or name no one here.')
  return accessOfForm(given)
}

/** The version that the publisher had before their eyes. */
function ifVersionOf(fields: URLSearchParams): { ifVersion?: number } {
  const said = fields.get('if_version') ?? ''
  return /^\d{1,9}$/.test(said) ? { ifVersion: Number(said) } : {}
}
