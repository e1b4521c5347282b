/** A disk that is nearly full takes a part of what it is given: the rest is given again, until it is taken or refused. */
import { createHash, randomBytes } from 'node:crypto'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

/** What one write takes at most. */
const TAKEN_BYTES = 50_000

let control: ComposedServices
beforeAll(async () => {
  control = await composeServices()
  const handle = await open('/dev/null')
  const files = Object.getPrototypeOf(handle) as Pick<typeof handle, 'write'>
  await handle.close()
  const write = files.write as (...given: unknown[]) => Promise<{ bytesWritten: number }>
  function short(this: unknown, buffer: Buffer, offset = 0, length = buffer.length - offset, position?: number) {
    return write.call(this, buffer, offset, Math.min(length, TAKEN_BYTES), position)
  }
  vi.spyOn(files, 'write').mockImplementation(short as typeof files.write)
})
afterAll(async () => {
  vi.restoreAllMocks()
  await control.close()
})

test('a large file that is sent in two pieces is published as it was sent', async () => {
  const { uploads, versions, publishing } = control.services
  const actor = await control.newActor('plus')
  const { site } = await control.publishPage(actor, 'before')
  const bytes = randomBytes(700_000)
  const page = Buffer.from('<!doctype html><title>after</title>')
  const listed = (path: string, content: Buffer) => ({
    path,
    sha256: createHash('sha256').update(content).digest('hex'),
    size: content.length,
  })
  const files = [listed('index.html', page), listed('large.bin', bytes)]
  const { upload_id: uploadId } = await uploads.start(actor, site.id, { files })
  const place = { siteId: site.id, uploadId }
  const send = (content: Buffer, offset = 0) =>
    uploads.receive(actor, place, {
      hash: (content === page ? files[0]! : files[1]!).sha256,
      offset,
      body: Readable.from([content.subarray(offset)]),
    })
  await send(page)
  const half = { hash: files[1]!.sha256, offset: 0, body: Readable.from([bytes.subarray(0, 300_000)]) }
  await expect(uploads.receive(actor, place, half)).rejects.toMatchObject({ code: 'invalid_request' })
  expect(await uploads.offset(actor, place, half.hash)).toBe(300_000)
  await send(bytes, 300_000)
  await uploads.finish(actor, place)
  const live = await versions.liveManifest(site.id, (await control.services.sites.get(actor, site.id)).live_version_id)
  const large = new Map(live?.files).get('large.bin')
  expect((await publishing.readBlob(large?.hash ?? '')).equals(bytes)).toBe(true)
})
