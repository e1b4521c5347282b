/** What owners are promised about clocks, plans and caps, on the services themselves and with a clock that is moved. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Actor } from '../../control/ground/actor.ts'
import { DAY_MS } from '../../shared/running/clock.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

const START = Date.UTC(2027, 0, 1)
let now = START
let control: ComposedServices

beforeAll(async () => {
  control = await composeServices({}, { now: () => now })
})
afterAll(() => control.close())
beforeEach(() => {
  now = START
})

/** Day by day, as the job would have seen it. */
async function days(count: number): Promise<void> {
  for (let day = 0; day < count; day++) {
    now += DAY_MS
    await control.services.lifecycle.runAsOf()
  }
}

const stateOf = async (actor: Actor, id: string): Promise<string> => (await control.services.sites.get(actor, id)).state

async function publishMany(actor: Actor, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let index = 0; index < count; index++) {
    now += 1000
    ids.push((await control.publishPage(actor, `drop ${index}`)).site.id)
  }
  return ids
}

async function mailsTo(email: string): Promise<string[]> {
  const rows = await control.sql<{ template: string }[]>`
    select template from mails where recipient = ${email} order by created_at, id`
  return rows.map((row) => row.template)
}

describe('no clock while a drop is not live for a reason of ours', () => {
  test('paused drops are there a year later, and their clock starts when they are live again', async () => {
    const owner = await control.newActor('plus')
    const ids = await publishMany(owner, 5)
    await control.changePlan(owner.orgId, 'free')
    await days(365)
    expect(await Promise.all(ids.slice(0, 2).map((id) => stateOf(owner, id)))).toEqual(['paused', 'paused'])
    await control.changePlan(owner.orgId, 'plus')
    await control.changePlan(owner.orgId, 'free')
    expect(await stateOf(owner, ids[1]!)).not.toBe('expired')
  })

  test('a drop that was taken down is there a year later, and live once it is restored', async () => {
    const owner = await control.newActor()
    const { site } = await control.publishPage(owner, 'taken down')
    await control.services.trust.takedown({ system: 'operator' }, site.slug, 'a mistake')
    await days(365)
    await control.services.trust.restore({ system: 'operator' }, site.slug)
    expect(await stateOf(owner, site.id)).toBe('live')
    await days(29)
    expect(await stateOf(owner, site.id)).toBe('live')
  })

  test('drops of someone who verifies late are live then, for a whole period', async () => {
    const owner = await control.newActor('free', false)
    const { site } = await control.publishPage(owner, 'not verified yet')
    await days(45)
    expect(await stateOf(owner, site.id)).toBe('unverified')
    await control.verify(owner)
    expect(await stateOf(owner, site.id)).toBe('live')
    await days(29)
    expect(await stateOf(owner, site.id)).toBe('live')
  })

  test('a reserved address without content does not expire', async () => {
    const owner = await control.newActor()
    const { value: site } = await control.services.sites.create(owner, {})
    await days(100)
    expect(await stateOf(owner, site.id)).toBe('reserved')
    expect(await mailsTo(owner.email)).toEqual([])
  })
})

describe('caps stop what is added; only the end of a plan pauses', () => {
  test('Business to Plus keeps thirty drops live, and refuses the next', async () => {
    const owner = await control.newActor('business')
    const ids = await publishMany(owner, 30)
    await control.changePlan(owner.orgId, 'plus')
    const states = await Promise.all(ids.map((id) => stateOf(owner, id)))
    expect(states.filter((state) => state === 'live')).toHaveLength(30)
    await expect(control.publishPage(owner, 'one more')).rejects.toMatchObject({ code: 'plan_limit' })
  })

  test('the first upload after a plan has ended drops one version, the oldest', async () => {
    const owner = await control.newActor('plus')
    const { site } = await control.publishPage(owner, 'version 1', 'many-versions')
    for (let number = 2; number <= 10; number++) await control.publishPage(owner, `version ${number}`, 'many-versions')
    await control.changePlan(owner.orgId, 'free')
    const numbers = async () =>
      (await control.services.versions.list(owner, site.id)).map((version) => version.version_number)
    expect(await numbers()).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
    await control.publishPage({ ...owner, plan: 'free' }, 'version 11', 'many-versions')
    expect(await numbers()).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2])
  })
})

describe('the owner chooses what stays live', () => {
  const live = async (owner: Actor, ids: readonly string[]): Promise<boolean[]> =>
    Promise.all(ids.map(async (id) => (await stateOf(owner, id)) === 'live'))

  test('by default what was published last, not what was created last', async () => {
    const owner = await control.newActor('plus')
    const ids = await publishMany(owner, 4)
    now += 1000
    await control.services.versions.promote(
      owner,
      ids[0]!,
      (await control.services.versions.list(owner, ids[0]!))[0]!.version_id,
    )
    await control.changePlan(owner.orgId, 'free')
    expect(await live(owner, ids)).toEqual([true, false, true, true])
  })

  test('before the plan ends, and afterwards by swapping one against another', async () => {
    const owner = await control.newActor('plus')
    const ids = await publishMany(owner, 6)
    await control.services.sites.choose(owner, [ids[0]!, ids[1]!])
    await control.changePlan(owner.orgId, 'free')
    expect(await live(owner, ids)).toEqual([true, true, false, false, false, true])
    await control.services.sites.choose(owner, [ids[2]!, ids[1]!])
    expect(await live(owner, ids)).toEqual([false, true, true, false, false, true])
    expect(await mailsTo(owner.email)).toEqual(['paused'])
  })

  test('no more than stay, and only their own', async () => {
    const owner = await control.newActor('plus')
    const ids = await publishMany(owner, 4)
    await expect(control.services.sites.choose(owner, ids)).rejects.toMatchObject({ status: 400 })
    const stranger = await control.newActor('plus')
    await expect(control.services.sites.choose(stranger, [ids[0]!])).rejects.toMatchObject({ status: 404 })
  })
})

describe('a new drop is never born expired', () => {
  test('publishing by token forty days after the last sign-in gives a live drop for a whole period', async () => {
    const owner = await control.newActor()
    await days(40)
    const { site } = await control.publishPage(owner, 'late')
    expect(site.state).toBe('live')
    await days(29)
    expect(await stateOf(owner, site.id)).toBe('live')
    await days(2)
    expect(await stateOf(owner, site.id)).toBe('expired')
  })

  test('reserving first, then uploading, forty days after the last sign-in', async () => {
    const owner = await control.newActor()
    await days(40)
    const { value: reserved } = await control.services.sites.create(owner, { slug: 'reserved-late' })
    expect(reserved.state).toBe('reserved')
    expect((await control.publishPage(owner, 'late', 'reserved-late')).site.state).toBe('live')
  })
})

describe('sign-ins of every kind', () => {
  test('allowing an app brings expired drops back, as signing in does', async () => {
    const owner = await control.newActor()
    const { site } = await control.publishPage(owner, 'back by an app')
    await days(31)
    expect(await stateOf(owner, site.id)).toBe('expired')
    const { oauth } = control.services
    const { client_id } = await oauth.register({ redirect_uris: ['https://client.test/back'] }, '203.0.113.4')
    const query = new URLSearchParams({
      client_id,
      response_type: 'code',
      code_challenge: 'A'.repeat(43),
      code_challenge_method: 'S256',
      scope: 'mcp',
    })
    const checked = await oauth.checkRequest(query, '203.0.113.4')
    if ('request' in checked) await oauth.allow(owner, checked.request)
    expect(await stateOf(owner, site.id)).toBe('live')
  })

  test('a member who publishes keeps the drop of an owner who is away', async () => {
    const owner = await control.newActor()
    await control.publishPage(owner, 'team', 'kept-by-publishing')
    for (let month = 0; month < 4; month++) {
      await days(25)
      await control.publishPage(owner, `month ${month}`, 'kept-by-publishing')
    }
    const { state } = (await control.services.sites.list(owner))[0]!
    expect(state).toBe('live')
  })
})

describe('what a browser made without an account', () => {
  test('is listed with what can still be claimed', async () => {
    await control.publishAnonymously('a-browser')
    await days(8)
    await control.publishAnonymously('a-browser')
    const removed = await control.publishAnonymously('a-browser')
    await control.services.trust.takedown({ system: 'operator' }, removed.slug, 'spam')
    const listed = await control.services.anonymous.list('a-browser')
    expect(listed.map(({ state, claimable }) => `${state} ${claimable}`).toSorted()).toEqual([
      'expired false',
      'live true',
      'removed false',
    ])
  })
})

describe('places among the active drops', () => {
  test('expired and taken-down drops take none', async () => {
    const owner = await control.newActor()
    const [, , last] = await publishMany(owner, 3)
    await days(31)
    for (const id of [1, 2, 3]) expect((await control.publishPage(owner, `new ${id}`)).site.state).toBe('live')
    await expect(control.publishPage(owner, 'a fourth')).rejects.toMatchObject({ code: 'plan_limit' })
    const [live] = (await control.services.sites.list(owner)).filter((site) => site.state === 'live')
    await control.services.trust.takedown({ system: 'operator' }, live!.slug, 'spam')
    expect((await control.publishPage(owner, 'in its place')).site.state).toBe('live')
    expect(await stateOf(owner, last!)).toBe('expired')
  })
})

test('what a version of a Markdown drop changed is told in Markdown', async () => {
  const owner = await control.newActor()
  const publish = async (content: string) =>
    (
      await control.services.quickPublish.publish(owner, {
        content: { kind: 'text', format: 'markdown', content },
        slug: 'written-in-markdown',
      })
    ).value
  await publish('# One\n\nplain words\n')
  const { site, version } = await publish('# One\n\n**strong** words\n')
  const { changes, texts } = await control.services.versions.compare(owner, site.id, version.version_id)
  expect(changes.changed).toEqual([expect.stringMatching(/\.md$/)])
  expect(texts.flatMap(({ shown }) => shown?.lines ?? []).map(({ kind, text }) => `${kind} ${text}`)).toEqual(
    expect.arrayContaining(['removed plain words', 'added **strong** words']),
  )
})

describe('the free plan is one per person', () => {
  test('free organisations of one owner share its drops and its storage; a paid one has its own', async () => {
    const owner = await control.newActor()
    const team = await control.newTeam(owner)
    await publishMany(owner, 2)
    await control.publishPage(team, 'the third')
    for (const actor of [owner, team])
      await expect(control.publishPage(actor, 'a fourth')).rejects.toMatchObject({
        code: 'plan_limit',
        message: expect.stringContaining('per person'),
      })
    const [own, shared] = [await control.services.sites.usage(owner), await control.services.sites.usage(team)]
    expect(own.drops).toEqual({ used: 3, limit: 3 })
    expect([shared.drops, shared.storage_bytes]).toEqual([own.drops, own.storage_bytes])
    await control.changePlan(team.orgId, 'plus')
    const paid: Actor = { ...team, plan: 'plus' }
    expect((await control.services.sites.usage(paid)).drops.used).toBe(1)
    expect((await control.publishPage(paid, 'room there')).site.state).toBe('live')
    expect((await control.publishPage(owner, 'and here again')).site.state).toBe('live')
  })

  test('two organisations of one owner that take the last place at once: one gets it', async () => {
    const owner = await control.newActor()
    const team = await control.newTeam(owner)
    await publishMany(owner, 2)
    const taken = await Promise.allSettled([control.publishPage(owner, 'here'), control.publishPage(team, 'there')])
    expect(taken.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  })
})

describe('nothing is removed without mails', () => {
  test('a free drop: two warnings, the expiry, the removal; each once, and removed on the date that was named', async () => {
    const owner = await control.newActor()
    const { site } = await control.publishPage(owner, 'unseen')
    await days(31)
    expect(await mailsTo(owner.email)).toEqual(['expiring', 'expiring', 'expired'])
    await days(28)
    expect(await stateOf(owner, site.id)).toBe('expired')
    expect(await mailsTo(owner.email)).toEqual(['expiring', 'expiring', 'expired', 'removal'])
    await days(2)
    await expect(control.services.sites.get(owner, site.id)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('a job that did not run for a year tells first, and removes a week later', async () => {
    const owner = await control.newActor()
    const { site } = await control.publishPage(owner, 'forgotten')
    now += 365 * DAY_MS
    await control.services.lifecycle.runAsOf()
    // Of one moment, in either order.
    expect((await mailsTo(owner.email)).toSorted()).toEqual(['expired', 'removal'])
    await days(6)
    expect(await stateOf(owner, site.id)).toBe('expired')
    await days(2)
    await expect(control.services.sites.get(owner, site.id)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('drops that end within a day of each other are in one mail', async () => {
    const owner = await control.newActor()
    await publishMany(owner, 3)
    await days(24)
    expect(await mailsTo(owner.email)).toEqual(['expiring'])
  })

  test('the end of a plan is told at once, with what is paused by it', async () => {
    const owner = await control.newActor('plus')
    await publishMany(owner, 4)
    await control.changePlan(owner.orgId, 'free')
    expect(await mailsTo(owner.email)).toEqual(['paused'])
  })

  test('an account that is never verified: closed with its drops after ninety days and two mails', async () => {
    const owner = await control.newActor('free', false)
    const { site } = await control.publishPage(owner, 'never verified')
    await days(89)
    expect(await mailsTo(owner.email)).toEqual(['verify', 'unverified', 'unverified'])
    expect(await stateOf(owner, site.id)).toBe('unverified')
    await days(2)
    expect(await mailsTo(owner.email)).toEqual(['verify', 'unverified', 'unverified', 'account_deleted'])
    expect(await control.routeOf(site.slug)).toMatchObject({ state: 'gone' })
  })

  test('the same account is left alone once it is verified', async () => {
    const owner = await control.newActor('free', false)
    await days(85)
    await control.verify(owner)
    await days(30)
    const { site } = await control.publishPage(owner, 'verified in time')
    expect(site.state).toBe('live')
  })
})
