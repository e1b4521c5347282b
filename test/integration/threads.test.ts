/** What happens around comments: mails at once, hourly, daily and never, mentions, presence, limits, and what ends with whom. */
import { buffer } from 'node:stream/consumers'
import yauzl from 'yauzl'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mailDigests } from '../../control/drops/threads/digests.ts'
import { MAX_THREADS_PER_DROP } from '../../control/drops/threads/rules.ts'
import type { Reviewer } from '../../control/drops/threads/reviewer.ts'
import type { Actor } from '../../control/ground/actor.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../shared/running/clock.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let world: ComposedServices
let nowMs = Date.UTC(2026, 2, 1, 12)
const clock = { now: () => nowMs }
let nextSlug = 0

beforeAll(async () => {
  world = await composeServices({}, clock)
})
afterAll(() => world?.close())

interface Talk {
  readonly owner: Actor
  readonly siteId: string
  readonly member: Reviewer
  guest(id: string, key?: string): Reviewer
}

async function newTalk(): Promise<Talk> {
  const owner = await world.newActor('business')
  const { site } = await world.publishPage(owner, 'Tickets', `talk-${nextSlug++}`)
  const member = await world.services.reviewers.member(owner, site.id)
  const guest = (id: string, key = 'k'): Reviewer => ({
    ...member,
    kind: 'guest',
    id,
    key,
    name: 'Ada',
    role: 'comment',
    actor: undefined,
    email: undefined,
  })
  return { owner, siteId: site.id, member, guest }
}

const digest = () => mailDigests({ ...world.services, baseUrl: world.services.config.baseUrl })
const say = (reviewer: Reviewer, body: string) => world.services.review.open(reviewer, { page: '/', body })
const digestsTo = async ({ email }: Actor) =>
  (await world.mailsTo(email)).filter(({ template }) => template === 'thread_digest')

test.each([
  ['at_once', 0],
  ['hourly', HOUR_MS],
  ['daily', DAY_MS],
] as const)('the owner is told %s of what others wrote, once, and not of what members wrote', async (when, waitMs) => {
  const { owner, siteId, member, guest } = await newTalk()
  await world.services.sites.patch(owner, siteId, { thread_mails: when })
  const ada = guest('gl_1')
  await say(ada, 'The price is old.')
  await say(member, 'Written by the owner.')
  if (waitMs > 0) {
    nowMs += waitMs - MINUTE_MS
    await say(ada, 'And the date as well.')
    await digest()
    expect(await digestsTo(owner)).toEqual([])
    nowMs += MINUTE_MS
  }
  await digest()
  await digest()
  const mails = await digestsTo(owner)
  expect(mails).toHaveLength(1)
  expect(mails[0]!.text).toContain('The price is old.')
  expect(mails[0]!.text).not.toContain('Written by the owner.')
  if (waitMs > 0) expect(mails[0]!.text).toContain('And the date as well.')
})

test('an owner who wants no mail gets none', async () => {
  const { owner, siteId, guest } = await newTalk()
  await world.services.sites.patch(owner, siteId, { thread_mails: 'never' })
  await say(guest('gl_1'), 'Hello?')
  nowMs += 30 * DAY_MS
  await digest()
  expect(await digestsTo(owner)).toEqual([])
})

test('a long list is cut in the mail, which says how many more there are', async () => {
  const { owner, siteId, guest } = await newTalk()
  await world.services.sites.patch(owner, siteId, { thread_mails: 'at_once' })
  for (let count = 0; count < 12; count++) await say(guest('gl_1'), `Comment number ${count}.`)
  await digest()
  const [mail] = await digestsTo(owner)
  expect(mail!.text).toContain('Comment number 9.')
  expect(mail!.text).not.toContain('Comment number 10.')
  expect(mail!.text).toMatch(/\b2 more/)
})

test('who is named by address and may see the drop is mailed a link to the place; strangers are not', async () => {
  const { owner, siteId, guest } = await newTalk()
  await world.services.viewerSharing.add(owner, siteId, {
    named: [{ kind: 'email', value: 'grace@example.org' }],
    role: 'comment',
    invite: false,
  })
  const { id } = await say(guest('gl_1'), 'Look, @grace@example.org and @stranger@example.org')
  const [mail] = (await world.mailsTo('grace@example.org')).filter(({ template }) => template === 'thread_mention')
  expect(mail!.text).toContain(`?thread=${id}`)
  expect(await world.mailsTo('stranger@example.org')).toEqual([])
})

test('who is here is said while they are here, and not to more than that', async () => {
  const { owner, siteId, member, guest } = await newTalk()
  const { reviewFrames, sites } = world.services
  const site = await sites.requireOwn(world.sql, owner, siteId)
  await reviewFrames.here(site, { ...guest('gl_1', 'one'), name: 'Ada' })
  await reviewFrames.here(site, { ...guest('gl_1', 'two'), name: 'Grace' })
  expect(await reviewFrames.here(site, member)).toEqual([
    { name: member.name, isYou: true },
    { name: 'Ada', isYou: false },
    { name: 'Grace', isYou: false },
  ])
  nowMs += MINUTE_MS
  expect(await reviewFrames.here(site, member)).toEqual([{ name: member.name, isYou: true }])
  const other = await newTalk()
  const elsewhere = await sites.requireOwn(world.sql, other.owner, other.siteId)
  expect(await reviewFrames.here(elsewhere, other.member)).toHaveLength(1)
})

test('a drop has a bounded number of threads, and a person a bounded number of messages', async () => {
  const { siteId, member, guest } = await newTalk()
  const first = await say(member, 'One.')
  await world.sql`
    insert into threads (id, site_id, page, version_number, placed_version, author_kind, author_id, author_name, created_at)
    select 'th_' || ${siteId} || n, site_id, page, 1, 1, author_kind, author_id, author_name, created_at
    from threads, generate_series(2, ${MAX_THREADS_PER_DROP}) n where id = ${first.id}`
  await expect(say(guest('gl_1'), 'One too many.')).rejects.toMatchObject({ status: 403 })
  const other = await newTalk()
  const thread = await say(other.guest('gl_1', 'a'), 'First.')
  const reply = (key: string) => world.services.review.reply(other.guest('gl_1', key), thread.id, { body: 'More.' })
  for (let count = 1; count < 60; count++) await reply('a')
  await expect(reply('a')).rejects.toMatchObject({ status: 429 })
  // Another person who came by the same link is not the one who wrote too much.
  await reply('b')
})

test('the export holds what was said, by whom, and nothing that lets anyone in', async () => {
  const { owner, guest } = await newTalk()
  const anchor = {
    exact: '',
    prefix: '',
    suffix: '',
    element: 'body > img',
    src: '/hall.jpg',
    point: { x: 0.5, y: 0.25 },
  }
  await world.services.review.open(guest('gl_secret', 'key of a browser'), {
    page: '/',
    body: 'Brighter?',
    anchor,
    label: 'nice',
  })
  const zip = await yauzl.fromBufferPromise(await buffer(await world.services.siteExport(owner)))
  let text = ''
  for await (const entry of zip.eachEntry())
    if (entry.fileName.endsWith('/threads.json'))
      text = (await buffer(await zip.openReadStreamPromise(entry))).toString()
  expect((JSON.parse(text) as { threads: object[] }).threads).toMatchObject([
    {
      page: '/',
      label: 'nice',
      anchor: { src: '/hall.jpg', point: { x: 0.5, y: 0.25 } },
      author: { kind: 'guest', name: 'Ada' },
      messages: [{ body: 'Brighter?', author: { name: 'Ada' } }],
    },
  ])
  expect(text).not.toMatch(/gl_secret|key of a browser/)
})
