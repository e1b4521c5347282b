/** Words of drops are kept apart by organisation; those of a release before that did not are read anew. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Actor } from '../../control/ground/actor.ts'
import { markOf } from '../../control/doors/search/rules.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let composed: ComposedServices

beforeAll(async () => {
  composed = await composeServices()
})
afterAll(() => composed.close())

/** A page that says it, and has no title: names are found otherwise. */
async function publishText(actor: Actor, text: string): Promise<string> {
  const content = { kind: 'text', format: 'html', content: `<!doctype html><p>${text}</p>` } as const
  return (await composed.services.quickPublish.publish(actor, { content })).value.site.id
}

test('words without a mark are due again, and found once they were read', async () => {
  const { services, sql } = composed
  const owner = await composed.newActor('plus')
  const id = await publishText(owner, 'wombats')
  const running = new AbortController().signal
  await services.search.readDue(running)
  const found = async () => (await services.search.find(owner, 'wombats')).map((site) => site.id)
  expect(await found()).toEqual([id])
  // As the release before writes them while it still runs.
  await sql`
    insert into site_words (site_id, version_id, words) select id, live_version_id, array_to_tsvector(array['wombats']) from sites where id = ${id}
    on conflict (site_id) do update set words = excluded.words, is_marked = false`
  expect(await found()).toEqual([])
  const due = await sql<
    { later: boolean }[]
  >`select not_before > now() as later from site_words_due where site_id = ${id}`
  expect(due).toEqual([{ later: true }])
  await sql`update site_words_due set not_before = now()`
  expect(await services.search.readDue(running)).toBe(1)
  expect(await found()).toEqual([id])
  expect(await sql`select from site_words_due`).toHaveLength(0)
})

test('what others say is neither found nor read: the index names this organisation’s drops alone', async () => {
  const { services, sql } = composed
  const [one, other] = [await composed.newActor('plus'), await composed.newActor('plus')]
  const mine = await publishText(one, 'capybaras')
  const theirs = await publishText(other, 'capybaras')
  await services.search.readDue(new AbortController().signal)
  expect((await services.search.find(one, 'capybaras')).map(({ id }) => id)).toEqual([mine])
  expect((await services.search.find(other, 'capybaras')).map(({ id }) => id)).toEqual([theirs])
  const words = await sql<{ words: string[] }[]>`
    select tsvector_to_array(words) as words from site_words where site_id in (${mine}, ${theirs})`
  expect(new Set(words.flatMap((row) => row.words)).size).toBe(2)
})

test('a version with the pages of the one before keeps its words; with another page, owner or release they are read anew', async () => {
  const { services, sql } = composed
  const owner = await composed.newActor('plus')
  const running = new AbortController().signal
  const foundBy = async (actor: Actor, word: string) => (await services.search.find(actor, word)).length
  const publish = async (text: string, filename: string) => {
    const files = [
      { path: 'index.html', bytes: Buffer.from(`<!doctype html><p>${text}</p>`) },
      { path: filename, bytes: Buffer.from('x') },
    ]
    const { value } = await services.quickPublish.publish(owner, {
      content: { kind: 'files', files },
      slug: 'same-pages-again',
      replace: true,
    })
    expect(await services.search.readDue(running)).toBe(1)
    return value.site.id
  }
  const id = await publish('otters', 'a.css')
  const forget = () =>
    sql`update site_words set words = array_to_tsvector(array[${markOf(owner.orgId)} || 'unread']) where site_id = ${id}`
  expect(await foundBy(owner, 'otters')).toBe(1)
  // Nobody but this test writes other words: where they stay, no page was read.
  await forget()
  await publish('otters', 'b.css')
  await publish('otters', 'c.css')
  expect(await foundBy(owner, 'otters')).toBe(0)
  await publish('otters', 'more.html')
  expect(await foundBy(owner, 'otters')).toBe(1)
  await publish('badgers', 'more.html')
  expect([await foundBy(owner, 'otters'), await foundBy(owner, 'badgers')]).toEqual([0, 1])

  const other = await composed.newActor('plus')
  await sql`update sites set org_id = ${other.orgId} where id = ${id}`
  await services.search.readDue(running)
  expect([await foundBy(owner, 'badgers'), await foundBy(other, 'badgers')]).toEqual([0, 1])
  await sql`update sites set org_id = ${owner.orgId} where id = ${id}`
  await services.search.readDue(running)

  // The release before names the version that it read, and knows nothing of sources.
  await sql`update site_words set version_id = 'ver_other' where site_id = ${id}`
  await forget()
  await publish('badgers', 'd.css')
  await publish('badgers', 'e.css')
  expect(await foundBy(owner, 'badgers')).toBe(1)
  // And may write none for the same version.
  await sql`update site_words set words = '' where site_id = ${id}`
  await publish('badgers', 'f.css')
  expect(await foundBy(owner, 'badgers')).toBe(1)
})

test('parts of names are found exactly as by looking through them, whatever is in them', async () => {
  const { services, sql } = composed
  const owner = await composed.newActor('business')
  const names = [
    "Ada's 50% off",
    'C:\\temp\\x',
    'a|b & !c',
    '四半期の報告書',
    '🦊🦊 foxes',
    'Über uns',
    'x',
    'ab',
    "''",
    'naïve (draft).*',
  ]
  const drops = new Map<string, string>()
  for (const [index, name] of names.entries()) {
    const { value } = await services.sites.create(owner, { slug: `named-${index}-of-many`, name })
    drops.set(value.id, `${value.slug} ${name} `)
  }
  const questions = [...drops.values()].flatMap((text) =>
    text.split(/\s+/).flatMap((word) => {
      const characters = [...word]
      return characters.flatMap((_, at) => [1, 2, 3, 4, 7].map((length) => characters.slice(at, at + length).join('')))
    }),
  )
  const wrong: string[] = []
  for (const question of new Set([...questions, 'named 3', 'ÜBER', '%', '_', "foxes '", 'zz', '.*', 'unsuns'])) {
    if (question === '') continue
    const parts = question.toLowerCase().split(' ')
    const expected = [...drops].filter(([, text]) => parts.every((part) => text.toLowerCase().includes(part)))
    const found = (await services.search.find(owner, question)).map(({ id }) => id)
    const ids = expected.map(([id]) => id)
    if (found.toSorted().join() !== ids.toSorted().join()) wrong.push(`${question}: ${found.length}, not ${ids.length}`)
  }
  expect(wrong).toEqual([])
  // Renamed, given to another organisation, and deleted: the index follows without being told.
  const [first, second, third] = [...drops.keys()] as [string, string, string]
  await services.sites.patch(owner, first, { name: 'Meerkats' })
  const other = await composed.newActor('business')
  await sql`update sites set org_id = ${other.orgId} where id = ${second}`
  await services.sites.delete(owner, third)
  const foundBy = async (actor: Actor, question: string) =>
    (await services.search.find(actor, question)).map(({ id }) => id)
  expect(await foundBy(owner, 'eerka')).toEqual([first])
  expect(await foundBy(owner, '50%')).toEqual([])
  expect(await foundBy(owner, 'temp')).toEqual([])
  expect(await foundBy(other, 'temp')).toEqual([second])
  expect(await foundBy(owner, 'a|b')).toEqual([])
  expect(await sql`select from site_names where site_id = ${third}`).toHaveLength(0)
})

test('a generated table: whoever asks finds the drops of the organisation that they act for, and of those what the token is for', async () => {
  const { services } = composed
  const ada = await composed.newActor('business')
  const people = { ada, team: await composed.newTeam(ada, 'business'), bob: await composed.newActor('business') }
  const kinds = ['public', 'password', 'viewers', 'deleted'] as const
  const drops: { id: string; org: string; kind: (typeof kinds)[number]; word: string }[] = []
  for (const [name, actor] of Object.entries(people))
    for (const kind of kinds) {
      const word = `${name}${kind}`
      const id = await publishText(actor, `zebras ${word}`)
      if (kind === 'password') await services.sites.patch(actor, id, { password: 'open sesame please' })
      if (kind === 'viewers') await services.sites.patch(actor, id, { access_mode: 'viewers' })
      drops.push({ id, org: actor.orgId, kind, word })
    }
  await services.search.readDue(new AbortController().signal)
  for (const [name, actor] of Object.entries(people))
    for (const { id } of drops.filter(({ org, kind }) => org === actor.orgId && kind === 'deleted'))
      expect((await services.sites.delete(actor, id)).pending, name).toBe(false)

  const askers = Object.entries(people).flatMap(([name, actor]) => [
    [name, actor] as const,
    // A token for one drop of its organisation and one of another's; and one for nothing.
    [
      `${name}, narrowly`,
      { ...actor, reach: { ...actor.reach, sites: [idOf(actor, 'viewers'), idOf(people.bob, 'public')] } },
    ] as const,
    [`${name}, for nothing`, { ...actor, reach: { ...actor.reach, sites: [] } }] as const,
  ])
  function idOf(actor: Actor, kind: string): string {
    return drops.find((drop) => drop.org === actor.orgId && drop.kind === kind)!.id
  }
  const rows: string[] = []
  for (const [who, actor] of askers)
    for (const question of ['zebras', ...drops.map(({ word }) => word)]) {
      const expected = drops
        .filter(({ org, kind }) => org === actor.orgId && kind !== 'deleted')
        .filter(({ word }) => question === 'zebras' || word === question)
        .filter(({ id }) => actor.reach.sites === undefined || actor.reach.sites.includes(id))
        .map(({ id }) => id)
      const found = (await services.search.find(actor, question)).map(({ id }) => id)
      if (found.toSorted().join() !== expected.toSorted().join()) rows.push(`${who}: ${question}: ${found.join()}`)
    }
  expect(rows).toEqual([])
})
