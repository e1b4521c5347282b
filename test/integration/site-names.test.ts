/** Names and addresses of drops that exist. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { refusal } from '../support/accounts.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let control: ComposedServices
beforeAll(async () => {
  control = await composeServices()
})
afterAll(() => control.close())

test('a title given to a drop that exists renames it; without one it keeps its name', async () => {
  const { services } = control
  const actor = await control.newActor()
  const publish = async (title?: string) => {
    const content = { kind: 'text', format: 'html', content: '<h1>x</h1>' } as const
    return (await services.quickPublish.publish(actor, { content, slug: 'named-drop', title })).value.site.name
  }
  expect(await publish('First')).toBe('First')
  expect(await publish('Second')).toBe('Second')
  expect(await publish()).toBe('Second')
  const [entry] = await control.sql`
    select detail from audit_log where org_id = ${actor.orgId} and action = 'site.updated'`
  expect(entry!['detail']).toMatchObject({ fields: ['name'] })
})

test('a drop that was taken down cannot be renamed away from its 410, until it is restored', async () => {
  const { services } = control
  const actor = await control.newActor()
  const { site } = await control.publishPage(actor, 'bait', 'taken-down-drop')
  await services.trust.takedown({ system: 'operator' }, site.slug, 'phishing')
  expect(await refusal(services.sites.patch(actor, site.id, { slug: 'fresh-address' }))).toBe('forbidden')
  expect((await control.routeOf(site.slug)).state).toBe('removed')
  // What has nothing to do with the address may change.
  expect((await services.sites.patch(actor, site.id, { name: 'Label' })).value.name).toBe('Label')
  await services.trust.restore({ system: 'operator' }, site.slug)
  expect((await services.sites.patch(actor, site.id, { slug: 'fresh-address' })).value.slug).toBe('fresh-address')
})
