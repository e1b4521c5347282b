/** Where an organisation allows no public drops, no way leads from a drop that not everyone sees to one that is public. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ACCESS_MODES, accessModeOf, type AccessInput, type AccessMode } from '../../control/drops/viewers/access.ts'
import type { Actor } from '../../control/ground/actor.ts'
import { VISIBILITY_POLICIES, type VisibilityPolicy } from '../../control/people/organisations/rules.ts'
import { MINUTE_MS } from '../../shared/running/clock.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let world: ComposedServices
let nowMs = Date.UTC(2026, 2, 1, 12)
let nextSlug = 0

beforeAll(async () => {
  world = await composeServices({}, { now: () => nowMs })
})
afterAll(() => world?.close())

const PASSWORD = 'open sesame'
const page = { kind: 'text', format: 'html', content: '<!doctype html><title>Plan</title>' } as const

interface Drop {
  readonly owner: Actor
  readonly id: string
  readonly slug: string
}

async function team(policy: VisibilityPolicy): Promise<Actor> {
  const owner = await world.newTeam(await world.newActor(), 'business')
  await world.services.organisations.change(owner, owner.orgId, { visibilityPolicy: policy })
  return owner
}

/** A drop that was there before the organisation decided. */
async function dropBefore(policy: VisibilityPolicy, mode: AccessMode): Promise<Drop> {
  const owner = await team('open')
  const { site } = await world.publishPage(owner, 'Plan', `policy-${nextSlug++}`)
  const password = mode === 'password' ? { password: PASSWORD } : {}
  await world.services.sites.patch(owner, site.id, { access_mode: mode, ...password })
  await world.services.organisations.change(owner, owner.orgId, { visibilityPolicy: policy })
  return { owner, id: site.id, slug: site.slug }
}

const modeOf = async (id: string): Promise<AccessMode> =>
  accessModeOf((await world.services.sites.find(world.sql, id))!)
const publish = (owner: Actor, slug: string, access: AccessInput = {}, password?: string) =>
  world.services.quickPublish.publish(owner, { content: page, slug, access, password })
const patch = (changes: Parameters<typeof world.services.sites.patch>[2]) => (drop: Drop) =>
  world.services.sites.patch(drop.owner, drop.id, changes)

/** Everything that is done to a drop and might end with everyone seeing it. */
const DEEDS: Readonly<Record<string, (drop: Drop) => Promise<unknown>>> = {
  'the password is taken away': patch({ password: null }),
  'the password is taken away, and the mode said': patch({ password: null, access_mode: 'public' }),
  'it is opened': patch({ access_mode: 'public' }),
  'it gets a password': patch({ password: 'another one' }),
  'its time for visitors is set': patch({ expires_in: '1h' }),
  'its time for visitors ends, and is taken off': async (drop) => {
    await patch({ expires_in: '1m' })(drop)
    nowMs += 2 * MINUTE_MS
    await patch({ access_until: null })(drop)
  },
  'previews are for everyone': patch({ previews: 'link' }),
  'it is published again': ({ owner, slug }) => publish(owner, slug),
  'it is published openly': ({ owner, slug }) => publish(owner, slug, { access_mode: 'public' }),
  'it is published with a password': ({ owner, slug }) => publish(owner, slug, {}, 'another one'),
  'a former version is promoted': async ({ owner, id, slug }) => {
    const [version] = await world.services.versions.list(owner, id)
    await publish(owner, slug)
    await world.services.versions.promote(owner, id, version!.version_id)
  },
  'its last viewer goes': async ({ owner, id }) => {
    const named = [{ kind: 'email', value: 'ada@example.org' }] as const
    const { value } = await world.services.viewerSharing.add(owner, id, { named, invite: false })
    await world.services.viewerSharing.remove(owner, id, value[0]!.id)
  },
  'its organisation changes hands': async ({ owner, id }) => {
    const heir = await world.newActor()
    await world.sql`update organisations set owner_id = ${heir.userId} where id = ${owner.orgId}`
    await world.services.sites.patch({ ...owner, userId: heir.userId, email: heir.email }, id, { name: 'Theirs' })
  },
}

describe.each(ACCESS_MODES.filter((mode) => mode !== 'public'))('a drop in the mode %s', (mode) => {
  test.each(Object.entries(DEEDS))('%s', async (_, deed) => {
    const drop = await dropBefore('no_public', mode)
    const refusal = await deed(drop).then(
      () => undefined,
      (error: unknown) => error,
    )
    if (refusal !== undefined) expect(refusal).toMatchObject({ status: 403, code: 'policy' })
    expect(await modeOf(drop.id)).toBe(mode)
  })
})

test('a password is taken away where the policy allows it, and a drop without one stays as it is', async () => {
  for (const policy of ['open', 'private_by_default'] as const) {
    const open = await dropBefore(policy, 'password')
    await DEEDS['the password is taken away']!(open)
    expect(await modeOf(open.id)).toBe('public')
    const closed = await dropBefore(policy, 'viewers')
    await DEEDS['the password is taken away']!(closed)
    expect(await modeOf(closed.id)).toBe('viewers')
  }
})

/** Every way in which a drop comes into an organisation. */
const ARRIVALS: Readonly<Record<string, (owner: Actor) => Promise<string>>> = {
  'a publish': async (owner) => (await publish(owner, `policy-${nextSlug++}`)).value.site.id,
  'an open publish': async (owner) =>
    (await publish(owner, `policy-${nextSlug++}`, { access_mode: 'public' })).value.site.id,
  'a reservation': async (owner) => (await world.services.sites.create(owner, {})).value.id,
  'an open reservation': async (owner) => (await world.services.sites.create(owner, { isPrivate: false })).value.id,
  'a claim link': async (owner) => {
    const { secret } = await world.publishAnonymously(`policy-${nextSlug++}`)
    return (await world.services.anonymous.claimLink(owner, secret)).siteId
  },
}

test.each(Object.entries(ARRIVALS))('what comes by %s is public only where that is allowed', async (name, arrive) => {
  /** The mode, or the code of the refusal. */
  const modes: Partial<Record<VisibilityPolicy, string>> = {}
  for (const policy of VISIBILITY_POLICIES)
    modes[policy] = await arrive(await team(policy)).then(modeOf, (error: { code: string }) => error.code)
  const isSaid = name.includes('open')
  expect(modes).toEqual({
    open: 'public',
    private_by_default: isSaid || name === 'a claim link' ? 'public' : 'viewers',
    no_public: isSaid ? 'policy' : 'viewers',
  })
})

/** A drop whose only content was a preview when the organisation decided. */
async function previewBefore(mode: AccessMode): Promise<Drop> {
  const owner = await team('open')
  const slug = `policy-${nextSlug++}`
  const { value } = await world.services.quickPublish.publish(owner, { content: page, slug, preview: 'draft' })
  const { id } = value.site
  if (mode !== 'public')
    await patch(mode === 'password' ? { password: PASSWORD } : { access_mode: mode })({ owner, id, slug })
  await world.services.organisations.change(owner, owner.orgId, { visibilityPolicy: 'no_public' })
  return { owner, id, slug }
}

const FIRST_TIMES: Readonly<Record<string, (drop: Drop) => Promise<unknown>>> = {
  'a publish': ({ owner, slug }) => publish(owner, slug),
  'a promoted preview': async ({ owner, id }) => {
    const first = await world.services.versions.requireId(owner, id, 1)
    await world.services.versions.promote(owner, id, first)
  },
}

describe.each(ACCESS_MODES)('a drop in the mode %s that had only previews when the policy came', (mode) => {
  test.each(Object.entries(FIRST_TIMES))('is for named viewers once %s makes it live', async (_, goLive) => {
    const drop = await previewBefore(mode)
    await goLive(drop)
    expect(await modeOf(drop.id)).toBe('viewers')
    expect(await world.routeOf(drop.slug)).toMatchObject({ viewers: { ended: [] } })
  })
})

test.each(Object.entries(FIRST_TIMES))(
  '%s to a drop that was live before the policy came leaves it open',
  async (_, goLive) => {
    const drop = await dropBefore('no_public', 'public')
    await goLive(drop)
    expect(await modeOf(drop.id)).toBe('public')
  },
)
