/** Previews among the versions: what going live, and being replaced, means for both. */
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Actor } from '../../control/ground/actor.ts'
import { receiveContent } from '../../control/drops/publishing/intake/take-in.ts'
import { MAX_WITHHELD_REMEMBERED } from '../../control/drops/publishing/manifest/kept-files.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

const KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
  type: 'pkcs8',
  format: 'pem',
}) as string

let control: ComposedServices
let actor: Actor

beforeAll(async () => {
  control = await composeServices()
})
beforeEach(async () => {
  actor = await control.newActor('free')
})
afterAll(() => control.close())

async function publish(
  siteId: string,
  files: Readonly<Record<string, string>>,
  { preview, secrets = 'withhold' }: { preview?: string; secrets?: 'allow' | 'withhold' } = {},
) {
  const { publishing, versions } = control.services
  const limits = {
    owner: { kind: 'organisation', id: actor.orgId },
    capBytes: 10_000_000,
    maxFiles: 20_000,
    base: undefined,
  } as const
  const prepared = await receiveContent(publishing, limits, async (intake) => {
    for (const [path, text] of Object.entries({ 'index.html': '<title>one</title>', ...files }))
      await intake.addFile(
        path,
        (async function* () {
          yield Buffer.from(text)
        })(),
      )
    return { secrets }
  })
  return (await versions.publish(actor, siteId, prepared, { preview })).value
}

const newDrop = async () => (await control.services.sites.create(actor, {})).value
const promote = (siteId: string, name: string) => control.services.previews.promote(actor, siteId, name)
const numbersOf = async (siteId: string) =>
  (await control.services.versions.list(actor, siteId)).map(({ version_number, live }) =>
    live ? `${version_number}!` : `${version_number}`,
  )

/** What open tabs still find of former versions. */
async function keptOf(siteId: string): Promise<string[]> {
  const [row] = await control.sql<{ hash: string | null }[]>`
    select served_manifest_hash as hash from sites where id = ${siteId}`
  const manifest = row?.hash ? await control.services.publishing.readManifest(row.hash) : undefined
  return (manifest?.kept?.files ?? []).map(([path]) => path).toSorted()
}

test('the oldest version goes when a preview is promoted, again and again', async () => {
  const { id, slug } = await newDrop()
  await publish(id, {})
  for (let round = 0; round < 6; round++) {
    await publish(id, { 'round.txt': `${round}` }, { preview: 'next' })
    await promote(id, 'next')
  }
  expect(await numbersOf(id)).toEqual(['7!', '6', '5'])
  expect((await control.routeOf(slug)).versions.map(([number]) => number)).toEqual([7, 6, 5])
})

test('neither the version that was just promoted goes, nor one that the name of a preview shows', async () => {
  const { id } = await newDrop()
  await publish(id, { 'a.txt': 'a' }, { preview: 'next' })
  for (const text of ['b', 'c', 'd']) await publish(id, { 'a.txt': text })
  await promote(id, 'next')
  expect(await numbersOf(id)).toEqual(['4', '3', '1!'])
  await publish(id, { 'a.txt': 'e' })
  expect(await numbersOf(id)).toEqual(['5!', '4', '1'])
  expect((await control.services.previews.list(actor, id)).map(({ version_number }) => version_number)).toEqual([1])
})

test('going back to a version drops none', async () => {
  const { id } = await newDrop()
  const first = await publish(id, { 'a.txt': 'a' })
  for (const text of ['b', 'c']) await publish(id, { 'a.txt': text })
  await control.services.versions.promote(actor, id, first.version_id)
  expect(await numbersOf(id)).toEqual(['3', '2', '1!'])
})

test('what only its content betrays stays back, however much its publish withheld beside it', async () => {
  const { id } = await newDrop()
  const names = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`.env.${index}`, 'KEY=1']))
  const files = { ...names, 'notes/todo.txt': `Do not lose this:\n\n${KEY}` }
  await publish(id, { ...files, 'old.js': 'old' }, { secrets: 'allow' })
  await publish(id, files, { preview: 'next' })
  await promote(id, 'next')
  expect(await keptOf(id)).toEqual(['old.js'])
})

test('a secret that has moved stays back under its former name, too', async () => {
  const { id } = await newDrop()
  const moved = { 'new/key.txt': KEY, 'b.js': 'b' }
  await publish(id, { 'old/key.txt': KEY, 'a.js': 'a' }, { secrets: 'allow' })
  await publish(id, moved)
  expect(await keptOf(id)).toEqual(['a.js'])

  const { id: other } = await newDrop()
  await publish(other, { 'old/key.txt': KEY, 'a.js': 'a' }, { secrets: 'allow' })
  await publish(other, moved, { preview: 'next' })
  await promote(other, 'next')
  expect(await keptOf(other)).toEqual(['a.js'])
})

test('a version that withheld more than it remembers keeps nothing of the one before', async () => {
  const { id } = await newDrop()
  await publish(id, { 'old.js': 'old' })
  const { version_id } = await publish(id, { 'key.txt': KEY }, { preview: 'next' })
  const many = Array.from({ length: MAX_WITHHELD_REMEMBERED + 1 }, (_, index) => `${index}.txt`)
  await control.sql`update versions set withheld = ${many} where id = ${version_id} and withheld = '{key.txt}'`
  await promote(id, 'next')
  expect(await keptOf(id)).toEqual([])
})

test('the live version is compared with what was live before it, not with a preview', async () => {
  const { id } = await newDrop()
  await publish(id, { 'a.txt': 'a' })
  await publish(id, { 'a.txt': 'b' }, { preview: 'next' })
  const { version_id } = await publish(id, { 'a.txt': 'c' })
  expect(await control.services.versions.compare(actor, id, version_id)).toMatchObject({ with: 1 })
  const [named] = await control.services.previews.list(actor, id)
  expect(await control.services.versions.compare(actor, id, named!.version_id)).toMatchObject({ with: 3 })
})

test('who is over the cap may replace a preview with one that is no larger', async () => {
  const { id } = await newDrop()
  await publish(id, {})
  await publish(id, { 'a.txt': 'a' }, { preview: 'next' })
  await control.sql`update versions set byte_size = 60000000 where site_id = ${id} and number = 1`
  expect(await publish(id, { 'a.txt': 'b' }, { preview: 'next' })).toMatchObject({ version_number: 3 })
  await expect(publish(id, { 'a.txt': 'bb' }, { preview: 'next' })).rejects.toMatchObject({ code: 'plan_limit' })
})
