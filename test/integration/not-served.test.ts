/** A version that an edge cannot serve is taken back, and its publisher hears so, whichever way they came. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Actor } from '../../control/ground/actor.ts'
import type { ApiError } from '../../shared/contracts/errors.ts'
import type { QuickPublishInput } from '../../control/drops/sites/versions/quick-publish.ts'
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

/** Runs `work` once the next change is committed, before the edges are asked about it. */
function meanwhile(work: () => Promise<unknown>): void {
  const { routing } = control.services
  const propagate = vi.spyOn(routing, 'propagate').mockImplementationOnce(async (changes) => {
    propagate.mockRestore()
    await work()
    return routing.propagate(changes)
  })
}

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

test('so is the one that went when a preview was promoted', async () => {
  const owner = await control.newActor('free')
  const send = async (text: string, preview?: string) => {
    const content = { kind: 'text', format: 'html', content: `<!doctype html><title>${text}</title>` } as const
    return (await control.services.quickPublish.publish(owner, { content, slug: 'full-before', preview })).value
  }
  const { site } = await send('one')
  await send('two')
  await send('three')
  const { version } = await send('four', 'next')
  await refuse('route full-before.localhost')
  const promoting = control.services.versions.promote(owner, site.id, version.version_id)
  expect(await codeOf(promoting)).toBe('503 not_served')
  expect((await control.services.versions.list(owner, site.id)).map(({ version_number }) => version_number)).toEqual([
    3, 2, 1,
  ])
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

test('a drop that is claimed while an edge refuses it stays with its new owner', async () => {
  const { routing, anonymous } = control.services
  const owner = await control.newActor('free')
  let claiming: Promise<unknown> | undefined
  vi.spyOn(routing, 'propagate').mockImplementationOnce(async () => {
    const held = Promise.withResolvers<void>()
    // The claim is not committed before the publish, which is to be taken back, waits for it.
    const claim = { anonymousId: 'claims-at-once', orgId: owner.orgId, isNewAccount: false }
    claiming = control.overlap(
      (tx) => anonymous.claimBrowser(tx, claim).then(() => held.resolve()),
      () => publishing,
    )
    await held.promise
    return { pending: true, refused: 'its manifest is of a later format' }
  })
  const publishing = codeOf(control.publishAnonymously('claims-at-once'))
  expect(await publishing).toBe('published')
  await claiming
  expect(await control.services.sites.list(owner)).toMatchObject([{ state: 'live' }])
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

  test('is gone when its promotion is taken back and its name was removed meanwhile', async () => {
    const { owner, site, version, seen } = await aboutPreview('unnamed-since')
    await refuse('route unnamed-since.localhost')
    meanwhile(() => control.services.previews.remove(owner, site.id, 'next'))
    const promoting = control.services.versions.promote(owner, site.id, version.version_id)
    expect(await codeOf(promoting)).toBe('503 not_served')
    const versions = [{ number: 1, is_preview: false }]
    expect(await seen()).toEqual({ versions, names: [], threads: [{ preview: null }] })
    await accept()
  })

  test('shows what was published to it since the publish that purged it and is taken back', async () => {
    const { send, seen } = await aboutPreview('named-since')
    await refuse('route named-since.localhost')
    meanwhile(() => send('four', { preview: 'next' }))
    expect(await codeOf(send('three', { purge: 'all' }))).toBe('503 not_served')
    const versions = [
      { number: 1, is_preview: false },
      { number: 4, is_preview: true },
    ]
    expect(await seen()).toEqual({ versions, names: ['next'], threads: [{ preview: 'next' }] })
    await accept()
  })
})

describe('who may see a drop', () => {
  const sharedDrop = async (slug: string) => {
    const owner = await control.newActor('business')
    const send = async (text: string, options: Omit<QuickPublishInput, 'content'> = {}) => {
      const content = { kind: 'text', format: 'html', content: `<!doctype html><title>${text}</title>` } as const
      return (await control.services.quickPublish.publish(owner, { content, slug, ...options })).value
    }
    /** The columns, the lists and the mails, without the generation. */
    const seen = async (id: string) => ({
      columns: await control.sql`select password_hash, access_until from sites where id = ${id}`,
      viewers: await control.sql`select id, value from viewers where site_id = ${id} order by value`,
      links: await control.sql`select id from guest_links where site_id = ${id}`,
      mails: await control.sql`
        select recipient from mails where starts_with(event_key, ${`viewers:${id}:`}) order by recipient`,
    })
    const doorOf = async () => {
      const { password, viewers, expires_at, version_number } = await control.routeOf(slug)
      return { password: password?.hash, viewers: viewers !== undefined, expires_at, version_number }
    }
    const generationOf = async (id: string) =>
      (
        await control.sql<{ password_generation: number }[]>`
        select password_generation from sites where id = ${id}`
      )[0]!.password_generation
    return { owner, send, seen, doorOf, generationOf }
  }
  const ada = [{ email: 'ada@example.com' }]
  const past = '2020-01-01T00:00:00.000Z'

  test.each<[string, Partial<QuickPublishInput>, Partial<QuickPublishInput>]>([
    ['viewers, then everyone', { access: { viewers: ada } }, { access: { access_mode: 'public' } }],
    ['viewers, then a password', { access: { viewers: ada } }, { password: 'open sesame' }],
    ['a password, then everyone', { password: 'open sesame' }, { access: { access_mode: 'public' } }],
    ['a password, then another', { password: 'open sesame' }, { password: 'another word' }],
    ['until a time, then for ever', { access: { access_until: past } }, { access: { access_until: null } }],
    [
      'some viewers, then more and a guest link',
      { access: { viewers: ada } },
      { access: { viewers: [{ email: 'bea@example.com' }, { domain: 'example.org' }], guest_link: true } },
    ],
    ['everyone, then viewers', {}, { access: { viewers: ada } }],
  ])('is as it was when a publish is taken back that says otherwise: %s', async (said, first, second) => {
    const slug = `shared-${said.replaceAll(/[^a-z]+/g, '-')}`
    const { send, seen, doorOf, generationOf } = await sharedDrop(slug)
    const { site } = await send('one', first)
    const [before, door, generation] = [await seen(site.id), await doorOf(), await generationOf(site.id)]
    await refuse(`route ${slug}.localhost`)
    expect(await codeOf(send('two', second))).toBe('503 not_served')
    expect(await seen(site.id)).toEqual(before)
    expect(await doorOf()).toEqual(door)
    // Whoever came in between has a generation that is over.
    const isAnotherDoor = second.password !== undefined || second.access?.access_mode !== undefined
    if (isAnotherDoor) expect(await generationOf(site.id)).toBe(generation + 2)
    await accept()
    await send('three', second)
    expect(await seen(site.id)).not.toEqual(before)
  })

  test('stays as another has changed it since the publish that is taken back', async () => {
    const { owner, send, seen, doorOf } = await sharedDrop('changed-since')
    const { site } = await send('one', { access: { viewers: ada } })
    await refuse('route changed-since.localhost')
    meanwhile(() => control.services.sites.patch(owner, site.id, { password: 'a third word', access_until: past }))
    const second = send('two', { access: { access_mode: 'public', access_until: null } })
    expect(await codeOf(second)).toBe('503 not_served')
    expect(await doorOf()).toMatchObject({ viewers: false, version_number: 1 })
    const { columns } = await seen(site.id)
    expect(columns).toMatchObject([{ access_until: new Date(past) }])
    expect(columns[0]!['password_hash']).toMatch(/argon2/)
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
