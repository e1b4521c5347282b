/** A version that an edge cannot serve is taken back, and its publisher hears so, whichever way they came. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Actor } from '../../control/ground/actor.ts'
import type { ApiError } from '../../shared/contracts/errors.ts'
import { keys } from '../../shared/redis/keys.ts'
import { encodeEdgeState } from '../../shared/contracts/live-edges.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let control: ComposedServices
let actor: Actor

beforeAll(async () => {
  control = await composeServices()
  actor = await control.newActor('free')
})
afterAll(() => control.close())

const FAR_AHEAD = `${Date.now() * 2}-0`

/** What the edge says from now on: it has read everything, and cannot use the news of these. */
async function refuse(...names: string[]): Promise<void> {
  const { redis } = control.services
  const state = encodeEdgeState({
    v: 1,
    position: FAR_AHEAD,
    epoch: (await redis.get(keys.epoch))!,
    refused: names.map((name) => [name, 'its manifest is of a later format']),
    refusedCount: names.length,
  })
  await redis.set(keys.edgeState('edge'), state)
}
const accept = () => control.services.redis.del(keys.edgeState('edge'))

const publish = (text: string, slug: string) => control.publishPage(actor, text, slug)
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'published',
    (error: ApiError) => `${error.status} ${error.code}`,
  )
const numbersOf = async (id: string) =>
  (await control.services.versions.list(actor, id)).map(({ version_number, live }) =>
    live ? `${version_number}!` : `${version_number}`,
  )

test('visitors keep the version before, which the list shows as live; the next publish goes through', async () => {
  const { site } = await publish('one', 'kept')
  await publish('two', 'kept')
  await refuse('route kept.localhost')
  expect(await codeOf(publish('three', 'kept'))).toBe('503 not_served')
  expect(await numbersOf(site.id)).toEqual(['2!', '1'])
  expect(await control.routeOf('kept')).toMatchObject({ version_number: 2, state: 'live' })
  expect((await control.services.sites.get(actor, site.id)).title).toBe('two')
  await accept()
  await publish('four', 'kept')
  expect(await numbersOf(site.id)).toEqual(['4!', '2', '1'])
})

test('the version that retention dropped for it is retained again', async () => {
  const { site } = await publish('one', 'full')
  await publish('two', 'full')
  await publish('three', 'full')
  await refuse('route full.localhost')
  expect(await codeOf(publish('four', 'full'))).toBe('503 not_served')
  expect(await numbersOf(site.id)).toEqual(['3!', '2', '1'])
  await accept()
})

test('a promotion is taken back too, and a first publish leaves the drop reserved', async () => {
  const { site, version } = await publish('one', 'promoted')
  await publish('two', 'promoted')
  await refuse('route promoted.localhost', 'route first.localhost')
  const promoting = control.services.versions.promote(actor, site.id, version.version_id)
  expect(await codeOf(promoting)).toBe('503 not_served')
  expect(await numbersOf(site.id)).toEqual(['2!', '1'])
  await control.services.sites.delete(actor, site.id)

  expect(await codeOf(publish('one', 'first'))).toBe('503 not_served')
  expect(await control.routeOf('first')).toMatchObject({ state: 'reserved', manifest: null })
  await accept()
  await publish('again', 'first')
  expect(await control.routeOf('first')).toMatchObject({ state: 'live' })
})

test('a bad certificate of an address, or the news of another drop, is no reason to take anything back', async () => {
  await control.changePlan(actor.orgId, 'plus')
  await refuse('certificate other.localhost', 'route somebody-else.localhost')
  expect(await codeOf(publish('one', 'other'))).toBe('published')
  await accept()
})

test('of two publishers who race one at least hears it, and the list says what the edges are told', async () => {
  const { site } = await publish('one', 'raced')
  await refuse('route raced.localhost')
  const second = publish('two', 'raced')
  const third = publish('three', 'raced')
  const answers = await Promise.all([codeOf(second), codeOf(third)])
  expect(answers).toContain('503 not_served')
  await accept()
  // Nothing that was refused is live: the last one that was served is.
  const [newest] = await numbersOf(site.id)
  expect(newest).toMatch(/!$/)
  expect(await control.routeOf('raced')).toMatchObject({ version_number: Number.parseInt(newest!, 10) })
})
