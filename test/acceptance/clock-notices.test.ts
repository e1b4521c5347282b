/** A clock with fewer than 14 days left is told wherever its owner looks: in `GET /me`, the command line and MCP answers. */
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openCli, type Cli } from '../support/cli.ts'
import { connectWithToken } from '../support/mcp-client.ts'
import { startStack, type Account, type OwnStack, type Published } from '../support/stack.ts'

let stack: OwnStack
let cli: Cli
const owners: { account: Account; drop: Published }[] = []

beforeAll(async () => {
  // Every clock of it is near its end.
  ;[stack, cli] = await Promise.all([
    startStack({ env: { FREE_IDLE_LIFETIME: '10d' }, database: 'shared', operator: true }),
    openCli(),
  ])
  for (const plan of ['free', 'plus'] as const) {
    const account = await stack.createAccount(plan)
    owners.push({ account, drop: await stack.publish(account, '<p>here') })
  }
})
afterAll(async () => {
  await cli?.remove()
  await stack?.stop()
})

const NOTICE = /expires on 20\d\d-\d\d-\d\d \d\d:\d\d UTC\. Sign in at https:\/\/\S+\/signin, or publish to it/

/** What the owner reads in each place: the free one of the clock, the one who pays nothing. */
async function everywhere({ account, drop }: { account: Account; drop: Published }): Promise<Record<string, string>> {
  const me = (await stack.fetch('/api/v1/me', { token: account.token })).json<{ expiring: { slug: string }[] }>()
  const env = {
    DROPWAY_URL: stack.baseUrl,
    DROPWAY_TOKEN: account.token,
    DROPWAY_CA_FILE: path.join(stack.dataDir, 'ca', 'ca.pem'),
  }
  const folder = path.join(cli.folder, account.plan)
  await mkdir(folder, { recursive: true })
  await writeFile(path.join(folder, 'index.html'), 'another one')
  const client = await connectWithToken(stack, account.token, 'legacy')
  const tool = async (name: string, args: Record<string, unknown>): Promise<string> => {
    const { structuredContent } = await client.callTool({ name, arguments: args })
    return ((structuredContent as { notices?: string[] }).notices ?? []).join('\n')
  }
  const said = {
    me: me.expiring.map(({ slug }) => slug).join(),
    whoami: (await cli.run(['whoami'], { env })).stderr,
    list: (await cli.run(['list'], { env })).stderr,
    service_list: await tool('service_list', {}),
    service_read: await tool('service_read', { id: drop.slug }),
    service_publish: await tool('service_publish', { content: '<p>third' }),
    deploy: (await cli.run(['deploy', folder], { env })).stderr,
  }
  await client.close()
  return said
}

test('free: in every place, with the drop, the date and what to do', async () => {
  const { me, ...sentences } = await everywhere(owners[0]!)
  const { slug } = owners[0]!.drop
  expect(me).toBe(slug)
  for (const [place, text] of Object.entries(sentences)) {
    expect([place, text]).toEqual([place, expect.stringMatching(NOTICE)])
    expect([place, text]).toEqual([place, expect.stringContaining(slug)])
  }
})

test('paid: nowhere', async () => {
  const said = await everywhere(owners[1]!)
  for (const [place, text] of Object.entries(said)) expect([place, /expires|signin/.test(text)]).toEqual([place, false])
  expect(said['me']).toBe('')
})
