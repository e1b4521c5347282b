/** What the client refuses, asks and says before something goes wrong. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import yazl from 'yazl'
import { enterCode, loginByBrowser, loginByCode } from '../support/cli-sign-in.ts'
import { openCli, type CallOptions, type Cli, type CliResult, type RunOptions } from '../support/cli.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { signedInPerson } from '../support/oauth-client.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let cli: Cli
let stack: Stack
let owner: Account
let folders = 0

beforeAll(async () => {
  ;[cli, stack] = await Promise.all([openCli(), sharedStack()])
  await writeFile(path.join(cli.folder, 'ca.pem'), stack.ca)
  owner = await stack.createAccount('business')
})
afterAll(() => cli.remove())

const signedIn = (env: RunOptions['env'] = {}): Record<string, string> => ({
  DROPWAY_URL: stack.baseUrl,
  DROPWAY_CA_FILE: path.join(cli.folder, 'ca.pem'),
  DROPWAY_TOKEN: owner.token,
  ...env,
})
/** In this process; `program` starts the packed client, which can be killed. */
const dropway = (line: string, options: CallOptions = {}): Promise<CliResult> =>
  cli.call(line.split(' '), { ...options, env: signedIn(options.env) })
const program = (line: string, options: RunOptions = {}): Promise<CliResult> =>
  cli.run(line.split(' '), { ...options, env: signedIn(options.env) })
const answering =
  (answer: string) =>
  (output: string): Promise<string> | undefined =>
    output.includes('[y/N]') ? Promise.resolve(`${answer}\n`) : undefined
const inTerminal = (line: string, options: RunOptions = {}): Promise<CliResult> =>
  cli.runInTerminal(line.split(' '), { ...options, env: signedIn(options.env) })

async function makeFolder(files: Readonly<Record<string, string | Buffer>>): Promise<string> {
  const folder = path.join(cli.folder, `site-${++folders}`)
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true })
    await writeFile(path.join(folder, name), content)
  }
  return folder
}

function zipOf(files: Readonly<Record<string, string>>): Promise<Buffer> {
  const zip = new yazl.ZipFile()
  for (const [name, content] of Object.entries(files)) zip.addBuffer(Buffer.from(content), name)
  zip.end()
  return buffer(zip.outputStream as Readable)
}

const newSlug = (): string => `s-${randomBytes(5).toString('hex')}`
const ownSlugs = async (): Promise<string[]> =>
  (await stack.fetch('/api/v1/sites', { token: owner.token })).json<{ slug: string }[]>().map((site) => site.slug)

describe('secrets', () => {
  const KEY = '-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n'
  test.each([
    ['.npmrc', '//registry.example/:_authToken=x'],
    ['.htpasswd', 'a:b'],
    ['.aws/credentials', '[default]'],
    ['deploy_key', KEY],
    ['tls.pem', KEY],
    ['old/dump.sql', 'insert'],
  ])('%s is refused before the drop is even made; --include publishes it', async (name, content) => {
    const slug = newSlug()
    const folder = await makeFolder({ 'index.html': 'x', [name]: content })
    const refused = await dropway(`deploy ${folder} --slug ${slug}`)
    expect([refused.code, refused.stdout]).toEqual([1, ''])
    expect(refused.stderr).toContain(name)
    expect(refused.stderr).toContain('--include')
    expect(await ownSlugs()).not.toContain(slug)
    const meant = await dropway(`deploy ${folder} --slug ${slug} --include ${name}`)
    expect(meant.code, meant.stderr).toBe(0)
    expect((await stack.visit(slug, `/${name}`)).text()).toBe(content)
  })

  test('a repository stays at home; a certificate is no secret', async () => {
    const slug = newSlug()
    const folder = await makeFolder({
      'index.html': 'x',
      '.git/HEAD': 'ref',
      'ca.pem': '-----BEGIN CERTIFICATE-----\nAAAA\n',
    })
    const { code, stderr } = await dropway(`deploy ${folder} --slug ${slug}`)
    expect(code, stderr).toBe(0)
    expect((await stack.visit(slug, '/.git/HEAD')).status).toBe(404)
    expect((await stack.visit(slug, '/ca.pem')).status).toBe(200)
  })

  test('a repository that others wrote cannot ask for them: .dropwayignore is no --include', async () => {
    const slug = newSlug()
    const secrets = { '.env': 'KEY=1', '.git/config': '[core]', 'public.key': KEY, '.GIT/config': '[core]' }
    const folder = await makeFolder({
      ...secrets,
      'index.html': 'x',
      '.dropwayignore': '!.env\n!.git/\n!public.key\n!.GIT\n',
    })
    const refused = await dropway(`deploy ${folder} --slug ${slug} --yes`)
    expect([refused.code, refused.stdout]).toEqual([1, ''])
    for (const name of Object.keys(secrets)) expect(refused.stderr).toContain(name)
    expect(await ownSlugs()).not.toContain(slug)
  })

  test('in a .zip they are not published, and named; --include publishes them', async () => {
    const folder = await makeFolder({ 'index.html': 'zipped', '.npmrc': 'token' })
    const script = 'import zipfile; z = zipfile.ZipFile("a.zip", "w"); z.write("index.html"); z.write(".npmrc")'
    execFileSync('python3', ['-c', script], { cwd: folder })
    const slug = newSlug()
    const kept = await dropway(`deploy a.zip --slug ${slug}`, { cwd: folder })
    expect([kept.code, kept.stderr]).toEqual([0, expect.stringContaining('Not published: .npmrc')])
    expect((await stack.visit(slug, '/.npmrc')).status).toBe(404)
    const other = newSlug()
    await dropway(`deploy a.zip --slug ${other} --include .npmrc`, { cwd: folder })
    expect((await stack.visit(other, '/.npmrc')).text()).toBe('token')
  })

  test('--dry-run and diff refuse them too', async () => {
    const folder = await makeFolder({ 'index.html': 'x', '.npmrc': 'x' })
    expect((await dropway('deploy --dry-run --json', { cwd: folder })).json()).toMatchObject({
      error: 'blocked_secrets',
    })
  })
})

describe('publishing over something', () => {
  test('that this folder is not linked to: asked in a terminal, refused in a pipe, done in CI', async () => {
    const slug = newSlug()
    await dropway(`deploy ${await makeFolder({ 'index.html': 'first' })} --slug ${slug}`)
    const other = await makeFolder({ 'index.html': 'other' })
    const text = async () => (await stack.visit(slug)).text()

    const no = await dropway(`deploy ${other} --slug ${slug}`, { terminal: true, respond: answering('n') })
    expect([no.code, no.stderr]).toEqual([1, expect.stringContaining('Publish over it? [y/N]')])
    const left = await inTerminal(`deploy ${other} --slug ${slug}`, { input: '\u0004' })
    expect([left.code, left.stdout]).toEqual([1, expect.stringContaining('Nothing was published')])
    const pipe = await dropway(`deploy ${other} --slug ${slug}`)
    expect([pipe.code, pipe.stderr]).toEqual([2, expect.stringContaining('--yes')])
    expect(await text()).toContain('first')

    const yes = await dropway(`deploy ${other} --slug ${slug}`, { terminal: true, respond: answering('y') })
    expect(yes.code, yes.stderr).toBe(0)
    expect(await text()).toContain('other')
    // Linked now: not asked again.
    await writeFile(path.join(other, 'index.html'), 'again')
    expect((await dropway(`deploy ${other} --slug ${slug}`)).code).toBe(0)
    const third = await makeFolder({ 'index.html': 'third' })
    expect((await dropway(`deploy ${third} --slug ${slug}`, { env: { CI: 'true' } })).code).toBe(0)
    expect(await text()).toContain('third')
  })

  test('--slug wins over what .dropway.json remembers, and the link stays', async () => {
    const [linked, other] = [newSlug(), newSlug()]
    const folder = await makeFolder({ 'index.html': 'x' })
    await dropway(`deploy ${folder} --slug ${linked}`)
    const elsewhere = await dropway(`deploy ${folder} --slug ${other}`)
    expect([elsewhere.code, elsewhere.stderr]).toEqual([0, expect.stringContaining(`stays linked to ${linked}`)])
    expect(elsewhere.lines.at(-1)).toContain(other)
    expect((await dropway('deploy', { cwd: folder })).lines.at(-1)).toContain(linked)
  })

  test('with a remembered drop that is gone, --slug publishes, the same slug or another, and links anew', async () => {
    const slug = newSlug()
    const folder = await makeFolder({ 'index.html': 'x' })
    await dropway(`deploy ${folder} --slug ${slug}`)
    await dropway(`delete --yes --drop ${slug}`)
    const gone = await dropway('deploy', { cwd: folder })
    expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining('--slug')])
    const renewed = newSlug()
    expect((await dropway(`deploy --slug ${renewed}`, { cwd: folder })).code).toBe(0)
    expect(JSON.parse(await readFile(path.join(folder, '.dropway.json'), 'utf8')).drop.slug).toBe(renewed)
  })
})

describe('--dry-run', () => {
  test('compares with what is live and makes nothing', async () => {
    const slug = newSlug()
    const folder = await makeFolder({ 'index.html': 'one', 'old.txt': 'old', 'same.txt': 'same' })
    const before = await dropway(`deploy --slug ${slug} --dry-run`, { cwd: folder })
    expect([before.code, before.stdout]).toEqual([0, expect.stringContaining('a new drop')])
    expect(await ownSlugs()).not.toContain(slug)
    await dropway(`deploy --slug ${slug}`, { cwd: folder })
    await writeFile(path.join(folder, 'index.html'), 'two')
    await writeFile(path.join(folder, 'old.txt'), 'new')
    const after = await dropway('deploy --dry-run', { cwd: folder })
    expect(after.lines.slice(0, 3)).toEqual(['~ index.html', '~ old.txt', expect.stringContaining('2 changed')])
  })

  test('compares with the preview that is named', async () => {
    const slug = newSlug()
    const folder = await makeFolder({ 'index.html': 'one' })
    await dropway(`deploy --slug ${slug}`, { cwd: folder })
    await writeFile(path.join(folder, 'index.html'), 'two')
    const ahead = await dropway('deploy --preview next --dry-run', { cwd: folder })
    expect(ahead.lines).toEqual([
      'There is no preview next yet; beside what is live it has',
      '~ index.html',
      expect.stringContaining('0 new, 1 changed, 0 removed'),
      expect.stringContaining(`the new preview next of ${slug}.`),
    ])
    await writeFile(path.join(folder, 'index.html'), 'one')
    expect((await dropway('deploy --preview next --dry-run --json', { cwd: folder })).json()).toMatchObject({
      compared_with: 'live',
      unchanged: false,
      changed: [],
    })
    await writeFile(path.join(folder, 'index.html'), 'two')
    await dropway('deploy --preview next', { cwd: folder })
    const after = await dropway('deploy --preview next --dry-run', { cwd: folder })
    expect(after.lines[0]).toBe('Nothing differs from what is at the preview next.')
    expect((await dropway('deploy --preview next --dry-run --json', { cwd: folder })).json()).toMatchObject({
      preview: 'next',
      compared_with: 'preview',
      unchanged: true,
    })
    expect((await dropway('deploy --purge --dry-run', { cwd: folder })).lines[0]).toBe('~ index.html')
  })

  test.each([
    ['a reserved slug', { 'index.html': 'x' }, '--slug www', 1, 'reserved'],
    ['an index under another name', { 'index.htm': 'x' }, '', 2, 'index.html'],
  ])('refuses what the service would refuse: %s', async (_, files, options, code, words) => {
    const folder = await makeFolder(files)
    const refused = await dropway(`deploy ${folder} --dry-run ${options}`.trim())
    expect([refused.code, refused.stderr]).toEqual([code, expect.stringContaining(words)])
  })

  test('takes a landing page in Markdown, as deploy does', async () => {
    const folder = await makeFolder({ 'index.md': '# x' })
    expect((await dropway(`deploy ${folder} --dry-run`)).stdout).toContain('+ index.md')
  })

  test.each(['page.html', 'note.md', 'cat.png'])('knows %s again once it is live', async (name) => {
    const folder = await makeFolder({ [name]: 'x' })
    const before = await dropway(`deploy ${name} --slug ${newSlug()} --dry-run --json`, { cwd: folder })
    expect(before.json()).toMatchObject({ unchanged: false, file_count: 1, removed: [] })
    expect((await dropway(`deploy ${name} --slug ${newSlug()}`, { cwd: folder })).code).toBe(0)
    expect((await dropway(`deploy ${name} --dry-run --json`, { cwd: folder })).json().unchanged).toBe(true)
  })

  test('looks into a .zip as the service does, and sends nothing', async () => {
    const slug = newSlug()
    const inside = { 'site/index.html': 'x', 'site/a.css': 'b{}', 'site/.npmrc': '//x/:_authToken=x' }
    const folder = await makeFolder({ ...inside, 'broken.zip': 'PK no archive' })
    await writeFile(path.join(folder, 'site.zip'), await zipOf(inside))
    const before = await dropway(`deploy site.zip --slug ${slug} --dry-run --json`, { cwd: folder })
    expect(before.json()).toMatchObject({
      added: expect.arrayContaining(['index.html', 'a.css']),
      file_count: 2,
      blocked: [{ path: '.npmrc', what: 'a file of credentials' }],
    })
    expect(await ownSlugs()).not.toContain(slug)
    const deployed = await dropway(`deploy site.zip --slug ${slug} --json`, { cwd: folder })
    expect(deployed.json().version).toMatchObject({ file_count: 2 })
    expect((await dropway('deploy site.zip --dry-run --json', { cwd: folder })).json().unchanged).toBe(true)
    const broken = await dropway('deploy broken.zip --dry-run', { cwd: folder })
    expect([broken.code, broken.stderr]).toEqual([1, expect.stringContaining('cannot be read')])
  })

  test('foresees that the plan has no room left', async () => {
    const { token } = await stack.createAccount('free')
    const env = { DROPWAY_TOKEN: token }
    const folder = await makeFolder({ 'index.html': 'x', 'large.bin': randomBytes(9_000_000) })
    const deploys: number[] = []
    for (;;) {
      await writeFile(path.join(folder, 'index.html'), `round ${deploys.length}`)
      const foreseen = await dropway('deploy --dry-run', { cwd: folder, env })
      const { code } = await dropway('deploy', { cwd: folder, env })
      expect(foreseen.code, foreseen.stderr).toBe(code)
      deploys.push(code)
      if (code !== 0 || deploys.length > 12) break
      await dropway('unlink', { cwd: folder, env })
    }
    expect(deploys.at(-1)).toBe(5)
  })

  test('refuses more than the plan takes', async () => {
    const { token } = await stack.createAccount('free')
    const folder = await makeFolder({ 'index.html': 'x', 'large.bin': randomBytes(10_000_001) })
    expect((await dropway(`deploy ${folder} --dry-run`, { env: { DROPWAY_TOKEN: token } })).code).toBe(5)
  })
})

test.each([
  ['deplyo', '"deploy"'],
  ['version', '"versions"'],
  ['deploy --mesage x', '"--message"'],
  ['domains ad x.example', '"add"'],
  ['password sett', '"set"'],
])('%s: did you mean %s?', async (line, meant) => {
  const { code, stderr } = await dropway(line)
  expect([code, stderr]).toEqual([2, expect.stringContaining(`Did you mean ${meant}?`)])
})

test('a drop that is nearly named is guessed', async () => {
  const slug = newSlug()
  await dropway(`deploy ${await makeFolder({ 'index.html': 'x' })} --slug ${slug}`)
  const { stderr } = await dropway(`versions --drop ${slug}x`)
  expect(stderr).toContain(`Did you mean "${slug}"?`)
})

test('without an address nothing is assumed: it says how to give it once', async () => {
  for (const line of ['list', 'deploy', 'login']) {
    const { code, stderr } = await dropway(line, { env: { DROPWAY_URL: '', HOME: path.join(cli.folder, 'nowhere') } })
    expect([code, stderr]).toEqual([2, expect.stringContaining('dropway login https://')])
    expect(stderr).not.toContain('localhost')
  }
})

describe('a deploy that is cut short', () => {
  test('by kill -9 as soon as its drop is made leaves no empty drop behind: the next deploy fills it', async () => {
    for (let round = 0; round < 3; round++) {
      const { token } = await stack.createAccount('plus')
      const env = { DROPWAY_TOKEN: token }
      const drops = async () => (await stack.fetch('/api/v1/sites', { token })).json<{ live_version_id: string }[]>()
      const folder = await makeFolder({ 'index.html': 'x' })
      const kill = new AbortController()
      const killed = program(`deploy ${folder}`, { env, signal: kill.signal })
      while ((await drops()).length === 0) continue
      kill.abort()
      await killed
      expect((await dropway(`deploy ${folder}`, { env })).code).toBe(0)
      expect((await drops()).map((drop) => drop.live_version_id)).toEqual([expect.any(String)])
      expect((await dropway(`deploy ${folder} --json`, { env })).json().unchanged).toBe(true)
    }
  })

  test('by Ctrl-C says how to go on', async () => {
    const proxy = await startCuttingProxy(stack.httpsPort)
    const folder = await makeFolder({ 'index.html': 'x', 'big.bin': randomBytes(5_000_000) })
    const stalled = proxy.stallAfter(2_000_000)
    const { code, stdout } = await inTerminal(`deploy ${folder}`, {
      env: { DROPWAY_URL: `https://localhost:${proxy.port}` },
      respond: (output) => (output.includes('Sending') ? stalled.then(() => '\u0003') : undefined),
    })
    await proxy.close()
    expect([code, stdout]).toEqual([130, expect.stringContaining('Run the same command again to go on')])
  })

  test('by a line that breaks says that it tries again, and that it is back', async () => {
    const proxy = await startCuttingProxy(stack.httpsPort)
    proxy.cutAfter(1_000_000, 1)
    const folder = await makeFolder({ 'index.html': 'x', 'big.bin': randomBytes(3_000_000) })
    const { code, stderr } = await dropway(`deploy ${folder}`, {
      env: { DROPWAY_URL: `https://localhost:${proxy.port}` },
    })
    await proxy.close()
    expect(code, stderr).toBe(0)
    expect(stderr).toMatch(/Trying again for two minutes\.\n(?:.*\n)*The connection is back\./)
  })
})

// They wait side by side: the service asks for five seconds between two looks.
describe.concurrent('signing in', () => {
  test('by code, denied: exit code 3, and nothing is stored', async () => {
    const person = await signedInPerson(stack)
    const env = { HOME: path.join(cli.folder, 'denied'), DROPWAY_CA_FILE: path.join(cli.folder, 'ca.pem') }
    const { code, stderr } = await cli.call(['login', stack.baseUrl], {
      env,
      respond(output) {
        const shown = /^ {2}([A-Z]{4}-[A-Z]{4})$/m.exec(output)?.[1]
        return shown === undefined ? undefined : enterCode(person, shown, 'deny').then(() => '')
      },
    })
    expect([code, stderr]).toEqual([3, expect.stringContaining('denied')])
    expect((await cli.call(['whoami'], { env: { ...env, DROPWAY_URL: stack.baseUrl } })).code).toBe(3)
  })

  test('beside DROPWAY_TOKEN: says who signed in, and that the token wins', async () => {
    const person = await signedInPerson(stack)
    const env = signedIn({ HOME: path.join(cli.folder, 'beside') })
    const { code, stdout, stderr } = await loginByCode(cli.call, person, env)
    expect([code, stdout]).toEqual([0, `Signed in as ${person.account.email}.\n`])
    expect(stderr).toContain('DROPWAY_TOKEN is set and wins')
  })

  test.each(['browser', 'code'])('by %s: a client that the service has forgotten registers anew', async (way) => {
    const person = await signedInPerson(stack)
    const home = path.join(cli.folder, `forgotten-${way}`)
    const file = path.join(home, '.config', 'dropway', 'credentials.json')
    await mkdir(path.dirname(file), { recursive: true })
    const stale = { client_id: 'cli_forgotten', access_token: 'x', expires_at: 0, token_endpoint: stack.baseUrl }
    await writeFile(file, JSON.stringify({ [stack.baseUrl]: stale }))
    const env = { HOME: home, DROPWAY_CA_FILE: path.join(cli.folder, 'ca.pem') }
    const { code, stderr } =
      way === 'browser'
        ? await loginByBrowser(cli, cli.run, person, env, [stack.baseUrl])
        : await loginByCode(cli.call, person, env, [stack.baseUrl])
    expect(code, stderr).toBe(0)
  })
})
