/** `dropway dev` answers as the published drop does. */
import { spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openCli, type Cli } from '../support/cli.ts'
import { sharedStack, type Account, type Published, type Stack } from '../support/stack.ts'

/** Known to change with its content: its name holds the beginning of its hash. */
const HASHED = `app-${createHash('sha256').update('hashed').digest('hex').slice(0, 8)}.js`

const FILES = {
  [HASHED]: 'hashed',
  'index.html': '<h1>Home</h1>',
  'about.html': '<h1>About</h1>',
  'blog/index.html': '<h1>Blog</h1>',
  'blog/404.html': '<h1>No such post</h1>',
  '404.html': '<h1>Nothing</h1>',
  'style.css': 'b{}',
  'data.json': '{}',
  'ünï.txt': 'ü',
  _redirects: '/old /about 301\n/gone/* /blog/:splat 302\n/forced /about 301!\n/app/* /index.html 200\nnonsense\n',
  _headers: '/style.css\n  X-Custom: yes\n  Content-Type: text/plain\n',
}

const REQUESTS = [
  '/',
  '/index.html',
  '/about',
  '/about/',
  '/about.html',
  '/blog',
  '/blog/',
  '/blog/none',
  '/none',
  '/none?x=1',
  '/style.css',
  '/data.json',
  '/%C3%BCn%C3%AF.txt',
  '/old?q=1',
  '/gone/a/b',
  '/app/some/route',
  '/_redirects',
  '/_headers',
  '/.dropway/x',
  '//evil.example/a',
  '/%2e%2e/etc/passwd',
  '/%',
  '/a%2Fb',
  '/favicon.ico',
  `/${HASHED}`,
]
const COMPARED = [
  'content-type',
  'location',
  'x-custom',
  'x-content-type-options',
  'cache-control',
  'accept-ranges',
  'allow',
] as const

let cli: Cli
let stack: Stack
let drop: Published
let owner: Account
let running: { child: ChildProcess; port: number }
let folder: string

beforeAll(async () => {
  ;[cli, stack] = await Promise.all([openCli(), sharedStack()])
  folder = path.join(cli.folder, 'site')
  for (const [name, content] of Object.entries(FILES)) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true })
    await writeFile(path.join(folder, name), content)
  }
  owner = await stack.createAccount('plus')
  drop = await stack.publish(owner, FILES)
  running = await startDev([])
})
afterAll(async () => {
  running.child.kill('SIGINT')
  await once(running.child, 'exit')
  await cli.remove()
})

async function startDev(
  args: readonly string[],
  served = folder,
): Promise<{ child: ChildProcess; port: number; stderr: () => string }> {
  const env = { PATH: cli.path, HOME: path.join(cli.folder, 'home') }
  const child = spawn(cli.bin, ['dev', served, '--port', '0', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return { child, port: Number(new URL(line.toString().trim()).port), stderr: () => stderr }
}

interface Answer {
  readonly status: number
  readonly text: string
  header(name: string): string | undefined
}

function ask(port: number, target: string, method = 'GET', headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = http.request({ port, host: '127.0.0.1', path: target, method, headers, agent: false }, (reply) => {
      let text = ''
      reply.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      reply.on('end', () =>
        resolve({ status: reply.statusCode!, text, header: (name) => reply.headers[name] as string | undefined }),
      )
    })
    request.on('error', reject)
    request.end()
  })
}

describe('the same answer here and there', () => {
  test.each(REQUESTS)('%s', async (target) => {
    const [here, there] = await Promise.all([ask(running.port, target), stack.visit(drop.slug, target)])
    expect(here.status).toBe(there.status)
    const ownPage = there.status === 404 && !there.text().includes('<h1>No')
    if (ownPage) return
    if (there.status !== 400) for (const name of COMPARED) expect(here.header(name), name).toBe(there.header(name))
    if (there.status === 200) expect(here.text).toBe(there.text())
  })

  test.each(['OPTIONS', 'POST', 'DELETE'])('%s', async (method) => {
    const [here, there] = await Promise.all([
      ask(running.port, '/about', method),
      stack.visit(drop.slug, '/about', { method, h2: false }),
    ])
    expect([here.status, here.header('allow')]).toEqual([there.status, there.header('allow')])
  })

  test('several ranges are several parts', async () => {
    const headers = { range: 'bytes=0-1,3-5', 'accept-encoding': 'identity' }
    const [here, there] = await Promise.all([
      ask(running.port, '/about', 'GET', headers),
      stack.visit(drop.slug, '/about', { headers }),
    ])
    const withoutBoundary = (text: string, type: string | undefined): string =>
      text.replaceAll(/boundary=(.+)$/.exec(type ?? '')?.[1] ?? '', 'boundary')
    expect([here.status, here.header('content-length')]).toEqual([206, there.header('content-length')])
    expect(withoutBoundary(here.text, here.header('content-type'))).toBe(
      withoutBoundary(there.text(), there.header('content-type')),
    )
  })
})

test('it answers under names of this machine only', async () => {
  for (const host of ['localhost', 'LOCALHOST:4000', 'my.localhost', '127.0.0.1:4000', '[::1]:4000'])
    expect([host, (await ask(running.port, '/', 'GET', { host })).status]).toEqual([host, 200])
  for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', '192.168.1.5']) {
    const { status, text } = await ask(running.port, '/', 'GET', { host })
    expect([host, status, text.includes('Home')]).toEqual([host, 421, false])
  }
})

test.each(['bytes=0-3', 'bytes=4-', 'bytes=-2', 'bytes=99-', 'bytes=2-99', 'lines=1-2', 'bytes=3-1'])(
  'the same part here and there: %s',
  async (range) => {
    const headers = { range, 'accept-encoding': 'identity' }
    const [here, there] = await Promise.all([
      ask(running.port, '/about', 'GET', headers),
      stack.visit(drop.slug, '/about', { headers }),
    ])
    for (const name of ['content-range', 'accept-ranges', 'cache-control', 'content-length'])
      expect([name, here.status, here.header(name)]).toEqual([name, there.status, there.header(name)])
    if (there.status < 300) expect(here.text).toBe(there.text())
  },
)

test('what a browser has already is not sent again', async () => {
  const etag = (await ask(running.port, '/about')).header('etag')!
  expect(await ask(running.port, '/about', 'GET', { 'if-none-match': etag })).toMatchObject({ status: 304, text: '' })
})

test('a folder with only an index.md is rendered as the service renders it', async () => {
  const files = { 'index.md': '# Tide table\n\n- high\n- low\n', 'style.css': 'a{}' }
  const other = path.join(cli.folder, 'markdown')
  await mkdir(other)
  for (const [name, content] of Object.entries(files)) await writeFile(path.join(other, name), content)
  const published = await stack.publish(owner, files)
  const { child, port } = await startDev([], other)
  for (const target of ['/', '/index.html', '/index.md', '/style.css']) {
    const [here, there] = await Promise.all([ask(port, target), stack.visit(published.slug, target)])
    expect([target, here.status, here.header('content-type')]).toEqual([
      target,
      there.status,
      there.status === 404 ? here.header('content-type') : there.header('content-type'),
    ])
    if (there.status === 200) expect(here.text).toBe(there.text())
  }
  child.kill('SIGINT')
  await once(child, 'exit')
})

test('changes show with the next request; the cache never hides them', async () => {
  await writeFile(path.join(folder, 'fresh.html'), 'one')
  await expect.poll(async () => (await ask(running.port, '/fresh')).text).toBe('one')
  await writeFile(path.join(folder, 'fresh.html'), 'two')
  const { text, header } = await ask(running.port, '/fresh')
  expect([text, header('cache-control')]).toEqual(['two', 'max-age=0, must-revalidate'])
})

test('HEAD has no body, other methods are refused, mistakes in the rules are told', async () => {
  expect(await ask(running.port, '/about', 'HEAD')).toMatchObject({ status: 200, text: '' })
  expect((await ask(running.port, '/about', 'POST')).status).toBe(405)
  const other = await startDev(['--spa'])
  expect((await ask(other.port, '/some/route')).text).toContain('Home')
  expect((await ask(other.port, '/x.js', 'GET', { 'sec-fetch-dest': 'script' })).status).toBe(404)
  await expect.poll(other.stderr).toContain('_redirects:5:')
  other.child.kill('SIGINT')
  const [code] = await once(other.child, 'exit')
  expect(code).toBe(130)
})
