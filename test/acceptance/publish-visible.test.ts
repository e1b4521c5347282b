import { expect, test } from 'vitest'
import { IS_DEEP } from '../support/depth.ts'
import { sharedStack } from '../support/stack.ts'

const SITES = 10
const VERSIONS = IS_DEEP ? 50 : 8

test(`a 201 means that every worker serves it: ${SITES * VERSIONS} publishes, each visited at once`, async () => {
  const stack = await sharedStack()
  const account = await stack.createAccount('business')
  const stale: string[] = []

  async function publishAndVisit(): Promise<void> {
    const site = await stack.publish(account, '<p>version 0</p>')
    for (let version = 1; version <= VERSIONS; version++) {
      await stack.publish(account, `<p>version ${version}</p>`, site)
      // Two connections, over either protocol: the kernel spreads them over the workers.
      const answers = await Promise.all([stack.visit(site.slug), stack.visit(site.slug, '/', { h2: false })])
      for (const answer of answers) {
        if (!answer.text().includes(`<p>version ${version}</p>`))
          stale.push(`${site.slug} ${version}: ${answer.text()}`)
      }
    }
  }
  await Promise.all(Array.from({ length: SITES }, publishAndVisit))
  expect(stale).toEqual([])
})
