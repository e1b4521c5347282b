/** Anonymous drops that become someone's, and what the plan has room for. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PASSWORD, refusal, VISIT } from '../support/accounts.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let control: ComposedServices
beforeAll(async () => {
  control = await composeServices()
})
afterAll(() => control.close())

test('what a person gave to a second sign-up with their address comes along when they sign in there', async () => {
  const { services } = control
  const actor = await control.newActor('free')
  const drop = await control.publishAnonymously('forgot-the-account')
  const here = { ...VISIT, anonymousId: 'forgot-the-account' }
  const again = await services.accounts.signUp({ email: actor.email, password: 'chosen in a hurry' }, here)
  expect(again.claimed).toBe(1)
  expect((await control.routeOf(drop.slug)).state).toBe('unverified')
  // A stranger's browser brings nothing along.
  expect((await services.accounts.signIn({ email: actor.email, password: PASSWORD }, VISIT)).claimed).toBe(0)
  expect((await services.accounts.signIn({ email: actor.email, password: PASSWORD }, here)).claimed).toBe(1)
  expect((await services.sites.get(actor, drop.id)).state).toBe('live')
  expect((await services.accounts.signIn({ email: actor.email, password: PASSWORD }, here)).claimed).toBe(0)
})

test('a mail to an address that nobody has proved names drops by their address alone', async () => {
  const signals = { honeypot: undefined, started: undefined, proof: undefined, isBrowser: false }
  const { value } = await control.services.anonymous.publishText(
    { ip: '203.0.113.9', anonymousId: 'advertiser', signals },
    { filename: 'index.html', content: '<title>You won! Go to prize.example</title>' },
  )
  const visit = { ...VISIT, anonymousId: 'advertiser' }
  const { userId } = await control.services.accounts.signUp(
    { email: 'stranger@example.org', password: PASSWORD },
    visit,
  )
  await control.sql`update users set created_at = created_at - interval '80 days' where id = ${userId}`
  await control.services.accounts.closeUnverified()
  const mails = await control.mailsTo('stranger@example.org')
  expect(mails.map(({ template }) => template)).toEqual(['verify', 'unverified'])
  for (const { text, html } of mails) {
    expect(`${text} ${html}`).not.toContain('prize')
    expect(text).toContain(value.slug)
  }
})

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

test('signing in claims the newest of the browser that there is room for; the others stay as they are', async () => {
  const { services } = control
  const actor = await control.newActor('free')
  await control.publishPage(actor, 'own')
  const drops: { id: string; slug: string }[] = []
  for (let index = 0; index < 4; index++) drops.push(await control.publishAnonymously('sign-in'))
  const signedIn = await services.accounts.signIn(
    { email: actor.email, password: PASSWORD },
    { ...VISIT, anonymousId: 'sign-in' },
  )
  expect(signedIn.claimed).toBe(2)
  const owned = new Set((await services.sites.list(actor)).map(({ id }) => id))
  expect(drops.map(({ id }) => owned.has(id))).toEqual([false, false, true, true])
  for (const { slug } of drops) expect((await control.routeOf(slug)).state).toBe('live')
  expect(await services.anonymous.list('sign-in')).toHaveLength(2)
})

test('signing up claims everything of the browser, whatever the cap', async () => {
  const { services } = control
  for (let index = 0; index < 5; index++) await control.publishAnonymously('sign-up')
  const signedUp = await services.accounts.signUp(
    { email: 'sign-up@example.test', password: PASSWORD },
    { ...VISIT, anonymousId: 'sign-up' },
  )
  expect(signedUp.claimed).toBe(5)
  expect(await services.anonymous.list('sign-up')).toEqual([])
})
