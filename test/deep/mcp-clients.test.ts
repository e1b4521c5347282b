/**
 * First contact of ten clients that nobody here wrote, over both generations of the protocol: each knows only an address,
 * publishes a page, and updates it with a token once a person has claimed it.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CLIENTS, contact, installClients } from '../support/mcp-first-contact.ts'
import { signedInPerson, type Person } from '../support/oauth-client.ts'
import { startStack, type OwnStack } from '../support/stack.ts'

let stack: OwnStack
let person: Person
let folder: string
let caFile: string

beforeAll(async () => {
  await installClients()
  stack = await startStack({ env: { ANONYMOUS_PER_HOUR: '1000', MCP_ANONYMOUS_PER_HOUR: '1000' } })
  person = await signedInPerson(stack)
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-mcp-clients-ca-'))
  caFile = path.join(folder, 'ca.pem')
  await writeFile(caFile, stack.ca)
}, 900_000)
afterAll(async () => {
  await Promise.all([stack?.stop(), folder && rm(folder, { recursive: true, force: true })])
})

const found = (said: string, field: string): string => new RegExp(`"${field}":"([^"]+)"`).exec(said)?.[1] ?? ''

test('there are ten of them', () => {
  expect(new Set(Object.keys(CLIENTS).map((client) => client.split(',')[0])).size).toBe(10)
})

test.each(Object.keys(CLIENTS))(
  '%s publishes, and updates what a person has claimed',
  async (client) => {
    const page = { content: `<h1>First from ${client}</h1>` }
    const first = await contact(
      client,
      { url: `${stack.baseUrl}/mcp/anonymous`, name: 'service_publish_page', args: page },
      caFile,
    )
    expect(first.tools).toEqual(['service_publish_page'])
    const url = found(first.said, 'url')
    expect((await stack.fetch(url)).text()).toContain(page.content)

    const { search } = new URL(found(first.said, 'claim_url'))
    expect((await person.browser.send(`/claim${search}`, {}, '/claim')).status).toBe(303)

    const slug = new URL(url).hostname.split('.')[0] ?? ''
    const update = { slug, content: `<h1>Updated by ${client}</h1>` }
    const call = { url: `${stack.baseUrl}/mcp`, token: person.account.token, name: 'service_publish', args: update }
    const second = await contact(client, call, caFile)
    expect(second.tools).toContain('service_edit_files')
    expect((await stack.fetch(url)).text()).toContain(update.content)
  },
  300_000,
)
