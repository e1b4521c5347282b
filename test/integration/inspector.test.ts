/** A page that cannot be inspected in time is held back, not published. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createAnonymous } from '../../control/drops/anonymous/anonymous.ts'
import { createInspector, type Inspector } from '../../control/drops/trust/inspector.ts'
import { silentLog } from '../../shared/running/log.ts'
import { startPublishing, type PublishingFixture } from '../support/publishing.ts'

let inspector: Inspector
let store: PublishingFixture
let blobStore: { readonly url: string }
beforeEach(async () => {
  store = await startPublishing()
  blobStore = { url: `file:${store.storeDir}` }
})
afterEach(async () => {
  await inspector.close()
  await store.close()
})

const PAGE = Buffer.from('<h1>harmless</h1>')

test('a page that is inspected in time is judged', async () => {
  inspector = createInspector({ blobStore, log: silentLog, atHand: () => undefined })
  const { hash } = await store.blobs.put(PAGE)
  expect(await inspector.inspect(hash, '192.0.2.1')).toMatchObject({ verdict: 'ok' })
})

test('a short page whose bytes are at hand is judged by them, without a thread', async () => {
  const pages: Record<string, Buffer> = {
    harmless: PAGE,
    phishing: Buffer.from(
      '<title>PayPal</title><form action="https://elsewhere.example/"><input type=password>Verify your account',
    ),
  }
  // A thread that had to begin would be too late.
  inspector = createInspector({ blobStore, log: silentLog, atHand: (hash) => pages[hash], timeoutMs: 1 })
  expect(await inspector.inspect('harmless', '192.0.2.1')).toMatchObject({ verdict: 'ok' })
  expect(await inspector.inspect('phishing', '192.0.2.1')).toMatchObject({ verdict: 'reject' })
})

test('one that is not is refused before anything is written, and what was uploaded is taken back', async () => {
  // Less than a thread needs to begin.
  inspector = createInspector({ blobStore, log: silentLog, atHand: () => undefined, timeoutMs: 1 })
  const deeds: string[] = []
  const anonymous = createAnonymous({
    sql: { begin: () => deeds.push('a transaction') },
    inspector,
    config: { allowsAnonymous: true },
    publishing: {
      receive: () => ({
        addSingle: async () => {},
        finish: async () => ({ landingHash: 'h' }),
        abort: async () => void deeds.push('taken back'),
      }),
    },
  } as unknown as Parameters<typeof createAnonymous>[0])
  const publisher = { ip: '192.0.2.1', anonymousId: 'a', signals: {} } as Parameters<typeof anonymous.publishText>[0]
  await expect(anonymous.publishText(publisher, { filename: 'a.html', content: 'x' })).rejects.toMatchObject({
    status: 400,
    code: 'content_rejected',
    message: expect.stringContaining('could not be checked in time, so it was not published'),
  })
  expect(deeds).toEqual(['taken back'])
})
