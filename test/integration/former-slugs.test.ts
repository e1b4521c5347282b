/** A drop's addresses after renames: which of them redirect, for how long, and what that costs. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Actor } from '../../control/ground/actor.ts'
import { refusal } from '../support/accounts.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let control: ComposedServices
beforeAll(async () => {
  control = await composeServices()
})
afterAll(() => control.close())

const kindOf = async (slug: string): Promise<string> => (await control.routeOf(slug)).kind

async function renamed(actor: Actor, name: string, times: number): Promise<string> {
  const { site } = await control.publishPage(actor, name, `${name}-0`)
  for (let index = 1; index <= times; index++)
    await control.services.sites.patch(actor, site.id, { slug: `${name}-${index}` })
  return site.id
}

/** Route records that one change of the site writes. */
async function recordsOfAChange(actor: Actor, siteId: string): Promise<number> {
  const [before] = await control.sql`select last_value as revision from route_revisions`
  await control.services.sites.patch(actor, siteId, { name: 'changed' })
  return (await control.sql`select from routes where revision > ${before!['revision']}`).length
}

test("the newest ten former slugs redirect; older ones answer nothing, and stay the owner's", async () => {
  const { services } = control
  const [actor, stranger] = [await control.newActor(), await control.newActor()]
  const siteId = await renamed(actor, 'often', 14)
  expect(await recordsOfAChange(actor, siteId)).toBe(11)
  expect(await Promise.all([0, 3, 4, 13, 14].map((index) => kindOf(`often-${index}`)))).toEqual([
    'none',
    'none',
    'redirect',
    'redirect',
    'site',
  ])
  expect(await refusal(services.sites.create(stranger, { slug: 'often-0' }))).toBe('slug_taken')
  await services.sites.patch(actor, siteId, { slug: 'often-0' })
  expect(await control.routeOf('often-0')).toMatchObject({ kind: 'site', state: 'live' })
})

test('after the cool-down a former slug redirects no longer and is free', async () => {
  const { services, sql } = control
  const [actor, stranger] = [await control.newActor(), await control.newActor()]
  const siteId = await renamed(actor, 'cooled', 3)
  await sql`update slugs set free_at = now() - interval '1 second' where site_id = ${siteId} and kind = 'former'`
  await services.sites.create(stranger, { slug: 'cooled-0' })
  expect(await recordsOfAChange(actor, siteId)).toBe(3)
  expect(await recordsOfAChange(actor, siteId)).toBe(1)
  expect(await Promise.all([0, 1, 2, 3].map((index) => kindOf(`cooled-${index}`)))).toEqual([
    'site',
    'none',
    'none',
    'site',
  ])
  await services.sites.create(stranger, { slug: 'cooled-1' })
  await services.sites.delete(actor, siteId)
  expect(await control.routeOf('cooled-1')).toMatchObject({ kind: 'site', state: 'reserved' })
  expect(await control.routeOf('cooled-2')).toMatchObject({ kind: 'site', state: 'gone' })
})
