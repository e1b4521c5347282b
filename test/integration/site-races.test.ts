/** Changes of one drop, or of whose it is, that happen at the same time or are refused half-way. */
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Handlers } from '../../control/doors/dashboard/frame/handlers.ts'
import type { DashboardServices } from '../../control/doors/dashboard/frame/services.ts'
import { previewRoutes } from '../../control/doors/dashboard/publish/preview-pages.ts'
import type { Request } from '../../control/ground/http/route.ts'
import type { Actor } from '../../control/ground/actor.ts'
import type { RoutingTransaction } from '../../control/ground/routing/changes.ts'
import { createQuickPublish } from '../../control/drops/sites/versions/quick-publish.ts'
import { hashSecret, randomSecret } from '../../shared/secrets/secrets.ts'
import type { ApiError } from '../../shared/contracts/errors.ts'
import { solve } from '../support/proof-of-work.ts'
import { PASSWORD, refusal, VISIT } from '../support/accounts.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'
import { duringTransaction } from '../support/races.ts'

let control: ComposedServices
beforeAll(async () => {
  control = await composeServices()
})
afterAll(() => control.close())

async function verificationLink(userId: string, email: string): Promise<string> {
  const token = randomSecret()
  await control.sql`
    insert into account_links (token_hash, kind, user_id, email, created_at, expires_at)
    values (${hashSecret(token)}, 'verify', ${userId}, ${email}, now(), now() + interval '1 day')`
  return token
}

describe('routes are written from what is true when they are written', () => {
  test('a password that is set while the organisation is transferred protects the drop', async () => {
    const { services, sql, overlap } = control
    const team = await control.newTeam(await control.newActor(), 'plus')
    const heir = await control.newActor()
    await sql`insert into memberships (org_id, user_id, role) values (${team.orgId}, ${heir.userId}, 'admin')`
    const { site } = await control.publishPage(team, 'secret')
    await overlap(
      async (tx) => {
        await tx`update sites set password_hash = 'phc' where id = ${site.id}`
        await services.refreshRoutes(tx, site.id)
      },
      () => services.organisations.transfer(team, team.orgId, heir.userId),
    )
    expect((await control.routeOf(site.slug)).password).toMatchObject({ hash: 'phc' })
  })

  test('a drop that is claimed while its owner verifies the e-mail goes live', async () => {
    const { services, overlap } = control
    const actor = await control.newActor('free', false)
    const token = await verificationLink(actor.userId, actor.email)
    const drop = await control.publishAnonymously('claims-while-verifying')
    await overlap(
      (tx) =>
        services.anonymous.claimBrowser(tx, {
          anonymousId: 'claims-while-verifying',
          orgId: actor.orgId,
          isNewAccount: false,
        }),
      () => services.accounts.verifyEmail(token),
    )
    expect((await control.routeOf(drop.slug)).state).toBe('live')
  })
})

describe('a drop of a paid plan has no clock', () => {
  const clockOf = async (siteId: string): Promise<Date | null> =>
    (await control.sql<{ expires_at: Date | null }[]>`select expires_at from sites where id = ${siteId}`)[0]!.expires_at

  test('when its owner signs in during the upgrade', async () => {
    const { services, overlap } = control
    const person = await control.newActor()
    const team = await control.newTeam(person)
    const { site } = await control.publishPage(team, 'paid')
    await overlap(
      (tx) => services.lifecycle.changePlan(tx, team.orgId, 'plus'),
      () => services.accounts.signIn({ email: person.email, password: PASSWORD }, VISIT),
    )
    expect(await clockOf(site.id)).toBeNull()
  })

  test('when it is claimed during the upgrade', async () => {
    const { services, overlap } = control
    const actor = await control.newActor()
    const drop = await control.publishAnonymously('claims-while-upgrading')
    await overlap(
      (tx) => services.lifecycle.changePlan(tx, actor.orgId, 'plus'),
      () => services.anonymous.claimLink(actor, drop.secret),
    )
    expect(await clockOf(drop.id)).toBeNull()
    expect((await control.routeOf(drop.slug)).badge).toBe(false)
  })
})

describe('nothing is added to an organisation that is being deleted', () => {
  const deleteTeam = async (tx: RoutingTransaction, orgId: string): Promise<void> => {
    await tx`select id from organisations where id = ${orgId} for no key update`
    await control.services.sites.removeAll(tx, orgId)
    await tx`update organisations set deleted_at = now() where id = ${orgId}`
  }

  test.each<[what: string, add: (team: Actor) => Promise<unknown>]>([
    ['a new drop', (team) => control.services.sites.create(team, {})],
    ['a page', (team) => control.publishPage(team, 'orphan')],
    [
      'a claimed drop',
      async (team) =>
        control.services.anonymous.claimLink(team, (await control.publishAnonymously('claims-too-late')).secret),
    ],
  ])('%s', async (_, add) => {
    const team = await control.newTeam(await control.newActor())
    expect(
      await refusal(
        control.overlap(
          (tx) => deleteTeam(tx, team.orgId),
          () => add(team),
        ),
      ),
    ).toBe('not_found')
    expect(await control.sql`select from sites where org_id = ${team.orgId} and deleted_at is null`).toHaveLength(0)
  })

  test('nor to those of an account that is being deleted', async () => {
    const actor = await control.newActor()
    const { services, overlap, sql } = control
    await overlap(
      async (tx) => {
        await services.sites.lockOrganisation(tx, actor.orgId)
        await services.sites.reserve(tx, { orgId: actor.orgId }, {})
      },
      () => services.accounts.deleteAccount(actor, { password: PASSWORD }),
    )
    expect(await sql`select from sites where org_id = ${actor.orgId} and deleted_at is null`).toHaveLength(0)
  })
})

describe('a publish that is refused leaves nothing behind', () => {
  const content = { kind: 'text', format: 'html', content: '<title>new</title>' } as const

  test('neither a new drop, nor harm to who publishes to the same address meanwhile', async () => {
    const { services } = control
    const actor = await control.newActor('business')
    for (let round = 0; round < 10; round++) {
      const slug = `contested-${round}`
      // Postgres has no character 0 in its texts: the creator fails once the address is its own.
      const refused = services.quickPublish.publish(actor, { content, slug, message: '\0' })
      const accepted = sleep(4 * round).then(() => control.publishPage(actor, 'other', slug))
      const [first, second] = await Promise.allSettled([refused, accepted])
      expect([round, first.status, second.status]).toEqual([round, 'rejected', 'fulfilled'])
      expect((await control.routeOf(slug)).state).toBe('live')
    }
  })

  test('nor an empty drop when the storage is full', async () => {
    const { services, sql } = control
    const actor = await control.newActor('free')
    const { site } = await control.publishPage(actor, 'large')
    await sql`update versions set byte_size = 60000000 where site_id = ${site.id}`
    expect(await refusal(services.quickPublish.publish(actor, { content }))).toBe('plan_limit')
    expect(await sql`select from sites where org_id = ${actor.orgId}`).toHaveLength(1)
  })

  test('nor a password', async () => {
    const { services, sql } = control
    const actor = await control.newActor('plus')
    const { site } = await control.publishPage(actor, 'open')
    await sql`update sites set paused_at = now() where id = ${site.id}`
    expect(
      await refusal(services.quickPublish.publish(actor, { content, slug: site.slug, password: 'hunter22' })),
    ).toBe('paused')
    expect((await services.sites.get(actor, site.id)).has_password).toBe(false)
  })
})

test('two publishes to one new address: one creates the drop, the other updates it', async () => {
  const actor = await control.newActor('plus')
  const published = await Promise.all(['one', 'two'].map((text) => control.publishPage(actor, text, 'shared-address')))
  expect(published.toSorted((a, b) => a.version.version_number - b.version.version_number)).toMatchObject([
    { created: true, version: { version_number: 1 } },
    { created: false, version: { version_number: 2 } },
  ])
})

test('many publishes to one new address: each is a version, and none hears of a version that it never named', async () => {
  const actor = await control.newActor('business')
  const texts = Array.from({ length: 14 }, (_, number) => `${number}`)
  const published = await Promise.all(texts.map((text) => control.publishPage(actor, text, 'crowded-address')))
  const numbers = published.map(({ version }) => version.version_number).toSorted((a, b) => a - b)
  expect(numbers).toEqual(texts.map((_, index) => index + 1))
})

describe('two publishes of different files to one new address, neither of which knew of the other', () => {
  const files = (...paths: string[]) =>
    ({ kind: 'files', files: paths.map((path) => ({ path, bytes: Buffer.from(path) })) }) as const
  /** Each comes to a control of its own, where nobody else is to be waited for. */
  const publishBoth = async (actor: Actor, slug: string, options: { ifVersion?: number; replace?: boolean } = {}) => {
    const { services, sql } = control
    const publish = (path: string) =>
      createQuickPublish({ ...services, sql }).publish(actor, { content: files('index.html', path), slug, ...options })
    const [first, second] = await duringTransaction(
      sql,
      (held) => services.sites.lockOrganisation(held, actor.orgId),
      () => publish('one.txt'),
      () => publish('two.txt'),
    )
    expect(await control.sql`select from sites where slug = ${slug} and deleted_at is null`).toHaveLength(1)
    return { first, second }
  }

  test('the later one is asked before files of the earlier one go, as it is in sequence', async () => {
    const actor = await control.newActor('plus')
    const { first, second } = await publishBoth(actor, 'asked-at-once')
    expect(first).toMatchObject({ value: { created: true, version: { version_number: 1 } } })
    expect(second).toMatchObject({ status: 409, code: 'would_remove_files', fields: { removed: ['one.txt'] } })
  })

  test('the later one is refused where it wants no drop to be there', async () => {
    const actor = await control.newActor('plus')
    const { first, second } = await publishBoth(actor, 'none-wanted', { ifVersion: 0 })
    expect(first).toMatchObject({ value: { created: true } })
    expect(second).toMatchObject({ code: 'version_changed' })
  })

  test('the later one is the next version where files may go', async () => {
    const actor = await control.newActor('plus')
    const { first, second } = await publishBoth(actor, 'may-go', { replace: true })
    expect(first).toMatchObject({ value: { created: true } })
    expect(second).toMatchObject({ value: { created: false, version: { version_number: 2 } } })
  })

  test('the later one hears that the address is taken where it is of another organisation', async () => {
    const [one, other] = [await control.newActor('plus'), await control.newActor('plus')]
    const slug = 'two-organisations'
    const said = await Promise.allSettled([one, other].map((actor) => control.publishPage(actor, 'mine', slug)))
    expect(said.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(said.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'slug_taken' } })
  })
})

test('a password that comes with a publish protects it, and is recorded', async () => {
  const { services, sql } = control
  const actor = await control.newActor('plus')
  const content = { kind: 'text', format: 'html', content: '<title>secret</title>' } as const
  const { value } = await services.quickPublish.publish(actor, { content, password: 'hunter22' })
  expect(value.site).toMatchObject({ has_password: true, state: 'live' })
  expect((await control.routeOf(value.site.slug)).password).toMatchObject({ generation: 1 })
  const actions = await sql`select action from audit_log where subject = ${value.site.id} order by id`
  expect(actions.map(({ action }) => action)).toEqual(['site.created', 'site.updated', 'site.published'])
})

describe('uploads under way count against the plan', () => {
  const PIECE_BYTES = 9_000_000
  const piece = (number: number): Buffer => Buffer.alloc(PIECE_BYTES, number)
  const listed = (bytes: Buffer) => [
    { path: 'index.html', sha256: createHash('sha256').update(bytes).digest('hex'), size: bytes.length },
  ]
  const outcomes = async (calls: readonly Promise<unknown>[]): Promise<string[]> =>
    Promise.all(calls.map((call) => refusal(call)))
  const chunk = async function* (bytes: Buffer): AsyncGenerator<Buffer> {
    yield bytes
  }
  const tokenOf = (putUrl: string): string => putUrl.slice(putUrl.lastIndexOf('/') + 1)

  test('twenty at a time, lists and files together, however many callers race for the last place', async () => {
    const { services } = control
    const actor = await control.newActor()
    const { site } = await control.publishPage(actor, 'one')
    const begin = (number: number): Promise<unknown> =>
      number % 2 === 0
        ? services.uploads.start(actor, site.id, { files: listed(Buffer.from(`page ${number}`)) })
        : services.contentUploads.create(actor, `file ${number}`)
    const said = await outcomes(Array.from({ length: 24 }, (_, number) => begin(number)))
    expect(said.filter((word) => word === 'plan_limit')).toHaveLength(4)
    expect(await refusal(begin(24))).toBe('plan_limit')
    expect(await refusal(begin(25))).toBe('plan_limit')
    expect((await services.sites.usage(actor)).uploads_under_way).toMatchObject({ used: 20, limit: 20 })
    // A list with nothing to send takes no place.
    const same = listed(Buffer.from('<!doctype html><title>one</title>'))
    for (let count = 0; count < 3; count++) await services.uploads.start(actor, site.id, { files: same })
  })

  test('a list is asked for the room that its publish will need, less what goes with it, before anything is sent', async () => {
    const { services } = control
    const actor = await control.newActor()
    const { site } = await control.publishPage(actor, 'one')
    const large = Buffer.alloc(1_000_000, 1)
    const files = (page: string) => [
      ...listed(Buffer.from(page)),
      ...listed(large).map((file) => ({ ...file, path: 'large.bin' })),
    ]
    const send = async (page: string, options: object = {}) => {
      const { upload_id: uploadId, missing } = await services.uploads.start(actor, site.id, {
        files: files(page),
        ...options,
      })
      for (const hash of missing) {
        const body = Readable.from([hash === listed(large)[0]!.sha256 ? large : Buffer.from(page)])
        await services.uploads.receive(actor, { siteId: site.id, uploadId }, { hash, offset: 0, body })
      }
      return services.uploads.finish(actor, { siteId: site.id, uploadId })
    }
    for (const page of ['a', 'b', 'c']) await send(page)
    await send('d', { preview: 'next' })
    const { limit, used } = (await services.sites.usage(actor)).storage_bytes
    await control.sql`
      update versions set byte_size = byte_size + ${limit - used - 1000} where id = (
        select live_version_id from sites where id = ${site.id})`
    /** Asked about before, it gets the same answer. */
    const startAt = async (id: string, page: string, options: object) => {
      const wanted = { files: files(page), ...options }
      const before = await refusal(services.uploads.check(actor, { site_id: id, ...wanted }))
      expect(await refusal(services.uploads.start(actor, id, wanted))).toBe(before)
      return before
    }
    const start = (page: string, options: object = {}) => startAt(site.id, page, options)
    expect(await start('c')).toBe('accepted')
    expect(await start('next')).toBe('accepted')
    expect(await start('next', { preview: 'next' })).toBe('accepted')
    expect(await start('next', { preview: 'other' })).toBe('plan_limit')
    const { site: other } = await control.publishPage(actor, 'other')
    const elsewhere = (options: object = {}) => startAt(other.id, 'next', options)
    expect(await elsewhere()).toBe('plan_limit')
    expect(await elsewhere({ purge: true })).toBe('plan_limit')
    expect(await start('next', { purge: true })).toBe('accepted')
  })

  test('a list whose files cannot lie beside each other is refused before anything is sent', async () => {
    const { services } = control
    const actor = await control.newActor()
    const { site } = await control.publishPage(actor, 'one')
    const page = listed(Buffer.from('page'))[0]!
    for (const paths of [
      ['a', 'a/b'],
      ['caf\u00e9', 'cafe\u0301'],
      ['a', 'a'],
    ]) {
      const files = [page, ...paths.map((path) => ({ ...page, path }))]
      expect(await refusal(services.uploads.start(actor, site.id, { files }))).toBe('invalid_request')
      expect(await refusal(services.uploads.check(actor, { site_id: site.id, files }))).toBe('invalid_request')
    }
  })

  test('their bytes are part of what the plan stores, until a publish has used them', async () => {
    const { services } = control
    const actor = await control.newActor()
    const { site } = await control.publishPage(actor, 'one')
    for (const number of [1, 2]) await services.uploads.start(actor, site.id, { files: listed(piece(number)) })
    const ahead = await Promise.all(Array.from({ length: 5 }, () => services.contentUploads.create(actor, 'page.html')))
    const said = await outcomes(
      ahead.map(({ putUrl }, index) => services.contentUploads.receive(tokenOf(putUrl), chunk(piece(index + 3)))),
    )
    expect(said.filter((word) => word === 'plan_limit')).toHaveLength(2)
    const used = async (): Promise<number> => (await services.sites.usage(actor)).storage_bytes.used
    expect(await used()).toBeGreaterThan(5 * PIECE_BYTES)
    expect(await refusal(services.uploads.start(actor, site.id, { files: listed(piece(8)) }))).toBe('plan_limit')
    // The same content again is no further content.
    expect(await refusal(services.uploads.start(actor, site.id, { files: listed(piece(1)) }))).toBe('accepted')
    const arrived = ahead.filter((_, index) => said[index] === 'accepted').map(({ id }) => id)
    const before = await used()
    const publishSent = (): Promise<unknown> =>
      services.contentUploads.use(actor, arrived.slice(0, 1), ([sent]) =>
        services.quickPublish.publish(actor, { content: { kind: 'sent', ...sent!, name: 'page.html' } }),
      )
    await publishSent()
    expect(await used()).toBe(before)
    await services.contentUploads.use(actor, arrived.slice(1), async () => {})
    expect(await used()).toBe(before - 2 * PIECE_BYTES)
    // A refused publish leaves them under way.
    expect(
      await refusal(
        services.contentUploads.use(actor, arrived.slice(1), () =>
          services.quickPublish.publish(actor, { content: { kind: 'text', format: 'html', content: '' }, slug: 'No' }),
        ),
      ),
    ).toBe('invalid_request')
    expect(await used()).toBe(before)
  })

  test('a refused piece is not kept, and what has arrived for one upload is not asked for by the next', async () => {
    const { services } = control
    const actor = await control.newActor()
    const { site } = await control.publishPage(actor, 'one')
    await control.sql`update versions set byte_size = 49000000 where site_id = ${site.id}`
    const { putUrl } = await services.contentUploads.create(actor, 'a.bin')
    const late = piece(11)
    expect(await refusal(services.contentUploads.receive(tokenOf(putUrl), chunk(late)))).toBe('plan_limit')
    expect(await services.blobs.has(listed(late)[0]!.sha256)).toBe(false)
    const page = Buffer.from('<title>resumed</title>')
    const files = [...listed(page), { path: 'b.txt', sha256: 'b'.repeat(64), size: 1 }]
    const first = await services.uploads.start(actor, site.id, { files })
    expect(first.missing).toHaveLength(2)
    const place = { siteId: site.id, uploadId: first.upload_id }
    await services.uploads.receive(actor, place, { hash: files[0]!.sha256, offset: 0, body: Readable.from([page]) })
    const again = await services.uploads.start(actor, site.id, { files })
    expect(again.missing).toEqual(['b'.repeat(64)])
    // No other organisation is told that the bytes are there.
    const stranger = await control.newActor()
    const theirs = await control.publishPage(stranger, 'theirs')
    expect((await services.uploads.start(stranger, theirs.site.id, { files })).missing).toHaveLength(2)
  })

  test('a preview of Markdown leaves nothing in the store', async () => {
    const { publishing, blobs } = control.services
    const count = async (): Promise<number> => {
      let blobCount = 0
      for await (const _ of blobs.list()) blobCount++
      return blobCount
    }
    const before = await count()
    const services = {
      publishing,
      csrf: { requireCsrf() {} },
      limiter: { consume: async () => {} },
      config: { baseUrl: 'https://dropway.example', allowsAnonymous: true },
    } as unknown as DashboardServices
    const handlers = { read: async () => ({ viewer: {} }), reply: (_: unknown, answer: unknown) => answer }
    const route = previewRoutes(services, handlers as unknown as Handlers).find(({ method }) => method === 'POST')!
    const form = async () => new URLSearchParams({ text: '# A preview that no one keeps' })
    const answer = await route.handle({ ip: '203.0.113.8', header: () => undefined, form } as unknown as Request)
    expect(JSON.stringify(answer)).toContain('A preview that no one keeps')
    expect(await count()).toBe(before)
  })
})

test('one proof of work admits one publish, however many present it at once', async () => {
  const { anonymous } = control.services
  const admit = (proof: string | undefined): Promise<void> =>
    anonymous.admit({
      ip: '203.0.113.44',
      anonymousId: 'someone',
      signals: { honeypot: undefined, started: undefined, proof, isBrowser: true },
    })
  const { fields } = (await admit(undefined).catch((error: unknown) => error)) as ApiError
  const proof = solve(String(fields['challenge']), Number(fields['bits']))
  const said = await Promise.all(Array.from({ length: 8 }, () => refusal(admit(proof))))
  expect(said.toSorted()).toEqual(['accepted', ...Array.from({ length: 7 }, () => 'proof_required')])
  await anonymous.sweep()
  expect(await refusal(admit(proof))).toBe('proof_required')
})

test('edits of different files at once are merged; of the same file the last one wins', async () => {
  const { services } = control
  const actor = await control.newActor('plus')
  const { site } = await control.publishPage(actor, 'edited')
  const put = (path: string, text: string): Promise<unknown> =>
    services.quickPublish.edit(actor, site.id, { put: [{ path, bytes: Buffer.from(text) }], remove: [] })
  const paths = Array.from({ length: 12 }, (_, index) => `${index}.txt`)
  await Promise.all([...paths.map((path) => put(path, path)), put('same.txt', 'first'), put('same.txt', 'second')])
  const live = await services.versions.liveManifest(site.id, (await services.sites.get(actor, site.id)).live_version_id)
  const files = new Map(live?.files)
  expect([...files.keys()].toSorted()).toEqual([...paths, 'index.html', 'same.txt'].toSorted())
  expect((await services.publishing.readBlob(files.get('same.txt')?.hash ?? '')).toString()).toBe('second')
})
