import { expect, test } from 'vitest'
import type { Drop, Exchange, Snippets } from '../../../edge/context.ts'
import { createRepresentations } from '../../../edge/processes/representations.ts'
import { headerOf } from '../../../edge/send/representation.ts'
import { createBlobCache } from '../../../edge/store/blob-cache.ts'
import type { ManifestFile } from '../../../shared/contracts/manifest.ts'
import { fileOf } from '../../support/manifests.ts'

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
