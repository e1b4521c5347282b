import { expect, test } from 'vitest'
import type { Drop, Exchange, Snippets } from '../../../edge/context.ts'
import { createMachines } from '../../../edge/processes/machines/machines.ts'
import { createRepresentations } from '../../../edge/processes/representations.ts'
import { headerOf } from '../../../edge/send/representation.ts'
import { createBlobCache } from '../../../edge/store/blob-cache.ts'
import { indexFiles, indexSite } from '../../../edge/locate/site-index.ts'
import { createSites } from '../../../edge/store/sites.ts'
import type { ManifestFile } from '../../../shared/contracts/manifest.ts'
import { cardTarget } from '../../../shared/contracts/route-record.ts'
import { fileOf, routeOf } from '../../support/manifests.ts'

const page = Buffer.from('<p>page</p>')
const snippets: Snippets = {
  markup: 'html',
  key: 'badge',
  head: Buffer.alloc(0),
  body: Buffer.from('<b>badge</b>'),
  csp: { scriptSrc: [], connectSrc: [], imgSrc: [], styleSrc: [], frameSrc: [] },
  variesByLanguage: false,
}
const sized = (size: number) => ({ hash: 'b'.repeat(64), size })

async function encodingOf(file: Partial<ManifestFile>, injected: Snippets | undefined): Promise<string | undefined> {
  // A large page that stays as it is would be streamed; nothing is read of it before.
  const blobs = { read: async () => page, stream: () => expect.fail('streamed') }
  const cache = createBlobCache(10_000_000)
  const representations = createRepresentations({
    blobs,
    cache,
    snippets: { for: () => injected, framed: () => expect.fail('framed'), live: () => expect.fail('live') },
    machines: { markdown: () => expect.fail('nobody asked for Markdown') },
  })
  const drop = { route: {}, versionNumber: 1, isProtected: false, isPreview: false } as Drop
  const exchange = { header: (name: string) => (name === 'accept-encoding' ? 'gzip, br' : undefined) } as Exchange
  const asset = {
    kind: 'asset',
    path: 'index.html',
    file: { ...fileOf('index.html'), injection: { head: 0, body: page.length }, ...file },
    status: 200,
    custom: { id: '', list: [] },
  } as const
  return headerOf((await representations.of(drop, asset, exchange)).headers, 'content-encoding')
}

test.each<[string, Partial<ManifestFile>, string | undefined]>([
  ['small', { size: 50_000, encodings: { br: sized(10_000), gzip: sized(12_000) } }, 'br'],
  ['large, but small when compressed', { size: 9e6, encodings: { br: sized(9e5), gzip: sized(1e6) } }, 'br'],
  ['large, and only one form can be kept', { size: 9e6, encodings: { br: sized(3e6), gzip: sized(1e6) } }, 'gzip'],
  ['large whatever is done', { size: 9e6, encodings: { br: sized(3e6), gzip: sized(4e6) } }, undefined],
])('a page with snippets is compressed when the result can be kept: %s', async (_, file, encoding) => {
  expect(await encodingOf(file, snippets)).toBe(encoding)
  // Without snippets there is nothing to compress: what was made at publish is sent.
  expect(await encodingOf(file, undefined)).toBe('br')
})

test.each([
  ['as long as its record says', page.length, true],
  ['shorter', page.length + 1, false],
  ['longer', page.length - 1, false],
])('a card that is %s', async (_, size, isSent) => {
  const blobs = { read: async () => page, stream: () => expect.fail('streamed') }
  const sites = createSites(blobs, { indexFiles, indexSite })
  const machines = createMachines({ blobs, cache: createBlobCache(10_000_000), sites, publicPort: undefined })
  const card: [string, number] = ['c'.repeat(64), size]
  const about = { versionNumber: 1, isProtected: false, isPreview: false, isForMembers: false }
  const drop: Drop = { route: routeOf({ card }), ...about }
  const made = await machines.generated(drop, { target: cardTarget(card[0]) } as Exchange)
  const source = made?.source as { bytes(): Buffer | undefined; load(): Promise<Buffer> }
  const loaded = await source.load().catch(() => undefined)
  // What was read is in memory now.
  expect([loaded, source.bytes()]).toEqual(isSent ? [page, page] : [undefined, undefined])
  await machines.close()
})
