/** `dropway pull-request`, as jobs of three forges run it: one comment, kept up to date, and a preview that goes. */
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { apiFor } from '../support/api.ts'
import { openCli, type Cli } from '../support/cli.ts'
import { startForge, type ForgeName, type ForgeStandIn } from '../support/forge-stand-in.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let cli: Cli
let account: Account
let forge: ForgeStandIn

beforeAll(async () => {
  stack = await sharedStack()
  cli = await openCli()
  account = await stack.createAccount('plus')
})
afterAll(() => cli?.remove())
afterEach(() => forge?.stop())

/** What a runner says of a pull request. */
async function jobOf(name: ForgeName, { action = 'opened', isFork = false } = {}): Promise<Record<string, string>> {
  if (name === 'gitlab')
    return {
      GITLAB_CI: 'true',
      CI_API_V4_URL: forge.api,
      CI_PROJECT_ID: isFork ? '8' : '7',
      CI_MERGE_REQUEST_PROJECT_ID: '7',
      CI_MERGE_REQUEST_SOURCE_PROJECT_ID: isFork ? '8' : '7',
      CI_MERGE_REQUEST_IID: '12',
      CI_COMMIT_SHA: '0123456789abcdef',
      ...(action === 'closed' ? { CI_ENVIRONMENT_ACTION: 'stop' } : {}),
      ...(isFork ? {} : { GITLAB_TOKEN: 'forge-token' }),
    }
  const file = path.join(cli.folder, `event-${name}.json`)
  const head = { sha: '0123456789abcdef', repo: { full_name: isFork ? 'stranger/site' : 'me/site' } }
  const event = { action, pull_request: { number: 12, head, base: { repo: { full_name: 'me/site' } } } }
  await writeFile(file, JSON.stringify(event))
  return {
    GITHUB_ACTIONS: 'true',
    GITHUB_API_URL: forge.api,
    GITHUB_EVENT_PATH: file,
    ...(name === 'forgejo'
      ? { FORGEJO_ACTIONS: 'true', FORGEJO_TOKEN: 'forge-token' }
      : { GITHUB_TOKEN: 'forge-token' }),
  }
}

const service = (): Record<string, string> => ({
  CI: 'true',
  DROPWAY_URL: stack.baseUrl,
  DROPWAY_TOKEN: account.token,
  DROPWAY_CA_FILE: path.join(stack.dataDir, 'ca', 'ca.pem'),
})

async function newSite(): Promise<{ id: string; slug: string; url: string }> {
  const site = (await apiFor(stack, account).create()).json()
  const dist = path.join(cli.folder, 'dist')
  await mkdir(dist, { recursive: true })
  await writeFile(path.join(dist, 'index.html'), '<title>x</title><a href="/nowhere">gone</a>first')
  return site
}

describe.each(['github', 'gitlab', 'forgejo'] as const)('%s', (name) => {
  test('publishes to pr-12, keeps one comment up to date, and removes the preview when it is closed', async () => {
    forge = await startForge(name)
    const site = await newSite()
    const run = async (job: Record<string, string>) => {
      const result = await cli.run(['pull-request', 'dist', '--slug', site.slug], { env: { ...service(), ...job } })
      expect(result.code, result.stderr).toBe(0)
      return result.lines.at(-1)!
    }
    const url = await run(await jobOf(name))
    expect(new URL(url).hostname).toBe(`pr-12--${new URL(site.url).hostname}`)
    expect((await stack.fetch(url)).text()).toContain('first')
    expect(forge.comments).toHaveLength(2)
    expect(forge.comments[1]?.body).toContain(url)
    expect(forge.comments[1]?.body).toContain('to look at')

    await writeFile(path.join(cli.folder, 'dist', 'index.html'), '<title>x</title>second')
    expect(await run(await jobOf(name, { action: 'synchronize' }))).toBe(url)
    expect((await stack.fetch(url)).text()).toContain('second')
    expect(forge.comments).toHaveLength(2)
    expect(forge.comments[1]?.body).not.toContain('to look at')

    await run(await jobOf(name, { action: 'closed' }))
    expect((await stack.fetch(url)).status).toBe(404)
    expect(forge.comments).toHaveLength(2)
    expect(forge.comments[1]?.body).toContain('removed')
    expect(forge.complaints).toEqual([])
  })

  test('a pull request from a fork has no secrets: nothing is published, and its check is green', async () => {
    forge = await startForge(name)
    forge.isReadOnly = true
    const site = await newSite()
    const { DROPWAY_TOKEN: _token, ...known } = service()
    const job = await jobOf(name, { isFork: true })
    const result = await cli.run(['pull-request', 'dist', '--slug', site.slug], { env: { ...known, ...job } })
    expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('fork')])
    expect(forge.comments).toHaveLength(1)
    const previews = await stack.fetch(`/api/v1/sites/${site.id}/previews`, { token: account.token })
    expect(previews.json()).toEqual([])
  })
})

test('a token that may only read costs the comment, not the preview; elsewhere there is nothing to do', async () => {
  forge = await startForge('github')
  forge.isReadOnly = true
  const site = await newSite()
  const env = { ...service(), ...(await jobOf('github')) }
  const result = await cli.run(['pull-request', 'dist', '--slug', site.slug], { env })
  expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('could not be written')])
  const elsewhere = await cli.run(['pull-request', 'dist', '--slug', site.slug], { env: service() })
  expect(elsewhere.code).toBe(2)
})
