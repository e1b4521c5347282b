/** A version that an edge cannot serve is taken back, and its publisher hears so, whichever way they came. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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

describe('a preview that people spoke about', () => {
  const aboutPreview = async (slug: string) => {
    const owner = await control.newActor('business')
    const send = async (text: string, options: { preview?: string; purge?: 'all' } = {}) => {
      const content = { kind: 'text', format: 'html', content: `<!doctype html><title>${text}</title>` } as const
      return (await control.services.quickPublish.publish(owner, { content, slug, ...options })).value
    }
    const { site } = await send('one')
    const { version } = await send('two', { preview: 'next' })
    const member = await control.services.reviewers.member(owner, site.id)
    await control.services.review.open(member, { page: '/', body: 'When?', preview: 'next' })
    /** What is retained, what has a name, and which threads are about a preview. */
    const seen = async () => ({
      versions: await control.services.sql`
        select number, is_preview from versions where site_id = ${site.id} and dropped_at is null order by number`,
      names: (await control.services.previews.list(owner, site.id)).map(({ name }) => name),
      threads: await control.services.sql`select preview from threads where site_id = ${site.id}`,
    })
    return { owner, site, version, send, seen }
  }

  test('is as it was when the publish that purged it is taken back, and gone with one that stands', async () => {
    const { send, seen } = await aboutPreview('purged')
    const before = await seen()
    expect(before).toMatchObject({ names: ['next'], threads: [{ preview: 'next' }] })
    await refuse('route purged.localhost')
    expect(await codeOf(send('three', { purge: 'all' }))).toBe('503 not_served')
    expect(await seen()).toEqual(before)
    await accept()
    await send('four', { purge: 'all' })
    const only = { versions: [{ number: 4, is_preview: false }], names: [], threads: [{ preview: null }] }
    expect(await seen()).toMatchObject(only)
  })

  test('is as it was when its promotion is taken back', async () => {
    const { owner, site, version, seen } = await aboutPreview('promoting')
    const before = await seen()
    await refuse('route promoting.localhost')
    const promoting = control.services.versions.promote(owner, site.id, version.version_id)
    expect(await codeOf(promoting)).toBe('503 not_served')
    expect(await seen()).toEqual(before)
    await accept()
  })
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
