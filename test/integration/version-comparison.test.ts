/** Texts of two versions are compared in worker threads, within a budget; a page says where that was not enough. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { siteChangesPage } from '../../control/doors/dashboard/drops/versions-view.ts'
import { startPublishing, type PublishingFixture } from '../support/publishing.ts'

let fixture: PublishingFixture
beforeAll(async () => void (fixture = await startPublishing()))
afterAll(() => fixture.close())

const store = async (text: string): Promise<string> => (await fixture.blobs.put(Buffer.from(text))).hash
const hostile = (version: number): string =>
  `o${version}\n${'a\n'.repeat(98_000)}${Array.from({ length: 402 }, (_, index) => `${version} ${index}\n`).join('')}`

test('the page of a version shows what changed, and names the file that changed too much', async () => {
  const pairs = [
    { path: 'a.txt', before: await store('one\ntwo\n'), after: await store('one\n<three>\n') },
    { path: 'big.txt', before: await store(hostile(0)), after: await store(hostile(1)) },
  ]
  const texts = await fixture.publishing.compareTexts('org_1', pairs)
  expect(texts.map(({ path, shown }) => [path, shown?.lines.map(({ text }) => text)])).toEqual([
    ['a.txt', ['one', 'two', '<three>']],
    ['big.txt', undefined],
  ])
  type View = Parameters<typeof siteChangesPage>[1]
  const changes = { added: [], changed: ['a.txt', 'big.txt'], removed: [] }
  const page = siteChangesPage(
    { signedIn: undefined, csrf: '', cookies: [] },
    {
      site: { id: 'site_1', slug: 'a', title: '', url: 'https://a.example', state: 'live' } as unknown as View['site'],
      version: { version_number: 2, version_id: 'v_2', live: true, preview_url: null } as unknown as View['version'],
      comparison: { with: 1, changes, texts },
    },
  )
  const shown = String((page.body as { text?: string }).text ?? page.body)
  expect(shown).toContain('&lt;three&gt;')
  expect(shown).toMatch(/<code>big\.txt<\/code> has changed too much to be compared line by line/)
})
