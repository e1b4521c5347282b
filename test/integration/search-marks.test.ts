/** Words of drops are kept apart by organisation; those of a release before that did not are read anew. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Actor } from '../../control/ground/actor.ts'
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
