/** Images in comments: pasted first, named by the message that is sent afterwards, and gone with it. */
import type { BlobStore } from '../../../shared/blobs/blob-store.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { DAY_MS, type Clock } from '../../../shared/running/clock.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import { createThrottle } from '../../ground/http/limits/throttle.ts'
import { pictureOf } from './pictures.ts'
import * as queries from './queries.ts'
import type { ImageRow } from './queries.ts'
import { requireMay, type Reviewer } from './reviewer.ts'
import { MAX_IMAGE_BYTES, MAX_IMAGES_PER_DROP, THREAD_ALLOWANCES, type Author } from './rules.ts'

export interface ThreadImages {
  /** Stores what was pasted; it is seen by its author alone until a message names it. */
  add(reviewer: Reviewer, bytes: Buffer): Promise<ImageRow>
  /** For who may read the threads. Throws 404 for what another person has not sent yet. */
  read(reviewer: Reviewer, imageId: string): Promise<{ image: ImageRow; bytes: Buffer }>
  /** Removes what was pasted and never sent. */
  sweep(): Promise<void>
}

/** A comment that is being written is sent within a day. */
const UNSENT_MS = DAY_MS

export function createThreadImages({
  sql,
  clock,
  blobs,
}: {
  readonly sql: Pool
  readonly clock: Clock
  readonly blobs: Pick<BlobStore, 'put' | 'read'>
}): ThreadImages {
  const throttle = createThrottle({ sql, clock, allowances: THREAD_ALLOWANCES })
  return {
    async add(reviewer, bytes) {
      requireMay(reviewer, 'reply')
      const picture = bytes.length > MAX_IMAGE_BYTES ? undefined : pictureOf(bytes)
      if (!picture)
        throw errors.invalidRequest(
          `Paste a PNG, JPEG, GIF or WebP image of at most ${MAX_IMAGE_BYTES / 1_000_000} MB and 36 million pixels.`,
        )
      const { site, kind, id, key } = reviewer
      if (kind === 'guest') await throttle.require('linkImages', id)
      await throttle.require('images', `${id} ${key}`)
      // Durable before the row that names it; without a row it is collected after a while.
      const { hash, size } = await blobs.put(bytes)
      return transaction(sql, async (tx) => {
        await queries.lockCounts(tx, site.id)
        if ((await queries.countImages(tx, site.id)) >= MAX_IMAGES_PER_DROP)
          throw errors.limitReached(`A drop has at most ${MAX_IMAGES_PER_DROP} images in its comments.`)
        const image = {
          id: newId('ti', clock.now()),
          site_id: site.id,
          message_id: null,
          hash,
          byte_size: size,
          ...picture,
          author_kind: kind,
          author_id: id,
          author_key: key,
          created_at: new Date(clock.now()),
        }
        await queries.insertImage(tx, image)
        return image
      })
    },

    async read(reviewer, imageId) {
      requireMay(reviewer, 'read')
      const image = await queries.findImage(sql, reviewer.site.id, imageId)
      if (!image || (image.message_id === null && !isBy(image, reviewer))) throw errors.notFound('image')
      return { image, bytes: await blobs.read(image.hash) }
    },

    sweep: () => queries.deleteUnsentImages(sql, new Date(clock.now() - UNSENT_MS)),
  }
}

function isBy(image: ImageRow, { kind, id, key }: Pick<Author, 'kind' | 'id' | 'key'>): boolean {
  return image.author_kind === kind && image.author_id === id && image.author_key === key
}

/** attachImages makes images a part of a message: those of its author that no other message has. Throws 400 for others. */
export async function attachImages(
  tx: Sql,
  { site, kind, id, key }: Reviewer,
  messageId: string,
  imageIds: readonly string[],
): Promise<ImageRow[]> {
  const wanted = [...new Set(imageIds)]
  if (wanted.length === 0) return []
  const author = { kind, id, key, name: '' }
  const attached = await queries.setImagesMessage(tx, { siteId: site.id, author, messageId, ids: wanted })
  if (attached.length !== wanted.length)
    throw errors.invalidRequest('images: one of them is not there any more. Paste it again.')
  return attached
}
