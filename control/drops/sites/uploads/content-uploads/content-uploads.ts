/**
 * Content that is too large for a message (MCP): an address takes one file by PUT, and a publish names it afterwards.
 * The address is signed and is the only credential, so that `curl -T` is all it needs; it takes one file, once, of
 * the size that the plan allows, for half a day, and counts against the plan until a publish has used it.
 */
import type { BlobStore, StoredBlob } from '../../../../../shared/blobs/blob-store.ts'
import type { Clock } from '../../../../../shared/running/clock.ts'
import { errors } from '../../../../../shared/contracts/errors.ts'
import { newId } from '../../../../../shared/contracts/ids.ts'
import { plans } from '../../../../ground/terms/plans.ts'
import type { Secrets } from '../../../../../shared/secrets/secrets.ts'
import type { Actor } from '../../../../ground/actor.ts'
import { transaction, type Pool } from '../../../../ground/database/sql.ts'
import { lockOrganisation } from '../../queries.ts'
import { requireFewUnderWay, UPLOAD_LIFETIME_MS } from '../under-way.ts'
import { requireStorage } from '../../versions/commit.ts'
import * as queries from './queries.ts'

export const CONTENT_PATH = '/api/v1/content'

export interface ContentUpload {
  readonly id: string
  /** Takes the file by PUT, without any other credential. */
  readonly putUrl: string
  readonly maxBytes: number
  readonly expiresAt: Date
}

export interface SentContent {
  readonly name: string
  readonly hash: string
  readonly size: number
}

export interface ContentUploads {
  /** Throws `plan_limit` when too many are under way. */
  create(actor: Actor, name: string): Promise<ContentUpload>
  /** The body of a PUT to the address; throws `not_found` when the address is not one of ours or too old. */
  receive(token: string, body: AsyncIterable<Uint8Array>): Promise<{ upload: string; size: number; sha256: string }>
  /**
   * Publishes what was sent, in the order of `ids`; throws words about what to do when nothing was. What a publish has
   * used no longer counts as under way, and may be used again.
   */
  use<Result>(
    actor: Actor,
    ids: readonly string[],
    publish: (sent: readonly SentContent[]) => Promise<Result>,
  ): Promise<Result>
  sweep(): Promise<void>
}

interface ContentUploadsDependencies {
  sql: Pool
  clock: Clock
  secrets: Pick<Secrets, 'sign' | 'verify'>
  blobs: Pick<BlobStore, 'writer' | 'discard'>
  baseUrl: string
}

export function createContentUploads({
  sql,
  clock,
  secrets,
  blobs,
  baseUrl,
}: ContentUploadsDependencies): ContentUploads {
  const now = (): Date => new Date(clock.now())

  async function store(maxBytes: number, body: AsyncIterable<Uint8Array>): Promise<StoredBlob> {
    const writer = await blobs.writer()
    let size = 0
    try {
      for await (const chunk of body) {
        size += chunk.length
        if (size > maxBytes) throw errors.uploadTooLarge(maxBytes)
        await writer.write(chunk)
      }
      return await writer.finish()
    } catch (error) {
      await writer.abort()
      throw error
    }
  }

  /** Under the lock of the organisation: two files that arrive at once do not both take what is left of the plan. */
  async function fill(upload: queries.ContentUploadRow, { hash, size }: StoredBlob): Promise<void> {
    await transaction(sql, async (tx) => {
      const plan = await lockOrganisation(tx, upload.org_id)
      if (plan === undefined) throw errors.notFound('upload address')
      const filled = await queries.fillContentUpload(tx, upload.id, { hash, size })
      if (!filled) throw alreadySent()
      await requireStorage(tx, { orgId: upload.org_id, plan, now: now() })
    })
  }

  async function requireSent(actor: Actor, id: string): Promise<SentContent> {
    const upload = await queries.findContentUpload(sql, id, now())
    if (!upload || upload.org_id !== actor.orgId) throw errors.notFound('upload')
    const { name, hash, size } = upload
    if (hash === null || size === null)
      throw errors.invalidRequest(`Nothing has arrived for the upload ${id} yet. PUT the file to its address first.`)
    return { name, hash, size }
  }

  return {
    async create(actor, name) {
      const id = newId('upl', clock.now())
      const upload = {
        id,
        org_id: actor.orgId,
        name,
        max_bytes: plans[actor.plan].uploadBytes,
        created_at: now(),
        expires_at: new Date(clock.now() + UPLOAD_LIFETIME_MS),
      }
      await transaction(sql, async (tx) => {
        await lockOrganisation(tx, actor.orgId)
        await requireFewUnderWay(tx, actor.orgId, now())
        await queries.insertContentUpload(tx, upload)
      })
      return {
        id,
        putUrl: `${baseUrl}${CONTENT_PATH}/${id}.${secrets.sign('content-upload', id)}`,
        maxBytes: upload.max_bytes,
        expiresAt: upload.expires_at,
      }
    },

    async receive(token, body) {
      const [id = '', signature = ''] = token.split('.')
      const upload = secrets.verify('content-upload', id, signature)
        ? await queries.findContentUpload(sql, id, now())
        : undefined
      if (!upload) throw errors.notFound('upload address')
      if (upload.hash !== null) throw alreadySent()
      const stored = await store(upload.max_bytes, body)
      try {
        await fill(upload, stored)
      } catch (error) {
        if (stored.modifiedAt !== undefined) await blobs.discard(stored.hash, stored.modifiedAt)
        throw error
      }
      return { upload: id, size: stored.size, sha256: stored.hash }
    },

    async use(actor, ids, publish) {
      const sent: SentContent[] = []
      for (const id of ids) sent.push(await requireSent(actor, id))
      await queries.markUsed(sql, ids, now())
      try {
        return await publish(sent)
      } catch (error) {
        await queries.markUsed(sql, ids, null)
        throw error
      }
    },

    sweep: () => queries.deleteExpiredContentUploads(sql, now()),
  }
}

function alreadySent(): Error {
  return errors.conflict('already_sent', 'This address has taken its file already.')
}
