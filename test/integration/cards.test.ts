/** Cards that no caller has drawn: the job finds those, and those alone. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let composed: ComposedServices

beforeAll(async () => {
  composed = await composeServices()
})
afterAll(() => composed.close())

test('a card that shows what was there before is drawn by the job, once', async () => {
  const { services, sql } = composed
  const owner = await composed.newActor('plus')
  const running = new AbortController().signal
  const content = { kind: 'text', format: 'html', content: '<!doctype html><title>Wombats</title><p>Dig.' } as const
  const publish = async () => (await services.quickPublish.publish(owner, { content })).value.site.id
  const [id, plain] = [await publish(), await publish()]
  await services.sites.patch(owner, id, { card: true })
  expect((await services.sites.get(owner, id)).card_url).not.toBeNull()
  expect(await services.cards.drawDue(running)).toBe(0)
  // As a control that ended between the change and the drawing leaves it.
  await sql`update sites set name = 'Renamed' where id = ${id}`
  expect((await services.sites.get(owner, id)).card_url).toBeNull()
  expect(await services.cards.drawDue(running)).toBe(1)
  expect((await services.sites.get(owner, id)).card_url).not.toBeNull()
  expect(await services.cards.drawDue(running)).toBe(0)
  expect((await services.sites.get(owner, plain)).card_url).toBeNull()
})
