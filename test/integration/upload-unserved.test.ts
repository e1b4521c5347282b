/** Files that no visitor can ask for come with an upload's list, and are neither asked for nor stored. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let control: ComposedServices

beforeAll(async () => {
  control = await composeServices()
})
afterAll(() => control.close())

const announced = (path: string, text: string) => ({
  path,
  sha256: createHash('sha256').update(text).digest('hex'),
  size: text.length,
})

test.each(['.DS_Store', '__MACOSX/x', '.dropway/x'])('%s', async (name) => {
  const actor = await control.newActor('free')
  const { site } = await control.publishPage(actor, 'one')
  const files = [announced('index.html', '<!doctype html><title>one</title>'), announced(name, 'clutter')]
  const started = await control.services.uploads.start(actor, site.id, { files })
  expect(started).toMatchObject({ unchanged: true, missing: [] })
  expect(await control.services.uploads.check(actor, { site_id: site.id, files })).toMatchObject({
    missing: { file_count: 0, byte_size: 0 },
  })
  const place = { siteId: site.id, uploadId: started.upload_id }
  const { value } = await control.services.uploads.finish(actor, place)
  expect(value.report.warnings).toMatchObject([{ code: 'never_served', path: name }])
})
