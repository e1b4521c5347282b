/** What the review page shows of a thread: other words beside those that were meant, and nobody's markup. */
import { expect, test } from 'vitest'
import { threadList, type ListedFor } from '../../../control/doors/dashboard/sharing/thread-view.ts'
import type { ApiThread } from '../../../control/drops/threads/schemas.ts'

const about: ListedFor = {
  viewer: { csrf: 'token' } as unknown as ListedFor['viewer'],
  base: '/review/tickets',
  query: '',
  mayWrite: false,
  isMember: false,
  maySettle: () => false,
  chosen: undefined,
  editing: undefined,
  isFiltered: false,
  now: Date.UTC(2026, 0, 2),
}
const quote = (exact: string) => ({ exact, prefix: '', suffix: '' })
const thread = {
  id: 'th_1',
  page: '/',
  state: 'open',
  placement: 'same',
  label: null,
  anchor: quote('from 10 euros a person'),
  found: null,
  messages: [
    {
      id: 'tm_1',
      body: 'Old.',
      author: { kind: 'guest', name: 'Ada' },
      at: '2026-01-01T00:00:00.000Z',
      edited_at: null,
      images: [],
    },
  ],
} as unknown as ApiThread
const shown = (change: object): string => threadList([{ ...thread, ...change } as ApiThread], about).text
const quoted = (change: object): string =>
  /<blockquote class="quote">(.*?)<\/blockquote>/s.exec(shown(change))![1]!.trim()

test('where other words stand now, the difference is shown in words', () => {
  const found = quote('from 12 euros a family')
  expect(quoted({ placement: 'changed', found })).toBe(
    'from <del>10</del> <ins>12</ins> euros a <del>person</del> <ins>family</ins>',
  )
  expect(shown({ placement: 'changed', found })).toContain('Changed here')
  expect(quoted({ placement: 'moved', found })).toBe('from 10 euros a person')
  expect(shown({ placement: 'moved' })).toContain('Moved with its text')
  expect(shown({ placement: 'gone' })).toContain('No longer on the page')
})

test('long passages are not compared here, and are shown in part', () => {
  const words = quoted({ placement: 'changed', anchor: quote('a '.repeat(300)), found: quote('b '.repeat(300)) })
  expect(words).toBe(`<del>${'a '.repeat(140)}…</del> <ins>${'b '.repeat(140)}…</ins>`)
})

test.each([
  ['<img src=x onerror=alert(1)>', '&lt;img src=x onerror=alert(1)&gt;'],
  ['**bold** and `code`', '<strong>bold</strong>'],
  ['[here](javascript:alert(1))', undefined],
])('a comment is Markdown without HTML: %s', (body, expected) => {
  const [message] = thread.messages
  const text = shown({ messages: [{ ...message, body }] })
  expect(text).not.toMatch(/<img|<script|href="javascript/i)
  if (expected !== undefined) expect(text).toContain(expected)
})

test('names, quotes and pages of strangers are text', () => {
  const evil = '"><script>alert(1)</script>'
  const [message] = thread.messages
  const text = shown({
    page: evil,
    anchor: { ...quote(''), element: evil, src: `/${evil}` },
    found: quote(evil),
    placement: 'changed',
    messages: [{ ...message, author: { kind: 'guest', name: evil } }],
  })
  expect(text).not.toContain('<script>')
  expect(text).toContain('&lt;script&gt;')
})
