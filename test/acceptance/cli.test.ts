/**
 * The command-line client against the real service. Most lines run in this process (`dropway`); what needs a program of
 * its own, the packed client or a real terminal is started (`cli.run`, `cli.runInTerminal`). `cli-matrix.test.ts` runs
 * every command as a user has it.
 */
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openCli, type CallOptions, type CliResult, type Cli, type RunOptions } from '../support/cli.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'
import { startTunnelProxy } from '../support/tunnel-proxy.ts'

let cli: Cli
let stack: Stack
let owner: Account
let folders = 0

beforeAll(async () => {
  ;[cli, stack] = await Promise.all([openCli(), sharedStack()])
  await writeFile(path.join(cli.folder, 'ca.pem'), stack.ca)
  owner = await stack.createAccount('business')
})

afterAll(async () => {
  await cli.remove()
})

const serviceEnv = (): Record<string, string> => ({
  DROPWAY_URL: stack.baseUrl,
  DROPWAY_CA_FILE: path.join(cli.folder, 'ca.pem'),
})

/** With the owner's token, unless the environment says otherwise. */
const asOwner = <Options extends CallOptions>(options: Options): Options => ({
  ...options,
  env: { ...serviceEnv(), DROPWAY_TOKEN: owner.token, ...options.env },
})
const dropway = (args: readonly string[], options: CallOptions = {}): Promise<CliResult> =>
  cli.call(args, asOwner(options))
const program = (args: readonly string[], options: RunOptions = {}): Promise<CliResult> =>
  cli.run(args, asOwner(options))

async function makeFolder(files: Readonly<Record<string, string | Buffer>>): Promise<string> {
  const folder = path.join(cli.folder, `site-${++folders}`)
  await mkdir(folder)
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true })
    await writeFile(path.join(folder, name), content)
  }
  return folder
}

const slugOf = (address: string): string => new URL(address).hostname.split('.')[0]!

test('help and version need no service; wrong usage is 2 and says what to do', async () => {
  const [help, version, deployHelp] = await Promise.all([
    cli.run(['help']),
    cli.run(['--version']),
    cli.call(['deploy', '--help']),
  ])
  expect(help.code).toBe(0)
  for (const name of ['deploy', 'rollback', 'DROPWAY_TOKEN', 'Exit codes']) expect(help.stdout).toContain(name)
  expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  expect(deployHelp.stdout).toContain('--dry-run')
  const wrong = ['bogus', 'deploy --bogus', 'deploy a b', 'password sett', 'domains add', 'drop']
  for (const { code, stdout, stderr } of await Promise.all(wrong.map((line) => dropway(line.split(' '))))) {
    expect([code, stdout], stderr).toEqual([2, ''])
    expect(stderr.trim().split('\n')).toHaveLength(1)
  }
  const asJson = await dropway(['deploy', 'nowhere', '--json'])
  expect(asJson.json()).toMatchObject({ error: 'usage', detail: expect.stringContaining('does not exist') })
})

test('completion scripts are valid for their shells', async () => {
  const scripts = await Promise.all(['bash', 'zsh', 'fish'].map((shell) => cli.call(['completion', shell])))
  for (const { code, stdout } of scripts) {
    expect(code).toBe(0)
    expect(stdout).toContain('rollback')
  }
  execFileSync('bash', ['-n'], { input: scripts[0]!.stdout })
})

test('no one signed in is 3, a wrong token too; a service that is away, or not trusted, is 4', async () => {
  const [nobody, refused, away, untrusted, trustedByNode] = await Promise.all([
    dropway(['list'], { env: { DROPWAY_TOKEN: '' } }),
    dropway(['list'], { env: { DROPWAY_TOKEN: 'dw_wrong' } }),
    dropway(['list'], { env: { DROPWAY_URL: 'https://localhost:1' } }),
    dropway(['list'], { env: { DROPWAY_CA_FILE: '' } }),
    program(['list'], { env: { DROPWAY_CA_FILE: '', NODE_EXTRA_CA_CERTS: path.join(cli.folder, 'ca.pem') } }),
  ])
  expect(nobody.code).toBe(3)
  expect([refused.code, refused.stdout, refused.stderr]).toEqual([3, '', expect.stringContaining('dropway login')])
  expect(away.code).toBe(4)
  expect([untrusted.code, untrusted.stderr]).toEqual([4, expect.stringContaining('DROPWAY_CA_FILE')])
  expect(trustedByNode.code).toBe(0)
})

test('through a proxy, localhost too, unless NO_PROXY names it', async () => {
  const proxy = await startTunnelProxy(() => stack.httpsPort)
  const [through, past] = await Promise.all([
    program(['whoami'], { env: { HTTPS_PROXY: proxy.url } }),
    program(['whoami'], { env: { https_proxy: 'http://localhost:1', no_proxy: 'localhost' } }),
  ])
  proxy.close()
  expect([through.code, through.stdout], through.stderr).toEqual([0, expect.stringContaining(owner.email)])
  expect(proxy.asked).toEqual([`localhost:${stack.httpsPort}`])
  expect(past.code, past.stderr).toBe(0)
})

test('whoami tells the account', async () => {
  expect((await dropway(['whoami'])).stdout).toContain(owner.email)
  expect((await dropway(['whoami', '--json'])).json()).toMatchObject({ user: { email: owner.email } })
})

test('deploy: the address is the last line and serves; again, nothing changes; then only what changed is sent', async () => {
  const folder = await makeFolder({
    'index.html': '<h1>One</h1>',
    'css/a.css': 'b{}',
    '.env': 'SECRET=1',
    'skip.txt': 'x',
    '.dropwayignore': 'skip.txt\n',
  })
  const first = await dropway(['deploy'], { cwd: folder })
  expect(first.code, first.stderr).toBe(0)
  const address = first.lines.at(-1)!
  expect(first.stdout).toBe(`${address}\n`)
  // oxlint-disable-next-line no-control-regex -- a log file must hold no escape codes
  expect(first.stderr).not.toMatch(/\u001b/)
  const slug = slugOf(address)
  expect((await stack.visit(slug)).text()).toContain('One')
  for (const hidden of ['/.env', '/skip.txt', '/.dropway.json', '/.dropwayignore'])
    expect((await stack.visit(slug, hidden)).status).toBe(404)

  const again = await dropway(['deploy'], { cwd: folder })
  expect([again.code, again.stdout]).toEqual([0, `${address}\n`])
  expect((await dropway(['versions', '--json'], { cwd: folder })).json()).toHaveLength(1)

  await writeFile(path.join(folder, 'index.html'), '<h1>Two</h1><a href="nowhere.html">x</a>')
  const changed = await dropway(['deploy', '--message', 'second try', '--json'], { cwd: folder })
  expect(changed.json()).toMatchObject({
    url: address,
    unchanged: false,
    version: { version_number: 2, message: 'second try' },
  })
  expect(changed.stderr).toBe('')
  expect((await stack.visit(slug)).text()).toContain('Two')
  await writeFile(path.join(folder, 'index.html'), '<h1>Three</h1><a href="nowhere.html">x</a>')
  const third = await dropway(['deploy'], { cwd: folder })
  expect(third.stderr).toMatch(/Sent 1 of 2 files/)
  expect(third.stderr).toMatch(/Warning: .*nowhere\.html/)
  expect(third.lines.at(-1)).toBe(address)

  const rolledBack = await dropway(['rollback', '1'], { cwd: folder })
  expect([rolledBack.code, rolledBack.lines.at(-1)]).toEqual([0, address])
  expect((await stack.visit(slug)).text()).toContain('One')
  const versions = await dropway(['versions', '--drop', slug])
  expect(versions.lines).toHaveLength(3)
  expect(versions.lines[2]).toMatch(/^1 +live/)
  const none = await dropway(['rollback'], { cwd: folder })
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('no version before')])
  expect((await dropway(['list', '--json'])).json().map((site: { slug: string }) => site.slug)).toContain(slug)
})

test('a project publishes what it built, and its source remembers the drop', async () => {
  const folder = await makeFolder({ 'package.json': '{}', 'index.html': 'template', 'dist/index.html': 'built' })
  const { lines } = await dropway(['deploy'], { cwd: folder })
  expect((await stack.visit(slugOf(lines.at(-1)!))).text()).toContain('built')
  expect(JSON.parse(await readFile(path.join(folder, '.dropway.json'), 'utf8')).drop.slug).toBe(slugOf(lines.at(-1)!))
  const named = await dropway(['deploy', 'dist', '--dry-run', '--json'], { cwd: folder })
  expect(named.json()).toMatchObject({ dry_run: true, drop: slugOf(lines.at(-1)!), file_count: 1 })
  const empty = await makeFolder({ 'readme.txt': 'x' })
  expect((await dropway(['deploy'], { cwd: empty })).code).toBe(2)
})

test('--slug names the drop: made the first time, found from anywhere else; --spa is a setting', async () => {
  const slug = `cli-${randomBytes(5).toString('hex')}`
  const here = await makeFolder({ 'index.html': 'from here' })
  const there = await makeFolder({ 'index.html': 'from there' })
  expect((await dropway(['deploy', here, '--slug', slug, '--spa'])).code).toBe(0)
  expect((await stack.visit(slug, '/some/route')).text()).toContain('from here')
  const unasked = await dropway(['deploy', there, '--slug', slug])
  expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining('--yes')])
  expect((await stack.visit(slug)).text()).toContain('from here')
  expect((await dropway(['deploy', there, '--slug', slug, '--yes', '--json'])).json()).toMatchObject({
    slug,
    version: { version_number: 2 },
  })
  expect((await dropway(['deploy', there, '--slug', slug, '--no-spa', '--json'])).json()).toMatchObject({
    unchanged: true,
  })
  expect((await stack.visit(slug, '/some/route')).status).toBe(404)
  const taken = await dropway(['deploy', await makeFolder({ 'index.html': 'x' }), '--slug', 'www'])
  expect([taken.code, taken.stderr]).toEqual([1, expect.stringContaining('www')])
})

test('a page and a .zip are drops too, each its own', async () => {
  const folder = await makeFolder({ 'notes.md': '# Hello *there*', 'other.html': '<p>other</p>' })
  const page = await dropway(['deploy', 'notes.md'], { cwd: folder })
  expect((await stack.visit(slugOf(page.lines.at(-1)!))).text()).toContain('<em>there</em>')
  const other = await dropway(['deploy', 'other.html'], { cwd: folder })
  expect(other.lines.at(-1)).not.toBe(page.lines.at(-1))
  const again = await dropway(['deploy', 'notes.md', '--json'], { cwd: folder })
  expect(again.json()).toMatchObject({ url: page.lines.at(-1), unchanged: true })
  const archive = await dropway(['export', 'all.zip', '--yes'], { cwd: folder })
  expect(archive.code, archive.stderr).toBe(0)
  expect(execFileSync('unzip', ['-l', path.join(folder, 'all.zip')]).toString()).toContain(
    `${slugOf(page.lines.at(-1)!)}/`,
  )
  const single = await makeFolder({ 'index.html': 'zipped' })
  execFileSync('python3', ['-c', 'import zipfile; zipfile.ZipFile("site.zip", "w").write("index.html")'], {
    cwd: single,
  })
  const zip = await dropway(['deploy', 'site.zip'], { cwd: single })
  expect((await stack.visit(slugOf(zip.lines.at(-1)!))).text()).toContain('zipped')
})

test('a drop of another account stays theirs', async () => {
  const stranger = await stack.createAccount('free')
  const folder = await makeFolder({ 'index.html': 'mine' })
  await dropway(['deploy'], { cwd: folder })
  const theirs = await dropway(['deploy'], { cwd: folder, env: { DROPWAY_TOKEN: stranger.token } })
  expect([theirs.code, theirs.stderr]).toEqual([1, expect.stringContaining('.dropway.json')])
  const large = await makeFolder({ 'index.html': 'x', 'big.bin': randomBytes(10_000_001) })
  const refused = await dropway(['deploy', large], { env: { DROPWAY_TOKEN: stranger.token } })
  expect([refused.code, refused.stderr]).toEqual([5, expect.stringContaining('10 MB')])
})

/** How much of a file has arrived at the service. */
async function arrivedBytes(content: Buffer): Promise<number> {
  const hash = createHash('sha256').update(content).digest('hex')
  const entries = await readdir(path.join(stack.dataDir, 'uploads'), { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.name.includes(hash))
  const found = await Promise.all(files.map((entry) => stat(path.join(entry.parentPath, entry.name)).catch(() => null)))
  return Math.max(0, ...found.map((each) => each?.size ?? 0))
}

test('broken lines: the upload goes on where it stopped', async () => {
  const proxy = await startCuttingProxy(stack.httpsPort)
  try {
    const big = randomBytes(8_000_000)
    const folder = await makeFolder({ 'index.html': 'x', 'big.bin': big })
    let stalled = proxy.stallAfter(3_000_000)
    const deployed = dropway(['deploy', folder], { env: { DROPWAY_URL: `https://localhost:${proxy.port}` } })
    for (const arrived of [2_000_000, 4_000_000]) {
      await stalled
      // What is still on its way is lost with the line.
      await expect.poll(() => arrivedBytes(big)).toBeGreaterThan(arrived)
      proxy.breakLines()
      stalled = proxy.stallAfter(3_000_000)
    }
    proxy.flow()
    const result = await deployed
    expect(result.code, result.stderr).toBe(0)
    expect(proxy.sent, 'what had arrived was not sent again').toBeLessThan(big.length * 1.6)
    expect((await stack.visit(slugOf(result.lines.at(-1)!), '/big.bin')).body.equals(big)).toBe(true)
  } finally {
    await proxy.close()
  }
})

test('a deploy that was killed, started again, sends only the rest', async () => {
  const proxy = await startCuttingProxy(stack.httpsPort)
  try {
    const env = { DROPWAY_URL: `https://localhost:${proxy.port}`, HOME: path.join(cli.folder, 'interrupted') }
    const big = randomBytes(9_000_000)
    const folder = await makeFolder({ 'index.html': 'x', 'big.bin': big })
    const stalled = proxy.stallAfter(6_000_000)
    const kill = new AbortController()
    const killed = program(['deploy', folder], { env, signal: kill.signal })
    await stalled
    // What has left the client may still be on its way, and is lost with the line.
    await expect.poll(() => arrivedBytes(big)).toBeGreaterThan(4_000_000)
    kill.abort()
    expect([(await killed).code, (await killed).stdout]).toEqual([-1, ''])
    const before = proxy.sent
    proxy.flow()
    const resumed = await dropway(['deploy', folder], { env })
    expect(resumed.code, resumed.stderr).toBe(0)
    expect(proxy.sent - before).toBeLessThan(6_000_000)
    expect((await stack.visit(slugOf(resumed.lines.at(-1)!), '/big.bin')).body).toHaveLength(9_000_000)
  } finally {
    await proxy.close()
  }
})

test('in a terminal there is a progress bar, and the last line is still the address', async () => {
  const folder = await makeFolder({ 'index.html': 'x', 'big.bin': randomBytes(2_000_000) })
  const { code, stdout, lines } = await cli.runInTerminal(['deploy'], {
    cwd: folder,
    env: { ...serviceEnv(), DROPWAY_TOKEN: owner.token },
  })
  expect(code, stdout).toBe(0)
  expect(stdout).toContain('of 2 MB')
  expect(lines.at(-1)).toMatch(/^https:\/\/[a-z0-9-]+\.localhost:\d+$/)
})

test('drop: no account, a claim link, the address last, and a QR code where someone sees it', async () => {
  const folder = await makeFolder({ 'page.html': '<h1>Anonymous</h1>' })
  const { code, stdout, stderr, lines } = await dropway(['drop', 'page.html'], {
    cwd: folder,
    env: { DROPWAY_TOKEN: '' },
  })
  expect(code, stderr).toBe(0)
  expect(stdout).not.toMatch(/[▀▄█]/)
  const shown = await dropway(['drop', 'page.html'], { cwd: folder, terminal: true })
  expect(shown.stdout).toMatch(/[▀▄█]{5}/)
  expect(shown.lines.at(-1)).toMatch(/^https:/)
  expect(stdout).toContain(`${stack.baseUrl}/claim?token=`)
  expect((await stack.visit(slugOf(lines.at(-1)!))).text()).toContain('Anonymous')
  const json = (await dropway(['drop', 'page.html', '--json'], { cwd: folder })).json()
  expect(json).toMatchObject({ url: expect.any(String), claim_url: expect.any(String), slug: expect.any(String) })
  const wrong = await makeFolder({ 'x.png': 'x' })
  expect((await dropway(['drop', 'x.png'], { cwd: wrong })).code).toBe(1)

  const { claim_url, slug } = json as { claim_url: string; slug: string }
  const remove = (link: string) => dropway(['drop', '--delete', link], { cwd: folder, env: { DROPWAY_TOKEN: '' } })
  expect((await remove('https://elsewhere.example/claim?token=x')).stderr).toContain(
    'belongs to https://elsewhere.example',
  )
  expect((await remove(claim_url)).stdout).toContain('Deleted.')
  expect((await stack.visit(slug)).status).toBe(410)
  expect((await remove(claim_url)).code).toBe(1)
})

test('password: read from stdin, asked for in a terminal, enforced at the address', async () => {
  const folder = await makeFolder({ 'index.html': 'private' })
  const slug = slugOf((await dropway(['deploy'], { cwd: folder })).lines.at(-1)!)
  const set = await dropway(['password', 'set'], { cwd: folder, input: 'open sesame\n' })
  expect(set.code, set.stderr).toBe(0)
  expect((await stack.visit(slug)).status).toBe(401)
  expect((await dropway(['password', 'clear'], { cwd: folder })).stderr).toContain('--yes')
  expect((await stack.visit(slug)).status).toBe(401)
  expect((await dropway(['password', 'clear', '--yes', '--json'], { cwd: folder })).json()).toMatchObject({
    has_password: false,
  })
  expect((await stack.visit(slug)).status).toBe(200)
  const asked = await cli.runInTerminal(['password', 'set', '--drop', slug], {
    env: { ...serviceEnv(), DROPWAY_TOKEN: owner.token },
    input: 'another one\r',
  })
  expect(asked.code, asked.stdout).toBe(0)
  expect(asked.stdout).toContain('Password:')
  expect((await stack.visit(slug)).status).toBe(401)
  expect((await dropway(['password', 'set'], { cwd: folder, input: '' })).code).toBe(2)
})

test('domains: the records to set, the state, and away again', async () => {
  const folder = await makeFolder({ 'index.html': 'x' })
  await dropway(['deploy'], { cwd: folder })
  const domain = `www.${randomBytes(6).toString('hex')}.example`
  const added = await dropway(['domains', 'add', domain], { cwd: folder })
  expect(added.code, added.stderr).toBe(0)
  expect(added.stdout).toMatch(/CNAME|ALIAS|TXT/)
  expect((await dropway(['domains', 'list', '--json'], { cwd: folder })).json()[0]).toMatchObject({ domain })
  // The other half of the pair becomes the main name, and back; nothing is removed for it.
  const apex = domain.slice('www.'.length)
  const [main] = (await dropway(['domains', 'list', '--json'], { cwd: folder })).json()
  expect([main.domain, main.pair.domain]).toEqual([domain, apex])
  const switched = await dropway(['domains', 'main', apex], { cwd: folder })
  expect([switched.code, switched.lines[0]]).toEqual([0, expect.stringMatching(new RegExp(`^${apex} `))])
  expect((await dropway(['domains', 'main', domain], { cwd: folder })).code).toBe(0)
  // On a terminal it asks first.
  const asked = await dropway(['domains', 'remove', domain], {
    cwd: folder,
    terminal: true,
    respond: (output) => (output.includes('[y/N]') ? Promise.resolve('n\n') : undefined),
  })
  expect([asked.code, asked.stdout + asked.stderr]).toEqual([1, expect.stringContaining('Nothing was changed.')])
  expect((await dropway(['domains', 'list', '--json'], { cwd: folder })).json()[0]).toMatchObject({ domain })
  // Without one, nobody has said that it is meant.
  expect((await dropway(['domains', 'remove', domain], { cwd: folder })).code).toBe(2)
  expect((await dropway(['domains', 'list', '--json'], { cwd: folder })).json()[0]).toMatchObject({ domain })
  expect((await dropway(['domains', 'remove', domain, '--yes'], { cwd: folder })).code).toBe(0)
  expect((await dropway(['domains', 'list', '--json'], { cwd: folder })).json()).toEqual([])
})

test('mcp: messages go through stdio, one per line', async () => {
  const message = (id: number, method: string, params: unknown = {}) =>
    JSON.stringify({ jsonrpc: '2.0', id, method, params })
  const initialize = message(1, 'initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  })
  const initialized = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })
  const { code, lines, stderr } = await program(['mcp'], {
    input: `${initialize}\n${initialized}\n${message(2, 'tools/list')}\n`,
  })
  expect([code, stderr]).toEqual([0, ''])
  const replies = lines.map((line) => JSON.parse(line))
  expect(replies.find((reply) => reply.id === 1).result.serverInfo).toBeDefined()
  expect(replies.find((reply) => reply.id === 2).result.tools.map((tool: { name: string }) => tool.name)).toContain(
    'service_publish',
  )
  const wrong = await dropway(['mcp'], { input: `${initialize}\n`, env: { DROPWAY_TOKEN: 'dw_wrong' } })
  expect(JSON.parse(wrong.lines[0]!)).toMatchObject({ id: 1, error: { message: expect.any(String) } })
  expect((await dropway(['mcp'], { env: { DROPWAY_TOKEN: '' } })).code).toBe(3)
})

test('mcp: an assistant publishes files of the folder by their path, and none from elsewhere', async () => {
  const video = randomBytes(1_500_000)
  const folder = await makeFolder({ 'site/index.html': '<h1>Local</h1>', 'site/film.mp4': video, 'page.md': '# Page' })
  await symlink('/etc/hostname', path.join(folder, 'link.txt'))
  const slug = `local-${randomBytes(5).toString('hex')}`
  const calls: [string, Record<string, unknown>][] = [
    ['service_publish_files', { slug, folder: 'site' }],
    ['service_edit_files', { id: slug, put: [{ local: './page.md' }, { path: 'b.mp4', local: 'site/film.mp4' }] }],
    ['service_publish', { local: 'page.md' }],
    ['service_publish', { local: '../outside.html' }],
    ['service_edit_files', { id: slug, put: [{ path: 'x.txt', local: '/etc/hostname' }] }],
    ['service_edit_files', { id: slug, put: [{ path: 'x.txt', local: 'link.txt' }] }],
  ]
  const say = async (method: string, params: unknown) => {
    const { lines } = await dropway(['mcp', folder], {
      input: `${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}\n`,
    })
    return JSON.parse(lines.at(-1)!).result
  }
  const { tools } = await say('tools/list', {})
  const publish = tools.find((tool: { name: string }) => tool.name === 'service_publish')
  expect(publish.inputSchema.properties).toHaveProperty('local')
  const answers = []
  for (const [name, args] of calls) answers.push(await say('tools/call', { name, arguments: args }))
  expect(answers.map((answer) => answer.isError === true)).toEqual([false, false, false, true, true, true])
  for (const answer of answers.slice(3)) expect(answer.content[0].text).toMatch(/is outside of|does not exist/)
  expect((await stack.visit(slug)).text()).toContain('<h1>Local</h1>')
  for (const file of ['/film.mp4', '/b.mp4']) expect((await stack.visit(slug, file)).body.equals(video)).toBe(true)
  expect((await stack.visit(slug, '/page.md')).text()).toBe('# Page')
  expect((await stack.visit(answers[2].structuredContent.slug)).text()).toContain('Page')
})

test('mcp: a folder may hold what the plan takes: 700 files, 21 MB; what would go is named first', async () => {
  const files = Object.fromEntries(Array.from({ length: 700 }, (_, index) => [`site/f${index}.txt`, `file ${index}`]))
  const film = randomBytes(21_000_000)
  const folder = await makeFolder({ 'site/index.html': '<h1>Many</h1>', 'site/film.mp4': film, ...files })
  const slug = `many-${randomBytes(5).toString('hex')}`
  const publish = async (args: Record<string, unknown>) => {
    const call = { name: 'service_publish_files', arguments: { slug, folder: 'site', ...args } }
    const { lines } = await dropway(['mcp', folder], {
      input: `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call })}\n`,
    })
    return JSON.parse(lines.at(-1)!).result
  }
  expect((await publish({})).structuredContent).toMatchObject({ slug, version: 1, files: 702 })
  expect((await stack.visit(slug, '/film.mp4')).body.equals(film)).toBe(true)
  expect((await stack.visit(slug, '/f699.txt')).text()).toBe('file 699')
  await rm(path.join(folder, 'site', 'f0.txt'))
  const asked = await publish({})
  expect([asked.isError, asked.content[0].text]).toEqual([true, expect.stringContaining('f0.txt')])
  expect((await publish({ replace: true })).structuredContent).toMatchObject({ version: 2, files: 701 })
})

test('a folder with only an index.md is a site: rendered, and unchanged the second time', async () => {
  const folder = await makeFolder({ 'index.md': '# Tide table\n\n- high\n- low\n', 'style.css': 'a{}' })
  const first = await dropway(['deploy'], { cwd: folder })
  expect(first.code, first.stderr).toBe(0)
  const slug = slugOf(first.stdout.trim())
  const page = (await stack.visit(slug)).text()
  expect(page).toContain('<li>high</li>')
  expect(page).toContain('<title>Tide table')
  const again = await dropway(['deploy', '--json'], { cwd: folder })
  expect(again.json()).toMatchObject({ unchanged: true })
})

test('a refused first deploy leaves no drop behind, and its address is free for the next one', async () => {
  const newcomer = await stack.createAccount('free')
  const slug = `refused-${randomBytes(4).toString('hex')}`
  const folder = await makeFolder({ 'index.html': 'x', 'large.bin': randomBytes(11_000_000) })
  const env = { DROPWAY_TOKEN: newcomer.token }
  const refused = await dropway(['deploy', '--slug', slug], { cwd: folder, env })
  expect([refused.code, refused.stderr]).toEqual([5, expect.stringContaining('10 MB')])
  expect((await stack.fetch('/api/v1/sites', { token: newcomer.token })).json()).toEqual([])
  await writeFile(path.join(folder, 'large.bin'), 'small after all')
  const second = await dropway(['deploy', '--slug', slug], { cwd: folder, env })
  expect([second.code, second.stderr], second.stderr).toEqual([0, expect.anything()])
  expect((await stack.visit(slug)).status).toBe(200)
})

test('deploy --resolves ends what a version mends; with an unknown thread nothing is published', async () => {
  const folder = await makeFolder({ 'index.html': '<h1>One</h1>' })
  const { lines } = await dropway(['deploy'], { cwd: folder })
  const slug = slugOf(lines.at(-1)!)
  const [{ id }] = JSON.parse((await dropway(['list', slug, '--json'])).stdout) as [{ id: string }]
  const said = { page: '/', body: 'Say two.', label: 'must' }
  const threads = `/api/v1/sites/${id}/threads`
  const thread = (await stack.fetch(threads, { token: owner.token, json: said })).json<{ id: string }>().id
  await writeFile(path.join(folder, 'index.html'), '<h1>Two</h1>')
  const unknown = await dropway(['deploy', '--resolves', 'th_nothing'], { cwd: folder })
  expect(unknown.code).not.toBe(0)
  expect((await stack.visit(slug)).text()).toContain('One')
  expect((await dropway(['deploy', '--resolves', thread], { cwd: folder })).code).toBe(0)
  expect((await stack.visit(slug)).text()).toContain('Two')
  const listed = await dropway(['threads', slug, '--state', 'resolved', '--json'])
  expect(JSON.parse(listed.stdout)).toMatchObject([{ id: thread, state: 'resolved', resolved_version: 2 }])
  const labelled = (label: string) => dropway(['threads', slug, '--state', 'all', '--label', label, '--json'])
  expect(JSON.parse((await labelled('must')).stdout)).toMatchObject([{ id: thread, label: 'must' }])
  expect(JSON.parse((await labelled('nice')).stdout)).toEqual([])
  expect((await labelled('urgent')).stderr).toContain('--label is must or nice.')
})
