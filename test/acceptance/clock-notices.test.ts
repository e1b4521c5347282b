/**
 * A clock with fewer than 14 days left is told wherever its owner looks: in `GET /me`, the command line and MCP answers.
 * The same stack has another setting that needs one of its own: nothing is kept of former versions.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiFor, bundleForm } from '../support/api.ts'
import { openCli, type Cli } from '../support/cli.ts'
import { connectWithToken } from '../support/mcp-client.ts'
import { startStack, type Account, type OwnStack, type Published } from '../support/stack.ts'

let stack: OwnStack
let cli: Cli
const owners: { account: Account; drop: Published }[] = []

beforeAll(async () => {
  // Every clock of it is near its end.
  ;[stack, cli] = await Promise.all([
    startStack({ env: { FREE_IDLE_LIFETIME: '10d', KEEP_OLD_FILES: '0' }, database: 'shared', operator: true }),
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

test('KEEP_OLD_FILES=0: a former version’s files go with it, at drops that do not ask for their own days', async () => {
  const account = await stack.createAccount('business')
  const api = apiFor(stack, account)
  const leftOf = async (settings: object): Promise<[number, number]> => {
    const { id, slug } = (await api.create()).json<{ id: string; slug: string }>()
    const own = { method: 'PATCH', token: account.token, json: settings }
    expect((await stack.fetch(`/api/v1/sites/${id}`, own)).status).toBe(200)
    const publish = async (name: string): Promise<number> => {
      const body = bundleForm({ 'index.html': `<script src="/${name}"></script>`, [name]: 'code' })
      const answer = await stack.fetch(`/api/v1/sites/${id}/upload-bundle`, { token: account.token, body })
      expect(answer.status, answer.text()).toBe(201)
      return answer.json<{ report: { kept: { files: number } } }>().report.kept.files
    }
    await publish('app-a1b2c3d4.js')
    const files = await publish('app-e5f6a7b8.js')
    return [files, (await stack.visit(slug, '/app-a1b2c3d4.js')).status]
  }
  expect(await leftOf({ keep_old_files_days: null })).toEqual([0, 404])
  expect(await leftOf({ keep_old_files_days: 7 })).toEqual([1, 200])
})
