/**
 * Content that is too large for a message (MCP): an address takes one file by PUT, and a publish names it afterwards.
 * The address is signed and is the only credential, so that `curl -T` is all it needs; it takes one file, once, of
 * the size that the plan allows, for a few hours.
 */
import type { BlobStore } from '../../../../shared/blobs/blob-store.ts'
import { HOUR_MS, type Clock } from '../../../../shared/running/clock.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { newId } from '../../../../shared/contracts/ids.ts'
import { plans } from '../../../ground/terms/plans.ts'
import type { Secrets } from '../../../../shared/secrets/secrets.ts'
import type { Actor } from '../../../ground/actor.ts'
import type { Pool } from '../../../ground/database/sql.ts'
import * as queries from './queries.ts'

/** Less than the time that a blob which nothing references is kept. */
const LIFETIME_MS = 6 * HOUR_MS
/** A site of several large files at once; a new one ends the oldest. */
const MAX_OPEN = 20

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
  create(actor: Actor, name: string): Promise<ContentUpload>
  /** The body of a PUT to the address; throws `not_found` when the address is not one of ours or too old. */
  receive(token: string, body: AsyncIterable<Uint8Array>): Promise<{ upload: string; size: number; sha256: string }>
  /** What was sent; throws words about what to do when nothing was. */
  find(actor: Actor, id: string): Promise<SentContent>
  sweep(): Promise<void>
}

interface ContentUploadsDependencies {
  sql: Pool
  clock: Clock
  secrets: Pick<Secrets, 'sign' | 'verify'>
  blobs: Pick<BlobStore, 'writer'>
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

  async function store(maxBytes: number, body: AsyncIterable<Uint8Array>): Promise<{ hash: string; size: number }> {
    const writer = await blobs.writer()
    let size = 0
    try {
      for await (const chunk of body) {
        size += chunk.length
        if (size > maxBytes) throw errors.uploadTooLarge(maxBytes)
        await writer.write(chunk)
      }
      const { hash } = await writer.finish()
      return { hash, size }
    } catch (error) {
      await writer.abort()
      throw error
    }
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
        expires_at: new Date(clock.now() + LIFETIME_MS),
      }
      await queries.insertContentUpload(sql, upload, MAX_OPEN)
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
      if (upload.hash !== null) throw errors.conflict('already_sent', 'This address has taken its file already.')
      const { hash, size } = await store(upload.max_bytes, body)
      if (!(await queries.fillContentUpload(sql, id, { hash, size })))
        throw errors.conflict('already_sent', 'This address has taken its file already.')
      return { upload: id, size, sha256: hash }
    },

    async find(actor, id) {
      const upload = await queries.findContentUpload(sql, id, now())
      if (!upload || upload.org_id !== actor.orgId) throw errors.notFound('upload')
      const { name, hash, size } = upload
      if (hash === null || size === null)
        throw errors.invalidRequest(`Nothing has arrived for the upload ${id} yet. PUT the file to its address first.`)
      return { name, hash, size }
    },

    sweep: () => queries.deleteExpiredContentUploads(sql, now()),
  }
}
