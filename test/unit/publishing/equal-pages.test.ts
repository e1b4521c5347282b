/** Pages with the same bytes in different folders: read once for what they are, and in each place for their links. */
import { expect, test } from 'vitest'
import { planReading } from '../../../control/drops/publishing/intake/prepare.ts'
import { ByContent } from '../../../control/drops/publishing/manifest/by-content.ts'

const file = (path: string, size = 1000) => ({ path, hash: 'a'.repeat(64), size })
const plan = (...files: ReturnType<typeof file>[]) => {
  const { requests, copies } = planReading(files, new ByContent())
  return { read: requests.map(({ path }) => path), copies: copies.requests, unread: copies.unread }
}
const none = { copies: [], unread: [] }

test('the landing page is read as itself, and a copy in another folder again, without variants', () => {
  const copy = { path: 'old/index.html', hash: 'a'.repeat(64), size: 1000 }
  const planned = { read: ['index.html'], copies: [copy], unread: [] }
  expect(plan(file('index.html'), file('old/index.html'))).toEqual(planned)
  expect(plan(file('old/index.html'), file('index.html'))).toEqual(planned)
  expect(plan(file('a/x.css'), file('b/x.css'))).toMatchObject({ read: ['b/x.css'], copies: [{ path: 'a/x.css' }] })
})

test('one in the same folder, or one without links, is read once', () => {
  expect(plan(file('index.html'), file('home.html'))).toEqual({ read: ['index.html'], ...none })
  expect(plan(file('a.txt'), file('old/a.txt'))).toEqual({ read: ['old/a.txt'], ...none })
  expect(plan(file('a.js'), file('old/a.js'))).toEqual({ read: ['old/a.js'], ...none })
})

test('copies are read as far as there is room', () => {
  const { copies, unread } = plan(
    file('index.html', 900_000),
    ...['a', 'b', 'c'].map((folder) => file(`${folder}/index.html`, 900_000)),
  )
  expect([copies.map(({ path }) => path), unread]).toEqual([['a/index.html', 'b/index.html'], ['c/index.html']])
})
