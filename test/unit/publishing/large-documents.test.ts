/** What is too large to be worked on is told by its size, and not read: it would take the memory of all. */
import { expect, test } from 'vitest'
import { findAnchor } from '../../../control/drops/publishing/comparison/place-threads.ts'
import { prepareVersion, type PrepareDependencies } from '../../../control/drops/publishing/intake/prepare.ts'

const unread = { read: (hash: string) => Promise.reject(new Error(`${hash} was read`)) }
const source = (size: number) => ({ path: 'index.md', hash: 'a'.repeat(64), size })

const prepare = (upload: object) =>
  prepareVersion(
    { blobs: unread } as unknown as PrepareDependencies,
    { files: [], unserved: [], isArchive: false, secrets: 'withhold', announced: new Set(), ...upload } as never,
    undefined,
  )

test.each([
  ['the landing page of a folder', (size: number) => ({ files: [source(size)] })],
  ['a document', (size: number) => ({ single: { kind: 'markdown', filename: 'notes.md', blob: source(size) } })],
])('Markdown with more bytes than any text that is rendered: %s', async (_what, upload) => {
  await expect(prepare(upload(9_000_001))).rejects.toThrow('The Markdown is too large to render')
  await expect(prepare(upload(9_000_000))).rejects.toThrow('was read')
})

test('a page of megabytes has no place for a comment', async () => {
  const anchor = { exact: 'word', prefix: '', suffix: '' }
  const page = (size: number) => ({ path: 'index.html', hash: 'page', size })
  expect(await findAnchor(unread, anchor, page(4_000_001))).toBeNull()
  await expect(findAnchor(unread, anchor, page(4_000_000))).rejects.toThrow('was read')
})
