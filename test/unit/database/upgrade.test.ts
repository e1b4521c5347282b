import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  estimateSeconds,
  heldTables,
  isAdditive,
  statementsOf,
  stepsOf,
} from '../../../control/operations/admin/upgrade-rules.ts'

const FOLDER = new URL('../../../control/ground/database/migrations/', import.meta.url)
const files = readdirSync(FOLDER).filter((name) => name.endsWith('.sql'))

test.each([
  ['create table a (b text); -- ; not here\ncreate index on a (b)', 2],
  [`insert into a values ('x;y', 'it''s'); select ";" from b;`, 2],
  ['do $$ begin update a set b = 1; end $$; select 1', 2],
  ['create function f() returns int as $body$ select 1; $body$ language sql;', 1],
  ['-- nothing\n', 0],
])('statements of %s', (text, count) => {
  expect(statementsOf(text)).toHaveLength(count)
})

test.each([
  ['create table things (id text)', 'create', 'things'],
  ['alter table sites add column a text', 'add', 'sites'],
  ['create unique index on sites (a)', 'index', 'sites'],
  ['create index sites_a on sites (a) where b', 'index', 'sites'],
  ['update sites set a = 1', 'rows', 'sites'],
  ['insert into sites select 1', 'rows', 'sites'],
  ['alter table sites add constraint c check (a > 0)', 'rows', 'sites'],
  ['alter table sites rename a to b', 'removes', 'sites'],
  ['alter table sites drop column a', 'removes', 'sites'],
  ['alter table sites alter column a type bigint', 'removes', 'sites'],
  ['drop table sites', 'removes', 'sites'],
  ['alter index sites_a set (fastupdate = off)', 'add', 'sites_a'],
  ['vacuum', 'other', undefined],
])('%s is %s', (text, kind, table) => {
  expect(stepsOf(text)).toEqual([{ kind, table }])
})

test('time is for tables that hold something; those that a migration makes itself take a moment', () => {
  const sizes = new Map([['sites', { rows: 2_000_000, bytes: 1_000_000_000 }]])
  const steps = stepsOf(
    'create table fresh (a int); create index on fresh (a); create index on sites (a); update sites set a = 1',
  )
  expect(estimateSeconds(steps, sizes)).toBeCloseTo(20 + 100 + 0.2, 0)
  expect(heldTables(steps, sizes)).toEqual(['sites'])
  expect(estimateSeconds(stepsOf('alter table sites add column b int'), sizes)).toBeLessThan(1)
})

test('of our own migrations every statement is understood, and only those of the first releases take something away', () => {
  const unknown = files.flatMap((name) =>
    stepsOf(readFileSync(new URL(name, FOLDER), 'utf8')).flatMap(({ kind }) => (kind === 'other' ? [name] : [])),
  )
  expect([...new Set(unknown)]).toEqual([])
  const ending = files.filter((name) => !isAdditive(stepsOf(readFileSync(new URL(name, FOLDER), 'utf8'))))
  expect(ending.filter((name) => name > '0062')).toEqual([])
})
