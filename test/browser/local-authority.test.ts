/** The local authority's root, imported as the README says, is all that a browser needs. */
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchBrowser, trustAuthority } from '../support/browser.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let home: string
let stack: Stack
let url: string

beforeAll(async () => {
  home = await mkdtemp(path.join(os.tmpdir(), 'dropway-home-'))
  stack = await sharedStack()
  const { slug } = await stack.publish(await stack.createAccount(), '<title>Trusted</title><p>Hello')
  url = `https://${slug}.${stack.sitesDomain}:${stack.httpsPort}/`
})
afterAll(() => rm(home, { recursive: true, force: true }))

/** Title of the drop in a browser with this home, or why it does not show. */
async function visit(): Promise<string> {
  const browser = await launchBrowser({ home })
  try {
    const page = await browser.newPage()
    await page.goto(url)
    return await page.title()
  } catch (error) {
    return /ERR_\w+/.exec((error as Error).message)?.[0] ?? String(error)
  } finally {
    await browser.close()
  }
}

test('a browser refuses the page of a drop until the root is imported, and shows it then', async () => {
  expect(await visit()).toBe('ERR_CERT_AUTHORITY_INVALID')
  await trustAuthority(home, path.join(stack.dataDir, 'ca', 'ca.pem'))
  expect(await visit()).toBe('Trusted')
})
