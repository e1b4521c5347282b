/** What happens around comments: mails at once, hourly, daily and never, mentions, presence, limits, and what ends with whom. */
import { buffer } from 'node:stream/consumers'
import yauzl from 'yauzl'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mailDigests } from '../../control/drops/threads/digests.ts'
import { MAX_IMAGES_PER_DROP, MAX_THREADS_PER_DROP, THREAD_ALLOWANCES } from '../../control/drops/threads/rules.ts'
import type { Reviewer } from '../../control/drops/threads/reviewer.ts'
import { addVisitBatch } from '../../control/drops/viewers/lists.ts'
import type { Actor } from '../../control/ground/actor.ts'
import { transaction } from '../../control/ground/database/sql.ts'
import type { RoutingTransaction } from '../../control/ground/routing/changes.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../shared/running/clock.ts'
import { PASSWORD } from '../support/accounts.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'
import { duringTransaction } from '../support/races.ts'

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

test('who was invited by address is mailed a link to the place; strangers are not', async () => {
  const { owner, siteId, guest } = await newTalk()
  await world.services.viewerSharing.add(owner, siteId, {
    named: [{ kind: 'email', value: 'grace@example.org' }],
    role: 'comment',
    invite: true,
  })
  const { id } = await say(guest('gl_1'), 'Look, @grace@example.org and @stranger@example.org')
  const [mail] = (await world.mailsTo('grace@example.org')).filter(({ template }) => template === 'thread_mention')
  expect(mail!.text).toContain(`?thread=${id}`)
  expect(await world.mailsTo('stranger@example.org')).toEqual([])
})

test('a viewer who was added without a mail gets none from a comment either, until they came by themselves', async () => {
  const { owner, siteId, member } = await newTalk()
  const email = 'quiet@example.org'
  const named = [{ kind: 'email', value: email }] as const
  const { value } = await world.services.viewerSharing.add(owner, siteId, { named, role: 'comment', invite: false })
  await say(member, `Look, @${email}`)
  expect(await world.mailsTo(email)).toEqual([])
  const visit = { subject: value[0]!.id, second: nowMs / SECOND_MS, count: 1 }
  await transaction(world.services.sql, (tx) => addVisitBatch(tx, `visits of ${siteId}`, [visit]))
  await say(member, `Look again, @${email}`)
  expect((await world.mailsTo(email)).map(({ template }) => template)).toEqual(['thread_mention'])
})

test('a member who is on the list too is mailed as a member', async () => {
  const { owner, siteId, guest } = await newTalk()
  const named = [{ kind: 'email', value: owner.email }] as const
  await world.services.viewerSharing.add(owner, siteId, { named, invite: false })
  await say(guest('gl_1'), `Look, @${owner.email}`)
  expect((await world.mailsTo(owner.email)).map(({ template }) => template)).toContain('thread_mention')
})

test('a domain on the list names nobody: who is at it is mailed for no comment', async () => {
  const { owner, siteId, guest } = await newTalk()
  const named = [{ kind: 'domain', value: 'bank.example' }] as const
  await world.services.viewerSharing.add(owner, siteId, { named, role: 'comment', invite: false })
  await say(guest('gl_1'), `Look, @ceo@bank.example and @${owner.email}`)
  expect(await world.mailsTo('ceo@bank.example')).toEqual([])
  expect((await world.mailsTo(owner.email)).map(({ template }) => template)).toContain('thread_mention')
})

test('a mail box gets a bounded number of mentions in an hour, from whatever drops', async () => {
  const email = 'often@example.org'
  const mentions = async () => (await world.mailsTo(email)).filter(({ template }) => template === 'thread_mention')
  const { limit } = THREAD_ALLOWANCES.mentionMails
  for (let round = 0; round < 2; round++) {
    const { owner, siteId, member } = await newTalk()
    const named = [{ kind: 'email', value: email }] as const
    await world.services.viewerSharing.add(owner, siteId, { named, role: 'comment', invite: true })
    for (let count = 0; count < limit - 2; count++) await say(member, `Look, @${email}`)
  }
  expect(await mentions()).toHaveLength(limit)
  nowMs += HOUR_MS
  const { owner, siteId, member } = await newTalk()
  const named = [{ kind: 'email', value: email }] as const
  await world.services.viewerSharing.add(owner, siteId, { named, role: 'comment', invite: true })
  await say(member, `Look, @${email}`)
  expect(await mentions()).toHaveLength(limit + 1)
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

test('a person changes what they wrote and what they opened so often in an hour, beside what they write', async () => {
  const { member, guest } = await newTalk()
  const { review } = world.services
  const [ada, grace] = [guest('gl_edits', 'a'), guest('gl_edits', 'b')]
  const thread = await say(ada, 'Frist.')
  const [message] = thread.messages
  const edit = (body: string) => review.edit(ada, message!.id, body)
  for (let count = 0; count < 29; count++) {
    await edit(`First, ${count}.`)
    await review.change(ada, thread.id, { state: count % 2 === 0 ? 'resolved' : 'open' })
  }
  await edit('First.')
  await review.change(ada, thread.id, { label: 'must' })
  const refusal = { status: 429, message: 'Too many attempts. Wait a while, then try again.' }
  await expect(edit('Once more.')).rejects.toMatchObject(refusal)
  await expect(review.change(ada, thread.id, { state: 'open' })).rejects.toMatchObject(refusal)
  const [shown] = await review.list(member, { state: 'all' })
  expect(shown).toMatchObject({ label: 'must', state: 'resolved', messages: [{ body: 'First.' }] })
  // What is written is counted by itself, and others are not this person.
  await review.reply(ada, thread.id, { body: 'More.' })
  const own = await say(grace, 'Mine.')
  await review.edit(grace, own.messages[0]!.id, 'Mine, too.')
  // Ends in bulk are counted, too.
  await review.replyAll(member, [{ thread: own.id, resolve: true }])
  await world.sql`update throttles set count = 2000 where key like 'memberChanges:%'`
  await expect(review.replyAll(member, [{ thread: own.id, resolve: false }])).rejects.toMatchObject(refusal)
  nowMs += HOUR_MS
  expect(await edit('An hour later.')).toMatchObject({ body: 'An hour later.' })
})

test('the log says who opened, ended, reopened and took away what, by ids and without a word of it', async () => {
  const { owner, siteId, member, guest } = await newTalk()
  const { review, viewerSharing } = world.services
  const link = await viewerSharing.addLink(owner, siteId, { role: 'comment' })
  const ada = guest(link.id)
  const [first, second] = [await say(ada, 'Secret one.'), await say(ada, 'Secret two.')]
  await review.change(member, first.id, { state: 'resolved' })
  await review.change(ada, first.id, { state: 'open' })
  await review.remove(member, second.messages[0]!.id)
  await viewerSharing.removeLink(owner, siteId, link.id, 'remove')
  const entries = await world.sql<{ action: string; actor: string; detail: object }[]>`
    select action, actor, detail from audit_log where subject = ${siteId} and action like 'thread.%' order by id`
  const byGuest = `guest ${link.id}`
  expect(entries.map(({ action, actor }) => `${action} ${actor}`)).toEqual([
    `thread.opened ${byGuest}`,
    `thread.opened ${byGuest}`,
    `thread.resolved ${owner.email}`,
    `thread.reopened ${byGuest}`,
    `thread.message_removed ${owner.email}`,
    `thread.comments_removed ${owner.email}`,
  ])
  expect(entries[4]!.detail).toMatchObject({ thread: second.id, message: second.messages[0]!.id })
  expect(JSON.stringify(entries)).not.toContain('Secret')
  expect(await review.list(member, { state: 'all' })).toEqual([])
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
  const text = [...(await exported(owner))].find(([name]) => name.endsWith('/threads.json'))?.[1] ?? ''
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

test('a drop that has only previews is exported as the newest of them, with what was said about it', async () => {
  const owner = await world.newActor('business')
  const slug = `previewed-${nextSlug++}`
  const content = { kind: 'text', format: 'html', content: '<!doctype html><title>Soon</title>' } as const
  const { site } = (await world.services.quickPublish.publish(owner, { content, slug, preview: 'next' })).value
  const member = await world.services.reviewers.member(owner, site.id)
  await world.services.review.open(member, { page: '/', body: 'When?', preview: 'next' })
  const files = await exported(owner)
  expect(files.get(`${slug}/index.html`)).toContain('<title>Soon</title>')
  expect(JSON.parse(files.get(`${slug}/threads.json`)!)).toMatchObject({ threads: [{ messages: [{ body: 'When?' }] }] })
  expect(JSON.parse(files.get('dropway-export.json')!)).toMatchObject({ sites: [{ slug }] })
  await world.services.previews.remove(owner, site.id, 'next')
  expect([...(await exported(owner)).keys()]).toContain(`${slug}/threads.json`)
})

async function exported(actor: Actor): Promise<Map<string, string>> {
  const zip = await yauzl.fromBufferPromise(await buffer(await world.services.siteExport(actor)))
  const files = new Map<string, string>()
  for await (const entry of zip.eachEntry())
    files.set(entry.fileName, (await buffer(await zip.openReadStreamPromise(entry))).toString())
  return files
}

/** One pixel. */
const GIF = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')

test('of two who race for the last place of a drop one gets it, with an image and with a thread', async () => {
  const { siteId, member, guest } = await newTalk()
  const first = await world.services.threadImages.add(member, GIF)
  await world.sql`
    insert into thread_images (id, site_id, hash, type, byte_size, width, height, author_kind, author_id, author_key, created_at)
    select 'ti_' || ${siteId} || n, site_id, hash, type, byte_size, width, height, author_kind, author_id, author_key, created_at
    from thread_images, generate_series(3, ${MAX_IMAGES_PER_DROP}) n where id = ${first.id}`
  const thread = await say(member, 'One.')
  await world.sql`
    insert into threads (id, site_id, page, version_number, placed_version, author_kind, author_id, author_name, created_at)
    select 'th_' || ${siteId} || n, site_id, page, 1, 1, author_kind, author_id, author_name, created_at
    from threads, generate_series(3, ${MAX_THREADS_PER_DROP}) n where id = ${thread.id}`
  const hold = (tx: RoutingTransaction) => tx`select from sites where id = ${siteId} for update`
  const [ada, grace] = [guest('gl_race', 'a'), guest('gl_race', 'b')]
  const pasted = await duringTransaction(
    world.sql,
    hold,
    () => world.services.threadImages.add(ada, GIF),
    () => world.services.threadImages.add(grace, GIF),
  )
  const refusal = expect.objectContaining({ status: 403, code: 'limit_reached' })
  expect(pasted.filter((each) => each instanceof Error)).toEqual([refusal])
  const said = await duringTransaction(
    world.sql,
    hold,
    () => say(ada, 'Two.'),
    () => say(grace, 'Three.'),
  )
  expect(said.filter((each) => each instanceof Error)).toEqual([refusal])
})

test('versions of a page are compared for one person so often in an hour', async () => {
  const { owner, siteId } = await newTalk()
  const content = {
    kind: 'text',
    format: 'html',
    content: '<!doctype html><title>x</title><p>Other words.</p>',
  } as const
  const { slug } = await world.services.sites.get(owner, siteId)
  await world.services.quickPublish.publish(owner, { content, slug })
  const fresh = await world.services.reviewers.member(owner, siteId)
  const compare = () => world.services.review.changesSince(fresh, { page: '/', preview: undefined, version: 1 })
  expect(await compare()).not.toEqual([])
  await world.sql`update throttles set count = 600 where key like 'comparisons:%'`
  await expect(compare()).rejects.toMatchObject({ status: 429 })
  // What costs nothing is not counted.
  const same = { page: '/', preview: undefined, version: 2 }
  expect(await world.services.review.changesSince(fresh, same)).toEqual([])
})

test('with an account go the addresses of those who could see its drops, and what they wrote', async () => {
  const { owner, siteId, guest } = await newTalk()
  const viewer = `named-${siteId}@example.com`.toLowerCase()
  const named = [{ kind: 'email', value: viewer }] as const
  await world.services.viewerSharing.add(owner, siteId, { named, invite: true })
  await say(guest('gl_1'), `Ask @${viewer} about it.`)
  expect(await tracesOf(viewer)).toEqual(expect.arrayContaining(['mails', 'thread_messages', 'viewers']))
  await world.services.accounts.deleteAccount(owner, { password: PASSWORD })
  expect(await tracesOf(viewer)).toEqual([])
})

/** The tables that say it. */
async function tracesOf(text: string): Promise<string[]> {
  const tables = await world.sql<{ name: string }[]>`
    select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`
  const found: string[] = []
  for (const { name } of tables) {
    const rows = await world.sql`
      select from ${world.sql(name)} as entry where position(${text} in lower(entry::text)) > 0 limit 1`
    if (rows.length > 0) found.push(name)
  }
  return found.toSorted()
}
