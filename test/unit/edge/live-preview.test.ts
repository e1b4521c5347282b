/** The script of a page of a named preview: when it reloads. */
import { EventEmitter } from 'node:events'
import { runInNewContext } from 'node:vm'
import { beforeEach, expect, test } from 'vitest'
import { createSnippets } from '../../../edge/rewrite/snippets.ts'

const source = createSnippets({ baseUrl: 'https://dropway.example' })
let stored: Map<string, string>
let reloads: number

beforeEach(() => {
  stored = new Map()
  reloads = 0
})

const storage = {
  getItem: (name: string) => stored.get(name) ?? null,
  setItem: (name: string, value: string) => void stored.set(name, value),
}

/** Opens a page of that version in the same tab; `say` is what its stream says. */
function open(shown: number, tab: object = { sessionStorage: storage }, href = 'https://draft--a.test/') {
  const stream = new EventEmitter()
  const script = /^<script>(.*)<\/script>$/s.exec(source.live('html', shown).head.toString())![1]!
  const location = { href, reload: () => void reloads++ }
  // A getter of the tab may throw, as that of a storage does.
  const window = Object.defineProperties({ location }, Object.getOwnPropertyDescriptors(tab))
  const EventSource = function (): object {
    return { addEventListener: (name: string, listener: (event: unknown) => void) => stream.on(name, listener) }
  }
  runInNewContext(script, { window, document: {}, EventSource })
  return { say: (version: number) => void stream.emit('message', { lastEventId: String(version) }) }
}

test.each([
  ['its own version', [7, 7], 0],
  ['a newer one', [7, 8], 1],
  ['one that is older, to which the preview went back', [7, 6], 1],
  ['a newer one at first: it was published while the page came', [8], 1],
  ['an older one at first, by an edge that is behind', [6, 7], 0],
  ['an older one at first, then one that is newer than the page', [6, 8], 1],
])('a page of version 7 that hears of %s', (_what, versions, expected) => {
  const page = open(7)
  for (const version of versions) page.say(version)
  expect(reloads).toBe(expected)
})

test('a page that comes back as old as it was is not reloaded for the same version again', () => {
  open(7).say(8)
  const again = open(7)
  again.say(8)
  expect(reloads).toBe(1)
  again.say(9)
  expect(reloads).toBe(2)
  open(7, undefined, 'https://draft--a.test/other').say(9)
  expect(reloads).toBe(3)
})

test('without storage a page waits for the next version', () => {
  const blocked = {
    get sessionStorage(): never {
      throw new Error('SecurityError')
    },
  }
  const page = open(7, blocked)
  page.say(8)
  expect(reloads).toBe(0)
  page.say(9)
  expect(reloads).toBe(1)
})
