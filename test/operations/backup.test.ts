/** An operator loses the machine, and has a backup and SECRET_KEY. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startStack, type Account, type OwnStack, type Published } from '../support/stack.ts'

const SECRET_KEY = randomBytes(32).toString('hex')
const env = { SECRET_KEY }
let directory: string
let first: OwnStack
let account: Account
let site: Published

beforeAll(async () => {
  directory = await mkdtemp(path.join(os.tmpdir(), 'dropway-backup-'))
  first = await startStack({ env })
  account = await first.createAccount('business', { password: 'a long enough password' })
  site = await first.publish(account, { 'index.html': '<h1>one</h1>', 'a/b.txt': 'bytes \u0000 and more' })
  await first.publish(account, '<h1>two</h1>', site)
})

afterAll(async () => {
  await first?.stop()
  await rm(directory, { recursive: true, force: true })
})

test('a backup is taken while publishing goes on, and a second one adds what is new', async () => {
  const publishing = Promise.all(Array.from({ length: 10 }, (_, n) => first.publish(account, `<p>during ${n}</p>`)))
  const taken = await first.admin('backup', directory)
  await publishing
  expect(taken).toMatchObject({ code: 0, stderr: '' })
  const later = await first.publish(account, '<h1>later</h1>')
  expect((await first.admin('backup', directory)).code).toBe(0)

  const second = await startStack({ env })
  try {
    const restored = await second.admin('restore', '--backup', directory)
    expect(restored, restored.stderr).toMatchObject({ code: 0 })
    // The same token opens the same account; every version and every byte is there.
    const before = await first.fetch('/api/v1/sites', { token: account.token })
    const after = await second.fetch('/api/v1/sites', { token: account.token })
    const ids = (answer: typeof after) => answer.json<Published[]>().map(({ id }) => id)
    expect(ids(after)).toEqual(ids(before))
    const versions = async (stack: OwnStack) => {
      const answer = await stack.fetch(`/api/v1/sites/${site.id}/versions`, { token: account.token })
      return JSON.parse(answer.text().replaceAll(`:${stack.httpsPort}`, '')) as { version_id: string }[]
    }
    expect(await versions(second)).toEqual(await versions(first))
    expect((await second.visit(site.slug)).text()).toContain('two')
    expect((await second.visit(later.slug)).text()).toContain('later')
    const [, old] = await versions(second)
    await second.fetch(`/api/v1/sites/${site.id}/versions/${old!.version_id}/promote`, {
      method: 'POST',
      token: account.token,
    })
    expect((await second.visit(site.slug, '/a/b.txt')).text()).toBe('bytes \u0000 and more')
    // And it is an installation like any other: numbers go on, and what was restored cannot be restored over.
    await second.publish(account, '<h1>three</h1>', site)
    expect((await second.visit(site.slug)).header('dropway-version')).toBe('3')
    expect((await second.admin('restore', '--backup', directory)).stderr).toContain('not empty')
    await second.restart()
    const root = (stack: OwnStack) => readFile(path.join(stack.dataDir, 'ca', 'ca.pem'), 'utf8')
    expect(await root(second)).toBe(await root(first))
  } finally {
    await second.stop()
  }
})

test('another SECRET_KEY, and a directory without a backup, are refused in a sentence', async () => {
  expect((await first.admin('backup', directory)).code).toBe(0)
  const other = await startStack({ env: { SECRET_KEY: randomBytes(32).toString('hex') } })
  try {
    const refused = await other.admin('restore', '--backup', directory)
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('another SECRET_KEY')
    expect((await other.admin('restore', '--backup', other.dataDir)).stderr).toContain('no complete backup')
  } finally {
    await other.stop()
  }
})
