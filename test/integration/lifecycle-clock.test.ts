/** A clock that is wrong removes nothing, nothing is removed in great numbers unasked, and one drop holds up no other. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { DAY_MS, MINUTE_MS } from '../../shared/running/clock.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let control: ComposedServices
let aheadMs = 0

beforeAll(async () => {
  control = await composeServices({}, { now: () => Date.now() + aheadMs })
})
afterAll(() => control.close())
beforeEach(() => {
  aheadMs = 0
})

test.each([31 * DAY_MS, 61 * DAY_MS, -2 * MINUTE_MS])(
  'a control whose clock is %i ms ahead does nothing',
  async (ahead) => {
    const actor = await control.newActor('free')
    const { site } = await control.publishPage(actor, 'mine')
    aheadMs = ahead
    await expect(control.services.lifecycle.run()).rejects.toThrow('away from that of Postgres')
    aheadMs = 0
    expect((await control.services.sites.get(actor, site.id)).state).toBe('live')
    expect(await control.services.lifecycle.run()).toMatchObject({ removed: 0 })
  },
)

test('a few seconds do not matter: the time is that of Postgres', async () => {
  const actor = await control.newActor('free')
  const { site } = await control.publishPage(actor, 'mine')
  await control.sql`update sites set expires_at = now() + interval '20 seconds' where id = ${site.id}`
  aheadMs = 40_000
  expect(await control.services.lifecycle.run()).toMatchObject({ expired: 0 })
})

test('a preview is about the clock that was handed in, whatever ran before it', async () => {
  const actor = await control.newActor('free')
  const { site } = await control.publishPage(actor, 'previewed')
  aheadMs = 40_000
  await control.services.lifecycle.run()
  await control.sql`update sites set expires_at = now() + interval '20 seconds' where id = ${site.id}`
  const { would_expire } = await control.services.lifecycle.preview()
  await control.sql`update sites set expires_at = null where id = ${site.id}`
  expect(would_expire).toBeGreaterThan(0)
})

test('more than a tenth of all drops is removed only when someone asks for it', async () => {
  await control.sql`
    insert into sites (id, slug, dns_target, expires_at, expired_at)
    select 'st_' || n, 'old-' || n, 't-' || n, now() - interval '90 days', now() - interval '90 days'
    from generate_series(1, 30) n`
  const left = async () =>
    (await control.sql`select id from sites where deleted_at is null and expired_at is not null`).length
  expect(await control.services.lifecycle.preview()).toMatchObject({ would_remove: 30, would_hold: true })
  expect(await control.services.lifecycle.run()).toMatchObject({ removed: 0, held: 30 })
  expect(await left()).toBe(30)
  expect(await control.services.lifecycle.runAsOf({ unbounded: true })).toMatchObject({ held: 0 })
  expect(await left()).toBe(0)
})

test('old files of a drop whose manifest is lost keep no other drop waiting', async () => {
  const actor = await control.newActor('free')
  const publish = async (slug: string, names: readonly string[]) => {
    const files = ['index.html', ...names].map((path) => ({ path, bytes: Buffer.from(path) }))
    const input = { content: { kind: 'files', files }, slug, replace: true } as const
    return (await control.services.quickPublish.publish(actor, input)).value.site
  }
  const ids: string[] = []
  for (const slug of ['lost-manifest', 'other-manifest']) {
    await publish(slug, ['a.js'])
    ids.push((await publish(slug, [])).id)
  }
  await control.sql`update sites set kept_ends_at = now() - interval '1 hour' where id in ${control.sql(ids)}`
  await control.sql`
    update sites set kept_ends_at = now() - interval '1 day', served_manifest_hash = ${'f'.repeat(64)}
    where slug = 'lost-manifest'`
  expect(await control.services.lifecycle.run()).toMatchObject({ old_files_ended: 2 })
  expect(await control.sql`select slug from sites where kept_ends_at < now()`).toEqual([])
})
