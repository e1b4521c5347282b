/** Whatever the service keeps is for its own user: no one else on the machine reads a file of it or asks its Postgres. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { lstat, mkdtemp, readdir, readFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bundleForm } from '../support/api.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { mailedLink } from '../support/mailbox.ts'
import { startStack, type OwnStack, type SystemUser } from '../support/stack.ts'

const isRoot = process.getuid!() === 0
const NOBODY: SystemUser = { uid: 65534, gid: 65534 }
const STRANGER: SystemUser = { uid: 54321, gid: 54321 }

/** As root all of it is tried; a person who is not root tries their own start. */
const STARTS: readonly { readonly who: string; readonly user?: SystemUser }[] = isRoot
  ? [{ who: 'root' }, { who: 'nobody', user: NOBODY }]
  : [{ who: 'a person' }]

/** `find <folder> -perm /077`, links aside: theirs mean nothing. What Postgres removes meanwhile is open to no one. */
async function openToOthers(file: string): Promise<string[]> {
  const stats = await lstat(file).catch(unlessGone)
  if (stats === undefined || stats.isSymbolicLink()) return []
  const own = (stats.mode & 0o077) === 0 ? [] : [`${file} ${(stats.mode & 0o777).toString(8)}`]
  if (!stats.isDirectory()) return own
  const names = (await readdir(file).catch(unlessGone)) ?? []
  const inside = await Promise.all(names.map((name) => openToOthers(path.join(file, name))))
  return [...own, ...inside.flat()]
}

function unlessGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/** What someone gets who tries to open a unix socket, by the system's own Perl, which everyone may run. */
async function connectAs(user: SystemUser | undefined, socket: string): Promise<string> {
  const program =
    'print IO::Socket::UNIX->new(Peer => $ARGV[0]) ? "connected" : $!{EACCES} ? "EACCES" : "failed with $!"'
  const child = spawn('perl', ['-MIO::Socket::UNIX', '-MErrno', '-e', program, socket], {
    ...user,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = await Promise.all([text(child.stdout), once(child, 'exit')])
  return said
}

describe.each(STARTS)('started by $who', ({ user }) => {
  let stack: OwnStack
  beforeAll(async () => {
    const dataDir = await mkdtemp(path.join(os.tmpdir(), 'dropway-private-'))
    stack = await startStack({ env: { DATA_DIR: dataDir, NODE_COMPILE_CACHE: '' }, ...(user ? { user } : {}) })
  })
  afterAll(() => stack?.stop())

  test('after mails, uploads, certificates and a second start, no file is open to others', async () => {
    const email = 'private@example.test'
    const browser = new FormBrowser(stack, '198.51.100.9')
    await browser.send('/signup', { email, password: 'correct horse battery' })
    await browser.confirm(await mailedLink(stack, email, '/verify'))
    const { id, slug } = (await browser.api('/sites', { json: {} })).json<{ id: string; slug: string }>()
    const files = { 'index.html': '<h1>Mine</h1>', 'a.md': '# A', 'deep/b.txt': 'b'.repeat(200_000) }
    const uploaded = await browser.api(`/sites/${id}/upload-bundle`, { method: 'POST', body: bundleForm(files) })
    expect(uploaded.status).toBe(201)
    expect((await stack.visit(slug)).status).toBe(200)
    expect(await openToOthers(stack.dataDir)).toEqual([])
    await stack.restart()
    expect((await stack.visit(slug)).status).toBe(200)
    expect(await openToOthers(stack.dataDir)).toEqual([])
  })

  test('its Postgres and Redis are reached by its own user alone', async () => {
    const { databaseUrl, redisUrl } = JSON.parse(await readFile(path.join(stack.dataDir, 'services.json'), 'utf8')) as {
      databaseUrl: string
      redisUrl: string
    }
    expect(await openToOthers(databaseUrl)).toEqual([])
    const sockets = [path.join(databaseUrl, '.s.PGSQL.5432'), ...(redisUrl.startsWith('/') ? [redisUrl] : [])]
    for (const socket of sockets) {
      expect(await connectAs(user, socket)).toBe('connected')
      if (isRoot) expect(await connectAs(STRANGER, socket)).toBe('EACCES')
    }
    // The planes talk to it all the same.
    expect((await stack.fetch('/gallery')).status).toBe(200)
  })
})
