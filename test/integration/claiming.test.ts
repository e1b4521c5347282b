/** Anonymous drops that become somebody's, and what the plan has room for. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PASSWORD, refusal, VISIT } from '../support/accounts.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let control: ComposedServices
beforeAll(async () => {
  control = await composeServices()
})
afterAll(() => control.close())

test('a claim link does not lead round the cap of drops; with room again it works', async () => {
  const { services } = control
  const actor = await control.newActor('free')
  for (const text of ['one', 'two', 'three']) await control.publishPage(actor, text)
  const drop = await control.publishAnonymously('link-cap')
  expect(await refusal(services.anonymous.claimLink(actor, drop.secret))).toBe('plan_limit')
  expect(await services.anonymous.findClaim(drop.secret)).toMatchObject({ siteId: drop.id })
  expect((await control.routeOf(drop.slug)).state).toBe('live')

  await services.sites.delete(actor, (await services.sites.list(actor))[0]!.id)
  expect(await services.anonymous.claimLink(actor, drop.secret)).toEqual({ siteId: drop.id })
  expect((await services.sites.get(actor, drop.id)).state).toBe('live')
})

test('nor round the cap of storage', async () => {
  const actor = await control.newActor('free')
  const { site } = await control.publishPage(actor, 'large')
  await control.sql`update versions set byte_size = 50000000 where site_id = ${site.id}`
  const drop = await control.publishAnonymously('link-storage')
  expect(await refusal(control.services.anonymous.claimLink(actor, drop.secret))).toBe('plan_limit')
  expect(await control.services.anonymous.findClaim(drop.secret)).toMatchObject({ siteId: drop.id })
})

test('of many claims at once, those that fit go through', async () => {
  const actor = await control.newActor('free')
  const drops = await Promise.all([1, 2, 3, 4, 5].map((index) => control.publishAnonymously(`many-${index}`)))
  const answers = await Promise.all(
    drops.map(({ secret }) => refusal(control.services.anonymous.claimLink(actor, secret))),
  )
  expect(answers.toSorted()).toEqual(['accepted', 'accepted', 'accepted', 'plan_limit', 'plan_limit'])
})

test('signing in claims everything of the browser: the newest that fit stay live, the others pause', async () => {
  const { services } = control
  const actor = await control.newActor('free')
  const { site: own } = await control.publishPage(actor, 'own')
  const drops: { id: string }[] = []
  for (let index = 0; index < 4; index++) drops.push(await control.publishAnonymously('sign-in'))
  const signedIn = await services.accounts.signIn(
    { email: actor.email, password: PASSWORD },
    { ...VISIT, anonymousId: 'sign-in' },
  )
  expect(signedIn.claimed).toBe(4)
  const states = new Map((await services.sites.list(actor)).map(({ id, state }) => [id, state]))
  expect([own, ...drops].map(({ id }) => states.get(id))).toEqual(['live', 'paused', 'paused', 'live', 'live'])

  await services.sites.delete(actor, own.id)
  expect((await services.sites.get(actor, drops[1]!.id)).state).toBe('live')
})
