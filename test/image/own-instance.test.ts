/**
 * The README's way to an instance of one's own, command by command as it stands there: from the image to a private page
 * with a certificate from a CA (Pebble) that asked a name server (BIND), and sign-in with OpenID Connect.
 */
import { execFile, type ExecFileException } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import http from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { request, type Answer } from '../support/client.ts'
import { formFields } from '../support/form-browser.ts'
import { startNameServer, type NameServer } from '../support/name-server.ts'
import { startOpenIdStandIn, type OpenIdStandIn } from '../support/openid-stand-in.ts'
import { startPebble, type Pebble } from '../support/pebble.ts'
import { until } from '../support/processes.ts'
import { freePorts } from '../support/stack.ts'
import { startTunnelProxy, type TunnelProxy } from '../support/tunnel-proxy.ts'
import { createVolume, openImage, startOnMachine, type Container, type Image } from './containers.ts'

const ROOT = path.join(import.meta.dirname, '../../')
const SERVICE = 'https://pages.example.test'
const DROP = 'https://handbook.sites.example.test'
const OWNER = { sub: 'ada', email: 'ada@example.test', email_verified: true }

/** The commands of the README's section, a document for `cat` with its command. */
function commandsOf(readme: string): string[] {
  const section = readme.slice(readme.indexOf('## An instance of your own'))
  const block = /```sh\n([^]*?)```/.exec(section)![1]!
  return block.match(/^cat[^]*?^END$|^.+$/gm)!
}

const commands = commandsOf(readFileSync(path.join(ROOT, 'README.md'), 'utf8'))
const home = mkdtempSync(path.join(os.tmpdir(), 'dropway-stranger-'))
let names: NameServer
let pebble: Pebble
let provider: OpenIdStandIn
let proxy: TunnelProxy
let engine: http.Server
let image: Image | undefined
let data: string | undefined
let container: Container | undefined
let httpsPort: number
/** The CA that the world of this test trusts. */
let root: string

beforeAll(async () => {
  names = await startNameServer('example.test', [])
  pebble = await startPebble({ challengePort: 9, dnsServer: names.address })
  root = await pebble.rootPem()
  provider = await startOpenIdStandIn({ clientId: 'pages', clientSecret: 'what-your-provider-gave-you' })
  provider.signIn(OWNER)
  const ports = await freePorts(4)
  httpsPort = ports[0]!
  // Where DNS would lead.
  proxy = await startTunnelProxy(() => httpsPort)
  engine = http.createServer((asked, response) => {
    void buffer(asked).then((body) => response.end(act(body.toString().split('\0').slice(0, -1), ports)))
  })
  engine.listen(path.join(home, 'engine'))
  await once(engine, 'listening')
  mkdirSync(path.join(home, 'bin'))
  const podman = `#!/bin/sh\nprintf '%s\\0' "$@" | exec curl -sS --data-binary @- --unix-socket ${home}/engine http://engine/\n`
  writeFileSync(path.join(home, 'bin/podman'), podman, { mode: 0o755 })
  writeFileSync(
    path.join(home, 'bin/opener'),
    '#!/bin/sh\nprintf %s "$1" > "$HOME/opening" && mv "$HOME/opening" "$HOME/opened"\n',
    {
      mode: 0o755,
    },
  )
  writeFileSync(path.join(home, 'root.pem'), root)
  mkdirSync(path.join(home, 'handbook'))
  writeFileSync(path.join(home, 'handbook/index.html'), '<h1>How we work</h1>')
})

afterAll(async () => {
  await container?.stop()
  image?.remove()
  engine?.close()
  proxy?.close()
  await provider?.stop()
  await pebble?.stop()
  await names?.stop()
  for (const folder of [home, data]) if (folder) rmSync(folder, { recursive: true, force: true })
})

/** Stands for podman, which needs more privileges than a sandbox has: the commands that the README uses. */
function act([command, ...args]: string[], ports: readonly number[]): string {
  if (command === 'logs') return container!.output()
  expect(command).toBe('run')
  const flags = args.slice(0, -1)
  const valueOf = (flag: string): string => flags[flags.indexOf(flag) + 1]!
  expect(flags).toContain('--read-only')
  expect([valueOf('--tmpfs'), valueOf('-v')]).toEqual(['/tmp', 'pages:/data'])
  image = openImage(`${args.at(-1)}:latest`)
  data = createVolume(image, '/data')
  copyFileSync(pebble.caFile, path.join(data, 'acme-ca.pem'))
  chownSync(path.join(data, 'acme-ca.pem'), image.uid, image.gid)
  const lines = readFileSync(valueOf('--env-file'), 'utf8').split('\n').filter(Boolean)
  const settings = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
  const [https, plain, control, metrics] = ports.map(String)
  container = startOnMachine({
    image,
    name: 'pages',
    environment: {
      ...settings,
      // The network is this machine's: `-p` would say the same of 443.
      ...{ EDGE_HTTPS_PORT: https!, EDGE_HTTP_PORT: plain!, CONTROL_PORT: control!, METRICS_PORT: metrics! },
      // A CA and a name server that only this test knows.
      ...{ ACME_CA_FILE: '/data/acme-ca.pem', DNS_RESOLVER: names.address },
    },
    mounts: [{ source: data, target: '/data' }],
  })
  return 'started\n'
}

/** What the reader fills in: the same settings, with the addresses and keys of this test. */
function fillIn(file: string): void {
  const own: Record<string, string> = {
    OIDC_ISSUER: provider.issuer,
    ACME_DIRECTORY_URL: pebble.directoryUrl,
    DNS01_SERVER: names.address,
    DNS01_TSIG_KEY: names.keyName,
    DNS01_TSIG_SECRET: names.secret,
  }
  const text = readFileSync(file, 'utf8')
  for (const name of Object.keys(own)) expect(text).toContain(`\n${name}=`)
  writeFileSync(
    file,
    text.replaceAll(/^(\w+)=.*$/gm, (line, name: string) => (name in own ? `${name}=${own[name]}` : line)),
  )
}

function runCommand(command: string): Promise<{ output: string; failure: ExecFileException | null }> {
  const env = {
    ...process.env,
    HOME: home,
    PATH: `${home}/bin:${process.env['PATH']}`,
    BROWSER: `${home}/bin/opener`,
    HTTPS_PROXY: proxy.url,
    DROPWAY_CA_FILE: path.join(home, 'root.pem'),
  }
  return new Promise((resolve) => {
    execFile('bash', ['-c', command], { cwd: ROOT, env, maxBuffer: 64 << 20 }, (failure, stdout, stderr) =>
      resolve({ output: `${stdout}${stderr}`, failure }),
    )
  })
}

/** A person's browser: cookies of each host, redirects followed; trusts the CA alone. */
function openBrowser() {
  const jars = new Map<string, Map<string, string>>()
  async function open(address: string, body?: URLSearchParams): Promise<Answer & { address: string }> {
    const url = new URL(address)
    const isTheirs = url.hostname.endsWith('.example.test')
    const jar = jars.get(url.host) ?? new Map<string, string>()
    jars.set(url.host, jar)
    const own = isTheirs ? `https://${url.hostname}:${httpsPort}${url.pathname}${url.search}` : address
    const cookie = [...jar].map((pair) => pair.join('=')).join('; ')
    const answer = await request({
      url: own,
      ca: root,
      headers: {
        host: url.host,
        ...(cookie !== '' && { cookie }),
        ...(body && { 'content-type': 'application/x-www-form-urlencoded', origin: url.origin }),
      },
      ...(body && { body: body.toString() }),
    })
    for (const set of answer.cookies) jar.set(set.slice(0, set.indexOf('=')), set.slice(set.indexOf('=') + 1))
    const next = answer.header('location')
    return next === undefined ? { ...answer, address } : open(new URL(next, address).href)
  }
  return { open }
}

/** Opens the owner's link and continues with the provider. */
async function becomeOwner(link: string, browser: ReturnType<typeof openBrowser>): Promise<void> {
  const page = await browser.open(link)
  expect(page.text()).toContain('Continue with Acme')
  expect(page.text()).not.toContain('Dropway')
  const onward = /href="(\/signin\/oidc[^"]*)"/.exec(page.text())![1]!.replaceAll('&amp;', '&')
  const home = await browser.open(SERVICE + onward)
  expect([home.status, home.text().includes('Acme Pages')]).toEqual([200, true])
}

/** Lets the client in that waits for its browser. */
async function allowClient(browser: ReturnType<typeof openBrowser>): Promise<void> {
  const opened = path.join(home, 'opened')
  await until(() => existsSync(opened), 'the client to open a browser')
  const page = await browser.open(readFileSync(opened, 'utf8'))
  expect(page.text()).toContain('Acme Pages')
  const form = new URLSearchParams({ ...formFields(page.text(), '/oauth/authorize'), decision: 'allow' })
  expect((await browser.open(`${SERVICE}/oauth/authorize`, form)).status).toBe(200)
}

/** What the person does beside a command. */
async function follow(command: string, browser: ReturnType<typeof openBrowser>): Promise<void> {
  const running = runCommand(command)
  if (command.includes('dropway login')) await allowClient(browser)
  const { output, failure } = await running
  expect(failure, `${command}\n${output}\n${container?.output()}`).toBeNull()
  if (command.startsWith('cat ')) fillIn(path.join(home, 'pages.env'))
  const link = /signs up at (\S+)/.exec(output)?.[1]
  if (link !== undefined) {
    await until(
      async () => (await browser.open(`${SERVICE}/signin`).catch(() => undefined))?.status === 200,
      'certificates',
    )
    await becomeOwner(link, browser)
  }
}

test('the README leads from the image to a private page in at most ten commands', async () => {
  expect(commands.length).toBeLessThanOrEqual(10)
  expect(commands[0]).toBe('npm ci')
  const browser = openBrowser()
  // The modules are there: the test runs from them.
  await follow(commands[1]!, browser)
  const begun = performance.now()
  for (const command of commands.slice(2)) await follow(command, browser)
  console.log(
    `${commands.length} commands; ${Math.round((performance.now() - begun) / 1000)} s after the image was built`,
  )

  const stranger = await openBrowser().open(`${DROP}/`)
  expect(stranger.text()).not.toContain('How we work')
  expect(stranger.text()).toContain('Acme')
  expect(stranger.text()).not.toContain('Dropway')
  const button = /href="([^"]*\/visit\/oidc[^"]*)"/.exec(stranger.text())![1]!.replaceAll('&amp;', '&')
  provider.signIn({ sub: 'grace', email: 'grace@example.test', email_verified: true })
  const colleague = await openBrowser().open(new URL(button, `${DROP}/`).href)
  expect([colleague.status, colleague.text().includes('How we work')]).toEqual([200, true])
  provider.signIn({ sub: 'eve', email: 'eve@elsewhere.test', email_verified: true })
  expect((await openBrowser().open(new URL(button, `${DROP}/`).href)).text()).not.toContain('How we work')
}, 2_400_000)
