/** Who may do what to threads, as a table of everyone and every deed; and what is read out of texts. */
import { expect, test } from 'vitest'
import {
  mayDo,
  mentionsIn,
  nameOfEmail,
  pagePathOf,
  type Commenter,
  type ThreadDeed,
} from '../../../control/drops/threads/rules.ts'

const person = (change: Partial<Commenter>): Commenter => ({
  kind: 'guest',
  id: 'gl_1',
  key: 'browser 1',
  name: 'Ada',
  role: 'comment',
  ...change,
})
const people = {
  member: person({ kind: 'member', id: 'usr_1', key: '', role: 'member' }),
  author: person({}),
  'another who came by the same link': person({ key: 'browser 2' }),
  'a commenting viewer': person({ kind: 'viewer', id: 'vw_1' }),
  'who may look': person({ id: 'gl_2', role: 'view' }),
  'the author, who may only look now': person({ role: 'view' }),
}
const written = { kind: 'guest', id: 'gl_1', key: 'browser 1' } as const
const deeds: ThreadDeed[] = ['read', 'open', 'reply', 'set-state', 'edit', 'delete']

/** A letter for each deed that is allowed. */
const allowed = (who: Commenter, visible: 'commenters' | 'viewers'): string =>
  deeds.map((deed) => (mayDo(who, deed, { visible, of: written }) ? deed[0] : '-')).join('')

test.each([
  ['member', 'rors-d', 'rors-d'],
  ['author', 'rorsed', 'rorsed'],
  ['another who came by the same link', 'ror---', 'ror---'],
  ['a commenting viewer', 'ror---', 'ror---'],
  ['who may look', '------', 'r-----'],
  ['the author, who may only look now', '------', 'r-----'],
] as const)('%s', (who, hidden, shown) => {
  expect([allowed(people[who], 'commenters'), allowed(people[who], 'viewers')]).toEqual([hidden, shown])
})

test.each([
  ['/', '/'],
  ['about.html', '/about.html'],
  ['/a/b?x=1#y', '/a/b'],
  ['', '/'],
  ['javascript:alert(1)', undefined],
  ['https://elsewhere.example/', undefined],
  ['/a\u0000b', undefined],
  [`/${'a'.repeat(2000)}`, undefined],
])('the page of %j is %j', (text, page) => expect(pagePathOf(text)).toBe(page))

test('a message names people by their address, each once and few of them', () => {
  expect(mentionsIn('Hello @Ada@Example.com, and @ada@example.com; not grace@example.com')).toEqual(['ada@example.com'])
  expect(mentionsIn('@nobody @a@b')).toEqual([])
  expect(mentionsIn(Array.from({ length: 30 }, (_, index) => `@p${index}@example.com`).join(' '))).toHaveLength(10)
})

test('others see no address', () => expect(nameOfEmail('ada.l@example.com')).toBe('ada.l'))
