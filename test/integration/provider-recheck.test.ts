/** Questions about people that meet something else: a deadlock, a second control, a sign-in of the same person. */
import { expect, test } from 'vitest'
import { manySided, recheckAll, useProvider } from '../support/provider-instance.ts'

const { startProvider, openInstance } = useProvider()

test('a deadlock after a refresh repeats what follows from it, not the refresh', async () => {
  const provider = await startProvider()
  const instance = await openInstance(provider, { OIDC_GROUPS: 'staff=member,leads=admin' })
  const { sql } = instance
  // The organisation of the groups belongs to the first account.
  await instance.newActor()
  const world = await manySided({ provider, instance })
  await world.comeByProvider()
  // The first change of a role fails as in a deadlock; a sequence is not rolled back.
  await sql`create sequence changes_of_roles`
  await sql.unsafe(`create function fail_once() returns trigger language plpgsql as $$ begin
    if nextval('changes_of_roles') = 1 then raise exception 'deadlock' using errcode = '40P01'; end if;
    return new; end $$`)
  await sql`create trigger fail_once before update on memberships for each row execute function fail_once()`
  provider.change({ ...world.ada, groups: ['leads'] })
  await recheckAll(instance)
  const [member] = await sql<{ role: string }[]>`
    select m.role from memberships m join organisations o on o.id = m.org_id
    where m.user_id = ${world.userId} and o.name = 'Acme'`
  expect([member?.role, await world.hasToken(), provider.refreshes]).toEqual(['admin', true, 1])
  // What the refresh gave was kept.
  await recheckAll(instance)
  expect([await world.hasToken(), provider.refreshes]).toEqual([true, 2])
})

test('two controls that ask after one person at once send one refresh', async () => {
  const provider = await startProvider()
  const instance = await openInstance(provider)
  const world = await manySided({ provider, instance })
  await world.comeByProvider()
  const thought = provider.think()
  const first = recheckAll(instance)
  await thought.asked
  await instance.services.providerSignIn!.recheck(new AbortController().signal)
  thought.decide()
  await first
  expect([await world.hasToken(), provider.refreshes]).toEqual([true, 1])
})

test('a sign-in while the provider says no to what was there before leaves the person in, with what they opened', async () => {
  const provider = await startProvider()
  const instance = await openInstance(provider)
  const { sql } = instance
  const world = await manySided({ provider, instance })
  const { ended } = await world.openPrivateDrop()
  await world.comeByProvider()
  provider.remove(world.ada.sub)
  const thought = provider.think()
  const rechecked = recheckAll(instance)
  await thought.asked
  const coming = world.comeByProvider()
  // It waits for the question to be over.
  const waiting = () =>
    sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  await expect.poll(waiting, { interval: 5 }).not.toHaveLength(0)
  thought.decide()
  await rechecked
  const browser = await coming
  expect([await browser.isWelcome(), await world.hasToken(), await ended()]).toEqual([true, true, []])
})
