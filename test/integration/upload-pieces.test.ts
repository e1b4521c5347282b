/** A large file that is sent in pieces lies beside the store until it is whole. Another control may write to it, too. */
import { createHash, randomBytes } from 'node:crypto'
import { truncate } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let control: ComposedServices
beforeAll(async () => {
  control = await composeServices()
})
afterAll(() => control.close())

test('what changes while it is taken into the store is refused, and counts as missing', async () => {
  const { uploads, blobs } = control.services
  const actor = await control.newActor('plus')
  const { site } = await control.publishPage(actor, 'before')
  const bytes = randomBytes(400_000)
  const hash = createHash('sha256').update(bytes).digest('hex')
  const files = [{ path: 'index.html', sha256: hash, size: bytes.length }]
  const { upload_id: uploadId } = await uploads.start(actor, site.id, { files })
  const place = { siteId: site.id, uploadId }
  const send = () => uploads.receive(actor, place, { hash, offset: 0, body: Readable.from([bytes]) })

  const partial = path.join(control.dataDir, 'uploads', uploadId, hash)
  const store = blobs.writer.bind(blobs)
  // The file is whole, and another control begins with it anew.
  vi.spyOn(blobs, 'writer').mockImplementationOnce(async () => {
    await truncate(partial, 1000)
    return store()
  })
  await expect(send()).rejects.toMatchObject({ code: 'invalid_request' })
  expect(await uploads.progress(actor, place)).toMatchObject({ missing: [hash], arrived: {} })
  await send()
  expect(await uploads.progress(actor, place)).toMatchObject({ missing: [] })
  expect((await blobs.read(hash)).equals(bytes)).toBe(true)
})
