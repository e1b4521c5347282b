/** Who may do what to threads, as a table of everyone and every deed; and what is read out of texts. */
import { expect, test } from 'vitest'
import {
  isAuthor,
  MAX_BODY_CHARS,
  mayDo,
  mentionsIn,
  nameOfEmail,
  pagePathOf,
  THREAD_ALLOWANCES,
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

/** A letter for each deed that is allowed; nothing but `true` allows one. */
const allowed = (who: Commenter, visible: 'commenters' | 'viewers'): string =>
  deeds.map((deed) => (Object.is(mayDo(who, deed, { visible, of: written }), true) ? deed[0] : '-')).join('')

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
  [`/${'a'.repeat(1999)}`, `/${'a'.repeat(1999)}`],
  [`/${'a'.repeat(2000)}`, undefined],
  [`/a?${'x'.repeat(3000)}`, '/a'],
  ['#top', '/'],
  ['  /a  ', '/a'],
  ['DATA:text/html,x', undefined],
  ['x1:y', '/x1:y'],
  [':y', '/:y'],
  ['/a:b', '/a:b'],
  ['/a\u007fb', undefined],
])('the page of %j is %j', (text, page) => expect(pagePathOf(text)).toBe(page))

test('a message names people by their address, each once and few of them', () => {
  expect(mentionsIn('Hello @Ada@Example.com, and @ada@example.com; not grace@example.com')).toEqual(['ada@example.com'])
  expect(mentionsIn('@nobody @a@b')).toEqual([])
  expect(mentionsIn(Array.from({ length: 30 }, (_, index) => `@p${index}@example.com`).join(' '))).toHaveLength(10)
})

test('others see no address', () => expect(nameOfEmail('ada.l@example.com')).toBe('ada.l'))

test.each([
  [{}, true],
  [{ kind: 'viewer' }, false],
  [{ id: 'gl_2' }, false],
  [{ key: 'browser 2' }, false],
] as const)('of who wrote it, %o is the author: %s', (change, is) =>
  expect(isAuthor({ ...written, ...change }, written)).toBe(is),
)

test('without an author to ask about, only members settle and delete', () => {
  for (const deed of ['set-state', 'delete'] as const) {
    expect(mayDo(people.member, deed, { visible: 'viewers' })).toBe(true)
    expect(mayDo(people.author, deed, { visible: 'viewers' })).toBe(false)
  }
  expect(mayDo(people.member, 'edit', { visible: 'viewers' })).toBe(false)
})

test.each([
  ['@ada@example.com', ['ada@example.com']],
  ['(@ada@example.com)', ['ada@example.com']],
  ['See @ada@example.com.', ['ada@example.com']],
  ['@a.b+c@x-y.example: hello', ['a.b+c@x-y.example']],
  ['mail x@ada@example.com', []],
  ['mail .@ada@example.com', []],
  ['mail +@ada@example.com -@ada@example.com @@ada@example.com', []],
  ['@one@example.com,@two@example.com', ['one@example.com', 'two@example.com']],
  [`@${'a'.repeat(64)}@example.com`, [`${'a'.repeat(64)}@example.com`]],
  [`@${'a'.repeat(65)}@example.com`, []],
  ['@a@bc', ['a@bc']],
  [`@a@${'b'.repeat(300)}`, [`a@${'b'.repeat(251)}`]],
  ['@a(b@example.com', []],
  ['@a<b@example.com @a;b@example.com @a:b@example.com', []],
])('%j names %j', (body, named) => expect(mentionsIn(body)).toEqual(named))

test('names are as long as people sign, and end at the last @', () => {
  expect(nameOfEmail(`${'a'.repeat(81)}@example.com`)).toBe('a'.repeat(80))
  expect(nameOfEmail('"a@b"@example.com')).toBe('"a@b"')
})

test('what is promised: 10,000 characters, sixty messages of a guest in an hour, and as many changes', () => {
  expect(MAX_BODY_CHARS).toBe(10_000)
  for (const { windowMs } of Object.values(THREAD_ALLOWANCES)) expect(windowMs).toBe(3_600_000)
  for (const what of ['Messages', 'Changes'] as const)
    expect((['guest', 'link', 'member'] as const).map((who) => THREAD_ALLOWANCES[`${who}${what}`].limit)).toEqual([
      60, 600, 2000,
    ])
})
