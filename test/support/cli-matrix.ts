/**
 * Every command of the client, with every way to be signed in (a token, a browser, a short code), wherever it may run
 * (a real pseudo-terminal, a pipe, CI).
 */
import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect } from 'vitest'
import { loginByBrowser, loginByCode, type Run } from './cli-sign-in.ts'
import type { Cli, CliResult, RunOptions } from './cli.ts'
import { signedInPerson, type Person } from './oauth-client.ts'
import type { Stack } from './stack.ts'

export const SIGN_INS = ['token', 'login', 'device'] as const
export const PLACES = ['terminal', 'pipe', 'ci'] as const
export type SignIn = (typeof SIGN_INS)[number]
export type Place = (typeof PLACES)[number]

/** One machine of one user: its own home, account and folder. */
interface Machine {
  readonly person: Person
  readonly folder: string
  /** Runs in the folder, as the place has it. */
  readonly run: Run
}

async function newMachine(cli: Cli, stack: Stack, signIn: SignIn, place: Place): Promise<Machine> {
  const person = await signedInPerson(stack)
  const folder = path.join(cli.folder, `${signIn}-${place}`)
  await mkdir(path.join(folder, 'home'), { recursive: true })
  const base = {
    HOME: path.join(folder, 'home'),
    ...(place === 'ci' ? { CI: 'true' } : {}),
    ...(signIn === 'token'
      ? { DROPWAY_TOKEN: person.account.token, DROPWAY_URL: stack.baseUrl, DROPWAY_CA_FILE: caFile(cli) }
      : {}),
  }
  const start = place === 'terminal' ? cli.runInTerminal : cli.run
  const run: Run = (args, options: RunOptions = {}) =>
    start(args, { cwd: folder, ...options, env: { ...base, ...options.env } })
  return { person, folder, run }
}

const caFile = (cli: Cli): string => path.join(cli.folder, 'ca.pem')

/** The address is given once; afterwards nothing but the home folder tells where the service is. */
function signInAs(cli: Cli, stack: Stack, signIn: SignIn, { person, run }: Machine): Promise<CliResult> | undefined {
  const env = { DROPWAY_CA_FILE: caFile(cli) }
  switch (signIn) {
    case 'token':
      return undefined
    case 'login':
      return loginByBrowser(cli, run, person, env, [stack.baseUrl])
    case 'device':
      return loginByCode(run, person, env, [stack.baseUrl])
    default:
      return signIn satisfies never
  }
}

async function writeSite(folder: string, text: string): Promise<void> {
  await mkdir(path.join(folder, 'dist', 'css'), { recursive: true })
  await writeFile(path.join(folder, 'dist', 'index.html'), `<h1>${text}</h1>`)
  await writeFile(path.join(folder, 'dist', 'css', 'a.css'), `/* ${text} */`)
  // Large enough to be sent alone.
  await writeFile(path.join(folder, 'dist', 'large.bin'), randomBytes(300_000))
}

/** How an MCP client begins. */
const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
})

/** The user's way from signing in to signing out, past every command. */
export async function useEveryCommand(cli: Cli, stack: Stack, signIn: SignIn, place: Place): Promise<void> {
  await writeFile(caFile(cli), stack.ca)
  const machine = await newMachine(cli, stack, signIn, place)
  const { run, folder, person } = machine
  const done = async (line: string, options: RunOptions = {}): Promise<CliResult> => {
    const result = await run(line.split(' '), options)
    expect(result.code, `dropway ${line}\n${result.stdout}\n${result.stderr}`).toBe(0)
    // Only a person at a terminal sees lines that are drawn over, and a QR code.
    // oxlint-disable-next-line no-control-regex -- that is what must not be there
    if (place !== 'terminal') expect(result.stdout + result.stderr).not.toMatch(/\u001b|[▀▄]/)
    return result
  }
  const data = async (line: string, options?: RunOptions) => (await done(`${line} --json`, options)).json()

  const signedIn = await signInAs(cli, stack, signIn, machine)
  if (signedIn) {
    expect(signedIn.code, signedIn.stdout + signedIn.stderr).toBe(0)
    expect(signedIn.stdout + signedIn.stderr).toContain(`Signed in as ${person.account.email}`)
    expect(signedIn.stdout + signedIn.stderr).toContain(`From now on commands talk to ${stack.baseUrl}`)
  }
  expect((await done('whoami')).stdout).toContain(person.account.email)

  const slug = `m-${signIn}-${place}-${randomBytes(3).toString('hex')}`
  await writeSite(folder, `${slug} one`)
  expect((await done(`init ${slug}`)).lines.at(-1)).toContain(slug)
  expect((await data('deploy dist --dry-run')).added).toHaveLength(3)
  const first = await done('deploy --message first')
  expect(first.lines.at(-1)).toBe(`https://${slug}.localhost:${stack.httpsPort}`)
  expect((await stack.visit(slug)).text()).toContain('one')
  expect((await stack.visit(slug, '/large.bin')).body).toHaveLength(300_000)
  expect((await data('deploy')).unchanged).toBe(true)
  expect((await data('list')).map((site: { slug: string }) => site.slug)).toContain(slug)
  expect((await data(`list ${slug}`)).map((site: { slug: string }) => site.slug)).toEqual([slug])
  expect((await done('open', { env: { BROWSER: 'true' } })).lines.at(-1)).toContain(slug)

  await writeFile(path.join(folder, 'dist', 'index.html'), '<h1>two</h1>')
  expect((await data('diff')).changed).toEqual(['index.html'])
  expect((await data('deploy dist')).version.version_number).toBe(2)
  expect((await done('versions')).lines).toHaveLength(2)
  await done('rollback')
  expect((await done(`keep ${slug}`)).stdout).toMatch(/stays/)
  expect((await stack.visit(slug)).text()).toContain('one')

  expect(await data('settings --name Renamed --spa')).toMatchObject({ name: 'Renamed', spa_fallback: true })
  const typed = place === 'terminal' ? 'open sesame\r' : 'open sesame\n'
  expect((await done('password set', { input: typed })).stdout).toContain('asks for the password')
  expect((await stack.visit(slug)).status).toBe(401)
  expect((await data('password clear --yes')).has_password).toBe(false)
  await done(`share viewer-${slug}@example.com --no-mail`)
  expect((await stack.visit(slug)).status).toBe(401)
  expect((await done('viewers')).stdout).toContain(`viewer-${slug}@example.com`)
  await done(`unshare viewer-${slug}@example.com --yes`)
  expect((await done('viewers')).stdout).not.toContain(`viewer-${slug}@example.com`)
  await done('share --public --yes')
  expect(await data('shared')).toEqual([])
  await writeFile(path.join(folder, 'dist', 'index.html'), '<h1>proposed</h1>')
  await done('deploy dist --preview proposal')
  expect((await done('previews')).stdout).toContain('proposal')
  await done('promote proposal')
  expect((await stack.visit(slug)).text()).toContain('proposed')
  await done('previews remove proposal')
  const api = `/api/v1/sites/${(await data(`list ${slug}`))[0].id}/threads`
  const said = await stack.fetch(api, { token: person.account.token, json: { page: '/', body: 'Too\u001b[31m red' } })
  const thread = said.json<{ id: string }>().id
  expect((await done(`threads ${slug}`)).stdout).toContain(thread)
  expect((await done('threads')).stdout).not.toContain('\u001b[31m')
  expect(await data(`resolve ${thread}`)).toMatchObject([{ id: thread, state: 'resolved' }])
  expect(await data('threads')).toEqual([])
  await done('rollback')
  const domain = `www.${randomBytes(6).toString('hex')}.example`
  await done(`domains add ${domain}`)
  expect((await data('domains list')).map((one: { domain: string }) => one.domain)).toContain(domain)
  await done(`domains remove ${domain} --yes`)
  expect(await data('publishers add octo/site --branch main --pull-requests')).toMatchObject({ pull_requests: true })
  expect((await done('publishers list')).stdout).toContain('octo/site')
  await done('publishers remove octo/site --yes')
  expect(await data('publishers list')).toEqual([])
  expect(await data('connect cursor --yes')).toMatchObject({ address: `${stack.baseUrl}/mcp`, written: true })
  expect(await data('connect cursor --yes')).toMatchObject({ written: false })
  expect(await data('connect gemini --print')).toMatchObject({ written: false })
  if (place !== 'terminal') expect((await run(['connect', 'codex'])).code).toBe(2)
  expect((await data('stats --days 7')).total).toEqual(expect.any(Number))
  expect((await data('usage')).drops.used).toBe(1)
  // A program starts it, never a person at a terminal.
  if (place !== 'terminal') {
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'service_list', arguments: {} } }
    expect((await done('mcp', { input: `${JSON.stringify(call)}\n` })).lines.at(-1)).toContain(slug)
  }
  expect(await data('tokens')).toHaveLength(1)
  expect((await data('org')).filter((one: { current: boolean }) => one.current)).toHaveLength(1)
  expect((await done('org members')).stdout).toContain(person.account.email)
  const invited = `invited-${slug}@example.com`
  expect(await data(`org invite ${invited} --role admin`)).toMatchObject({ email: invited, role: 'admin' })
  expect((await run(['org', 'invite', person.account.email])).code).toBe(1)
  expect((await done('tokens create', { env: { BROWSER: 'true' } })).lines.at(-1)).toContain('/account/tokens')
  const [token] = await data('tokens')
  if (signIn !== 'token') expect((await data(`tokens revoke ${token.id} --yes`)).revoked).toBe(true)
  expect((await data('export all.zip --yes')).byte_size).toBeGreaterThan(300_000)

  expect((await done(`rename ${slug}-b`)).lines.at(-1)).toContain(`${slug}-b`)
  expect((await data('unlink')).slug).toBe(`${slug}-b`)
  await done(`link ${slug}-b`)
  const refused = await run(['delete'], { input: 'n\r' })
  expect(refused.code, refused.stdout).toBe(place === 'terminal' ? 1 : 2)
  await done('delete --yes')
  expect((await stack.visit(`${slug}-b`)).status).toBe(410)

  await writeFile(path.join(folder, 'page.md'), '# Anonymous')
  const dropped = await done('drop page.md', signIn === 'token' ? { env: { DROPWAY_TOKEN: '' } } : {})
  expect(/[▀▄█]{5}/.test(dropped.stdout)).toBe(place !== 'pipe' && place !== 'ci')
  expect((await done('mcp', { input: `${INITIALIZE}\n` })).stdout).toContain('"serverInfo"')
  expect((await done('completion bash')).stdout).toContain('rollback')
  if (signIn === 'token') expect((await run(['org', 'switch'])).code).toBe(2)
  else {
    const { id } = (await person.browser.api('/organisations', { json: { name: 'Second one' } })).json()
    await person.browser.api(`/organisations/${id}/switch`, { method: 'POST' })
    const again: Run = (_, options) => run(['org', 'switch'], options)
    const switched = await signInAs(cli, stack, signIn, { ...machine, run: again })
    expect(switched!.stdout + switched!.stderr).toContain('You act for Second one now')
    expect((await data('org')).find((one: { current: boolean }) => one.current).id).toBe(id)
    expect((await done('logout')).stdout).toContain('Signed out')
    expect((await run(['whoami'])).code).toBe(3)
  }
}
