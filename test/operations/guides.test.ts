/**
 * The guides tell the truth. Their samples are taken from the pages as readers see them and run from the first to the
 * last, in a shell that has the packed client and nothing else; where a page shows what comes out, that is compared.
 */
import { spawn } from 'node:child_process'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { parse as parseHtml } from 'parse5'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { approveLogin, makeOpener } from '../support/cli-sign-in.ts'
import { openCli, type Cli } from '../support/cli.ts'
import { newAttempt, obtainTokens, signedInPerson, webFetch, type Person } from '../support/oauth-client.ts'
import { startStack, type OwnStack } from '../support/stack.ts'

interface Block {
  readonly language: string
  readonly text: string
}

let stack: OwnStack
let cli: Cli
let person: Person
/** Where `npm install --global` puts programs. */
let prefix: string

beforeAll(async () => {
  // Fixed addresses in the samples need a service of their own.
  stack = await startStack({ database: 'shared', operator: true })
  cli = await openCli()
  person = await signedInPerson(stack, 'plus')
  prefix = await mkdtemp(path.join(os.tmpdir(), 'dropway-guides-'))
})
afterAll(async () => {
  await stack?.stop()
  await cli?.remove()
  await rm(prefix, { recursive: true, force: true })
})

test.each([
  'quick-start',
  'command-line',
  'continuous-integration',
  'custom-domains',
  'redirects-and-headers',
  'single-page-apps',
  'privacy',
])('the samples of %s do what the guide says', async (guide) => {
  const blocks = await blocksOf(guide)
  const folder = await mkdtemp(path.join(prefix, 'work-'))
  const outputs = await runBlocks(
    blocks.filter(({ language }) => language === 'sh').map(({ text }) => text),
    folder,
  )
  let ran = -1
  for (const { language, text } of blocks) {
    if (language === 'sh') ran++
    if (language === 'output') expect(outputs[ran], text).toMatch(asPattern(text))
  }
  expect(ran).toBeGreaterThanOrEqual(0)
})

test('the workflows for GitHub and GitLab publish', async () => {
  const [github, gitlab] = (await blocksOf('continuous-integration'))
    .filter(({ language }) => language === 'yaml')
    .map(({ text }) => parseYaml(text))
  const { env, steps } = github.jobs.publish
  const runs: { name: string; commands: string[]; variables: Record<string, string> }[] = [
    {
      name: 'github',
      commands: steps.flatMap((step: { run?: string }) => step.run ?? []),
      // No forge signs for these runs: they bring a token, as on any other runner.
      variables: { ...env, DROPWAY_TOKEN: person.account.token, GITHUB_SHA: 'c0ffee' },
    },
    {
      name: 'gitlab',
      commands: gitlab.publish.script,
      variables: { ...gitlab.publish.variables, DROPWAY_TOKEN: person.account.token, CI_COMMIT_SHORT_SHA: 'c0ffee1' },
    },
  ]
  for (const { name, commands, variables } of runs) {
    const folder = await mkdtemp(path.join(prefix, `${name}-`))
    await writeProject(folder, name)
    await runBlocks(commands, folder, { ...variables, CI: 'true' })
    expect((await stack.visit('my-project')).text(), name).toContain(`Built for ${name}`)
  }
})

test('every client of the MCP guide connects as its settings say', async () => {
  const blocks = await blocksOf('assistants')
  const configurations = blocks.filter(({ language }) => language === 'json').map(({ text }) => JSON.parse(text))
  expect(configurations).toHaveLength(4)
  for (const { mcpServers, servers } of configurations) {
    const server = (mcpServers ?? servers).dropway
    const client = new Client({ name: 'guide', version: '1' })
    if (server.command === undefined) await connectByAddress(client, server.url, server.headers)
    else await connectByProgram(client, server)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain('service_publish')
    await client.close()
  }
})

test('the commands of the MCP guide name the server, and a token shows its tools', async () => {
  const commands = (await blocksOf('assistants')).filter(({ language }) => language === 'sh').map(({ text }) => text)
  const folder = await mkdtemp(path.join(prefix, 'work-'))
  // Claude Code is not here: what it would be told is noted, and the address connects as it does there.
  const tools = path.join(folder, 'tools')
  await mkdir(tools)
  await writeFile(path.join(tools, 'claude'), `#!/bin/sh\nprintf '%s\\n' "$@" > ${folder}/told\n`)
  await chmod(path.join(tools, 'claude'), 0o755)
  const outputs = await runBlocks([...commands, `cat ${folder}/told`], folder, {}, tools)
  expect(outputs.at(-1)!.trim().split('\n')).toEqual([
    'mcp',
    'add',
    '--transport',
    'http',
    'dropway',
    `${stack.baseUrl}/mcp`,
  ])
  expect(outputs.at(-2)).toContain('service_publish')
})

test('guides link to pages that exist, have a description of their own, and name each fact', async () => {
  const index = (await stack.fetch('/docs')).text()
  const guides = [...index.matchAll(/href="(\/docs\/[^"]+)"/g)].map(([, address]) => address!)
  expect(guides.length).toBeGreaterThanOrEqual(9)
  const descriptions = new Set<string>()
  const links = new Set<string>()
  for (const guide of guides) {
    const page = (await stack.fetch(guide)).text()
    expect(page, guide).not.toMatch(/\{\{[a-z_]+\}\}/)
    descriptions.add(/<meta name="description" content="([^"]*)">/.exec(page)![1]!)
    for (const [, link] of page.matchAll(/href="(\/[^"#]*)(?:#[^"]*)?"/g)) links.add(link!)
  }
  expect(descriptions.size).toBe(guides.length)
  for (const link of links) expect([200, 303], link).toContain((await stack.fetch(link)).status)
})

/** What stands in the code blocks of a guide, as a reader copies it. */
async function blocksOf(guide: string): Promise<Block[]> {
  const answer = await stack.fetch(`/docs/${guide}`)
  expect(answer.status).toBe(200)
  const blocks: Block[] = []
  walk(parseHtml(answer.text()) as unknown as Node, (node) => {
    const language = /language-(\w+)/.exec(node.attrs?.find(({ name }) => name === 'class')?.value ?? '')?.[1]
    if (node.nodeName === 'code' && language !== undefined) blocks.push({ language, text: textOf(node) })
  })
  return blocks
}

interface Node {
  readonly nodeName: string
  readonly value?: string
  readonly attrs?: readonly { readonly name: string; readonly value: string }[]
  readonly childNodes?: readonly Node[]
}

function walk(node: Node, visit: (node: Node) => void): void {
  visit(node)
  for (const child of node.childNodes ?? []) walk(child, visit)
}

function textOf(node: Node): string {
  return node.nodeName === '#text' ? (node.value ?? '') : (node.childNodes ?? []).map(textOf).join('')
}

/** `…` stands for anything. */
function asPattern(text: string): RegExp {
  const parts = text.trim().split('…')
  return new RegExp(`^\\s*${parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('[^]*')}\\s*$`)
}

const MARK = '--- block ---'

/** Runs all in one shell, which ends at the first that fails; gives what each wrote to stdout. */
async function runBlocks(
  blocks: readonly string[],
  folder: string,
  variables: Readonly<Record<string, string>> = {},
  tools = folder,
): Promise<string[]> {
  const home = path.join(folder, '.home')
  await mkdir(home, { recursive: true })
  const opened = path.join(folder, '.opened')
  // A reader puts in their own token, and gets the client from the registry.
  const commands = blocks.map((text) =>
    text
      .replaceAll('dw_…', person.account.token)
      .replaceAll('dropway@latest', `--package=${cli.archive} dropway`)
      .replaceAll('--global dropway', `--global ${cli.archive}`),
  )
  const script = commands.map((text) => `echo '${MARK}'\n${text}`).join('\n')
  const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: folder,
    env: {
      PATH: [tools, path.join(folder, '.npm', 'bin'), path.dirname(cli.bin), cli.path].join(path.delimiter),
      HOME: home,
      TERM: 'dumb',
      npm_config_prefix: path.join(folder, '.npm'),
      npm_config_offline: 'true',
      npm_config_cache: path.join(prefix, 'npm-cache'),
      BROWSER: await makeOpener(cli),
      OPENED: opened,
      DROPWAY_CA_FILE: path.join(stack.dataDir, 'ca', 'ca.pem'),
      CURL_CA_BUNDLE: path.join(stack.dataDir, 'ca', 'ca.pem'),
      ...variables,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const ended = new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? -1)))
  if (script.includes('dropway login')) await Promise.race([approveLogin(person, opened), ended])
  const code = await ended
  expect(code, `${stdout}\n${stderr}`).toBe(0)
  return stdout.split(`${MARK}\n`).slice(1)
}

/** A project whose build writes `dist`. */
async function writeProject(folder: string, name: string): Promise<void> {
  const build = `mkdir -p dist && echo '<h1>Built for ${name}</h1>' > dist/index.html`
  const lock = { name: 'project', lockfileVersion: 3, requires: true, packages: { '': { name: 'project' } } }
  await writeFile(path.join(folder, 'package.json'), JSON.stringify({ name: 'project', scripts: { build } }))
  await writeFile(path.join(folder, 'package-lock.json'), JSON.stringify(lock))
}

/** With the token of its settings, else with one that the person allowed it. */
async function connectByAddress(client: Client, url: string, headers: Record<string, string> = {}): Promise<void> {
  const bearer = headers['Authorization']?.replace('dw_…', person.account.token)
  const authorization =
    bearer ?? `Bearer ${(await obtainTokens(stack, person, await newAttempt(stack, { resource: url }))).access_token}`
  const requestInit = { headers: { authorization } }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch: webFetch(stack), requestInit }))
}

async function connectByProgram(
  client: Client,
  { command, args, env }: { command: string; args: string[]; env: Record<string, string> },
): Promise<void> {
  expect(command).toBe('dropway')
  const variables = {
    ...env,
    DROPWAY_TOKEN: person.account.token,
    PATH: cli.path,
    HOME: prefix,
    DROPWAY_CA_FILE: path.join(stack.dataDir, 'ca', 'ca.pem'),
  }
  await client.connect(new StdioClientTransport({ command: cli.bin, args, env: variables, cwd: prefix }))
}
