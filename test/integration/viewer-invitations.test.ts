/** Mails that invite viewers go to strangers: who may send them, and how many a day, by whatever way a drop is shared. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AccessInput } from '../../control/drops/viewers/access.ts'
import { invitationAllowances } from '../../control/drops/viewers/lists.ts'
import type { Actor } from '../../control/ground/actor.ts'
import { plans } from '../../control/ground/terms/plans.ts'
import { DAY_MS } from '../../shared/running/clock.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let world: ComposedServices
let nowMs = Date.UTC(2026, 2, 1, 12)
let nextName = 0

beforeAll(async () => {
  world = await composeServices({}, { now: () => nowMs })
})
afterAll(() => world?.close())

const page = { kind: 'text', format: 'html', content: '<!doctype html><title>Plan</title>' } as const
const newSlug = (): string => `invites-${nextName++}`
const publish = (actor: Actor, access: AccessInput, slug = newSlug()) =>
  world.services.quickPublish.publish(actor, { content: page, slug, access })
const strangers = (count: number): string[] => Array.from({ length: count }, () => `stranger${nextName++}@example.org`)

test.each<[string, AccessInput]>([
  ['viewers', { viewers: ['stranger@example.org'] }],
  ['viewers without a mail', { viewers: ['@example.org'], invite: false }],
  ['a guest link', { guest_link: true }],
  ['mails', { access_mode: 'viewers', invite: true }],
])('who has not verified their address publishes without %s', async (_, access) => {
  const actor = await world.newActor('free', false)
  const slug = newSlug()
  const mailed = await world.mailsTo('stranger@example.org')
  await expect(publish(actor, access, slug)).rejects.toMatchObject({ code: 'email_not_verified', status: 403 })
  await publish(actor, { access_mode: 'viewers' }, slug)
  await expect(publish(actor, access, slug)).rejects.toMatchObject({ code: 'email_not_verified' })
  expect(await world.mailsTo('stranger@example.org')).toEqual(mailed)
  await world.verify(actor)
  await publish({ ...actor, emailVerified: true }, access, slug)
})

test('new drops are no way around the number of invitations a day, nor are new organisations', async () => {
  const actor = await world.newActor('free')
  const { viewersPerDrop } = plans.free
  const { limit } = invitationAllowances(viewersPerDrop).organisationInvitations
  /** Publishes to a new drop after another, and gives the room for the next one free again. */
  const invite = async (as: Actor, count: number): Promise<void> => {
    const { value } = await publish(as, { viewers: strangers(count) })
    await world.services.sites.delete(as, value.site.id)
  }
  for (let sent = 0; sent < limit; sent += viewersPerDrop) await invite(actor, viewersPerDrop)
  await expect(invite(actor, 1)).rejects.toMatchObject({ status: 429 })
  await expect(invite(await world.newTeam(actor), 1)).rejects.toMatchObject({ status: 429 })
  await publish(actor, { viewers: strangers(1), invite: false })
  await invite(await world.newTeam(actor, 'plus'), 1)
  nowMs += DAY_MS
  await invite(actor, 1)
})

test('an organisation has one number for all of its members', async () => {
  const owner = await world.newTeam(await world.newActor())
  const { limit } = invitationAllowances(plans.free.viewersPerDrop).organisationInvitations
  let sent = 0
  const invite = async (): Promise<void> => {
    const member = { ...owner, userId: (await world.newActor()).userId }
    const { value } = await publish(member, { viewers: strangers(plans.free.viewersPerDrop) })
    sent += plans.free.viewersPerDrop
    await world.services.sites.delete(owner, value.site.id)
  }
  await expect(
    (async () => {
      while (sent <= limit) await invite()
    })(),
  ).rejects.toMatchObject({ status: 429 })
  expect(sent).toBe(limit)
})
