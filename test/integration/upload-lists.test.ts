/** A list of files is what it says, whatever control remembers of it and whatever went live since it was sent. */
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Actor } from '../../control/ground/actor.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let control: ComposedServices
let actor: Actor
beforeAll(async () => {
  control = await composeServices()
  actor = await control.newActor('plus')
})
afterAll(() => control.close())

type Files = Readonly<Record<string, string>>

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

async function start(siteId: string, files: Files): Promise<string> {
  const { uploads } = control.services
  const list = Object.entries(files).map(([path, text]) => ({ path, sha256: sha256(text), size: text.length }))
  const { upload_id: uploadId, missing } = await uploads.start(actor, siteId, { files: list })
  const texts = new Map(Object.values(files).map((text) => [sha256(text), text]))
  for (const hash of missing)
    await uploads.receive(
      actor,
      { siteId, uploadId },
      { hash, offset: 0, body: Readable.from([Buffer.from(texts.get(hash)!)]) },
    )
  return uploadId
}

async function finish(siteId: string, uploadId: string): Promise<Files> {
  const { uploads, publishing } = control.services
  await uploads.finish(actor, { siteId, uploadId })
  const manifest = await control.services.versions.liveManifest(siteId, (await liveIdOf(siteId)) ?? null)
  const read = async ({ hash }: { hash: string }): Promise<string> => (await publishing.readBlob(hash)).toString()
  return Object.fromEntries(
    await Promise.all((manifest?.files ?? []).map(async ([path, file]) => [path, await read(file)] as const)),
  )
}

async function liveIdOf(siteId: string): Promise<string | undefined> {
  return (await control.services.sites.requireOwn(control.sql, actor, siteId)).live_version_id ?? undefined
}

const page = (text: string): string => `<!doctype html><title>${text}</title>`
const FIRST: Files = { 'index.html': page('one'), 'a.html': page('a'), 'b.txt': 'b' }

test('a list that is finished at once, and after something else has gone live', async () => {
  const { site } = await control.publishPage(actor, 'before')
  expect(await finish(site.id, await start(site.id, FIRST))).toEqual(FIRST)
  const second = { ...FIRST, 'a.html': page('a, changed'), 'c.txt': 'c' }
  const begun = await start(site.id, second)
  // Something else goes live meanwhile: the list is still the whole list.
  const meanwhile = { 'index.html': page('meanwhile'), 'd.txt': 'd' }
  expect(await finish(site.id, await start(site.id, meanwhile))).toEqual(meanwhile)
  expect(await finish(site.id, begun)).toEqual(second)
  // Nothing changed, one file is gone, and its name is a folder now.
  expect(await finish(site.id, await start(site.id, second))).toEqual(second)
  const { 'c.txt': _gone, ...third } = second
  expect(await finish(site.id, await start(site.id, { ...third, 'c.txt/d.html': page('d') }))).toEqual({
    ...third,
    'c.txt/d.html': page('d'),
  })
})

test('a name beside those of the live version is refused like any other', async () => {
  const { site } = await control.publishPage(actor, 'refused')
  await finish(site.id, await start(site.id, FIRST))
  for (const wrong of ['b.txt/c.txt', '../x', 'a.html\\b'])
    await expect(start(site.id, { ...FIRST, [wrong]: 'x' })).rejects.toMatchObject({ code: 'invalid_request' })
})

test('an upload that cannot be published can be finished again', async () => {
  const { site } = await control.publishPage(actor, 'again')
  await finish(site.id, await start(site.id, FIRST))
  const next = { ...FIRST, 'a.html': page('again') }
  const begun = await start(site.id, next)
  vi.spyOn(control.services.versions, 'publish').mockRejectedValueOnce(new Error('away'))
  await expect(finish(site.id, begun)).rejects.toThrow('away')
  // What was remembered of it is forgotten; its row is there.
  expect(await finish(site.id, begun)).toEqual(next)
})
